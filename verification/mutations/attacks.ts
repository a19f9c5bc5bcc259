import type { Change, Mutation } from './mutation.ts';

const change = (file: string, search: string, replace: string): Change => ({ file, search, replace });

/** Ways to undo what was mended after attacks from outside, which histories are too small to show. */
export const ATTACKS: Mutation[] = [
  {
    name: 'one key that fails stops the clean-up after an execution',
    changes: [
      change(
        'shared/leases/queue/execution-ended.ts',
        'await leaveKey(dependencies, { ...leaving, key, tickets }, call).catch((error) => failures.push(error));',
        'await leaveKey(dependencies, { ...leaving, key, tickets }, call);',
      ),
    ],
    test: { file: 'test/queue/execution-ended.test.ts', name: 'stops no other, and the failure is reported' },
  },
  {
    name: 'the clean-up after an execution takes its keys in the order of the index',
    changes: [
      change(
        'shared/leases/queue/execution-ended.ts',
        'of shuffled([...keys], dependencies.ids)',
        'of shuffled([...keys], { ...dependencies.ids, random: () => 0 })',
      ),
    ],
    test: { file: 'test/queue/execution-ended.test.ts', name: 'and is not the same one each time' },
  },
  {
    name: 'one key that fails stops the schedule',
    changes: [
      change(
        'shared/leases/queue/repair.ts',
        'watched.push(key);\n      } catch (error) {\n        failures.push(error);',
        'watched.push(key);\n      } catch (error) {\n        throw error;',
      ),
    ],
    test: { file: 'test/queue/execution-ended.test.ts', name: 'stops no other key of the schedule' },
  },
  {
    name: 'an execution of another account stops the clean-up',
    changes: [
      change(
        'shared/leases/queue/execution-state.ts',
        "if (isDenied || name === 'InvalidArn')",
        "if (name === 'InvalidArn')",
      ),
    ],
    test: {
      file: 'test/queue/execution-ended.test.ts',
      name: 'keeps no other lease or ticket of the execution from being freed',
    },
  },
  {
    name: 'an execution of another team may free a lease of a namespace',
    changes: [
      change('shared/leases/executions.ts', 'return !rules.ownAlone || isOwn', 'return rules.ownAlone || isOwn'),
    ],
    test: { file: 'test/namespaces/executions.test.ts', name: 'of other state machines are refused' },
  },
  {
    name: 'an execution that a deployment never hears of may hold a lease',
    changes: [
      change('shared/leases/executions.ts', 'if (!isKnown(rules, arn)) return', 'if (isKnown(rules, arn)) return'),
    ],
    test: { file: 'test/namespaces/executions.test.ts', name: 'are the only ones that are taken' },
  },
  {
    name: 'a task is taken for the API by what its payload says',
    changes: [change('shared/lambda/adapters.ts', 'alias === API_ALIAS && isHttpEvent(event)', 'isHttpEvent(event)')],
    test: { file: 'test/namespaces/matrix.test.ts', name: 'takes no forged request of the API' },
  },
  {
    name: 'a path that IAM may read otherwise is taken',
    changes: [change('shared/lambda/namespaces.ts', 'if (AMBIGUOUS.test(rawPath))', "if (rawPath === 'none')")],
    test: {
      file: 'test/namespaces/paths.test.ts',
      name: 'the route POST /v1/leases/acquire at the path /v1//leases/acquire is refused',
    },
  },
  {
    name: 'another caller ends the first acquire of a request by sending it before',
    changes: [
      change(
        'shared/leases/first-try.ts',
        'if (isOwnOf(standing, request) &&',
        'if (standing.requestId === request.requestId &&',
      ),
    ],
    test: {
      file: 'test/leases/principals.test.ts',
      name: 'by another caller do not end the first acquire of their own caller',
    },
  },
  {
    name: 'a cursor of a namespace names the records of others',
    changes: [change('shared/lambda/names.ts', 'cursors.seal(cursor, namespace)', 'cursor')],
    test: { file: 'test/namespaces/leases.test.ts', name: 'has its own leases alone' },
  },
  {
    name: 'a lease may name an execution of another account',
    changes: [change('shared/leases/executions.ts', 'if (home !== undefined &&', 'if (home === undefined &&')],
    test: { file: 'test/queue/execution-ended.test.ts', name: 'is not written any more' },
  },
  {
    name: 'any number of tasks may be parked for a key',
    changes: [
      change(
        'shared/leases/queue/park.ts',
        'Number(standing.waiters?.N) > waitersPerKey',
        'Number(standing.waiters?.N) < 0',
      ),
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'refuses the next task, ends it, and leaves no ticket' },
  },
  {
    name: 'a read of a key reads its whole queue',
    changes: [change('shared/leases/queue/waiting.ts', 'if (++waiting === counted) break;', '++waiting;')],
    test: { file: 'test/queue/bounds.test.ts', name: 'reading a key does not read its whole queue' },
  },
  {
    name: 'acquire waits for as long as it is asked to, whatever the deployment allows',
    changes: [
      change(
        'shared/leases/acquire.ts',
        'Math.min(waitSeconds, maxWaitSeconds) * 1000',
        'Math.max(waitSeconds, maxWaitSeconds) * 1000',
      ),
    ],
    test: { file: 'test/leases/acquire.test.ts', name: 'waits no longer than the deployment allows' },
  },
  {
    name: 'the schedule looks once at a key that a client of another kind holds',
    changes: [
      change(
        'shared/leases/queue/repair.ts',
        'return isForeign(standing) && hasYoungTicket',
        'return !standing && hasYoungTicket',
      ),
    ],
    test: { file: 'test/queue/shared-keys.test.ts', name: 'a key that a client holds that knows nothing of the queue' },
  },
  {
    name: 'one key that fails while it is watched ends the watch of all others',
    changes: [
      change(
        'shared/leases/queue/repair.ts',
        'failures.push(error);\n        still.push(key);',
        'failures.push(error);\n        return;',
      ),
    ],
    test: { file: 'test/queue/shared-keys.test.ts', name: 'a key that fails while it is watched ends no watch' },
  },
  {
    name: 'one key that fails while it is watched is not watched on',
    changes: [
      change(
        'shared/leases/queue/repair.ts',
        'failures.push(error);\n        still.push(key);',
        'failures.push(error);',
      ),
    ],
    test: { file: 'test/queue/shared-keys.test.ts', name: 'a key that fails while it is watched ends no watch' },
  },
  {
    name: 'data of another client is shown however deep it is nested',
    changes: [
      change('shared/leases/record.ts', 'if (depth > MAX_DEPTH) return true;', 'if (depth > MAX_DEPTH) return false;'),
    ],
    test: { file: 'test/leases/compat.test.ts', name: 'is shown as text where it is nested too deep' },
  },
  {
    name: 'a page grows over what a function can answer with',
    changes: [change('shared/pages.ts', '5 * 1024 * 1024', '50 * 1024 * 1024')],
    test: { file: 'test/leases/compat.test.ts', name: 'a list is cut where its answer would be larger' },
  },
  {
    name: 'a page of the web calls the local stack',
    changes: [change('local/callers.ts', 'if (origin !== undefined && origin', 'if (origin === undefined && origin')],
    test: { file: 'test/local/callers.test.ts', name: 'refuses the page that a browser shows' },
  },
  {
    name: 'a page of the web calls the local stack by a name of its own',
    changes: [change('local/callers.ts', 'if (!LOOPBACK.test(name) || Number(port)', 'if (Number(port)')],
    test: { file: 'test/local/callers.test.ts', name: 'refuses the same page, where the browser sends no origin' },
  },
  {
    name: 'the emulator of DynamoDB answers pages of the web',
    changes: [
      change(
        'local/dynamodb.ts',
        'return startGuard(await startDynamodb(await freePort(), dataDir, host), port);',
        'return startDynamodb(port, dataDir);',
      ),
    ],
    test: { file: 'test/local/callers.test.ts', name: 'refuses the page that a browser shows' },
  },
  {
    name: 'the client holds a lease by an answer that is no grant',
    changes: [change('client/src/lease.ts', '!(leftMs() > 0)', 'leftMs() <= 0')],
    test: { file: 'test/client/hostile.test.ts', name: 'loses the lease at a heartbeat whose answer is no grant' },
  },
  {
    name: 'the client counts maxHoldMs from the request',
    changes: [change('client/src/lease.ts', 'waitedMs + maxHoldMs', 'maxHoldMs')],
    test: { file: 'test/client/hostile.test.ts', name: 'counts from the grant, and not from the request' },
  },
  {
    name: 'a heartbeat under way leaves a release of the client no time',
    changes: [
      change('client/src/lease.ts', 'const halfMs = releaseTimeoutMs / 2;', 'const halfMs = releaseTimeoutMs;'),
    ],
    test: { file: 'test/client/hostile.test.ts', name: 'has half of its time left' },
  },
  {
    name: 'a leader of the client ends at its first loss',
    changes: [change('client/src/lead.ts', 'if (!isAbort(error, lease.signal)) throw error;', 'throw error;')],
    test: { file: 'test/client/hostile.test.ts', name: 'waits again where the work ends by the loss' },
  },
  {
    name: 'the client follows redirects',
    changes: [change('client/src/http.ts', "redirect: 'manual', ", '')],
    test: { file: 'test/client/http.test.ts', name: 'follows no redirect' },
  },
  {
    name: 'the client lets Node keep a copy of what it uploads',
    changes: [change('client/src/blobs.ts', ", redirect: 'error', window: null }", ' }')],
    test: { file: 'test/client/streams.test.ts', name: 'is not held in memory' },
  },
];
