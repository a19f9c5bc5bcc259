import { change, type Mutation } from './mutation.ts';

/** Ways to undo what was mended after attacks from outside, which histories are too small to show. */
export const ATTACKS: Mutation[] = [
  {
    name: 'one key that fails stops the clean-up after an execution',
    changes: [change('tickets: before }, call).catch((error) => failures.push(error));', 'tickets: before }, call);')],
    test: {
      file: 'test/leases/executions.test.ts',
      name: 'a key that fails stops no other key, and the pass reports the failure',
    },
  },
  {
    name: 'the clean-up after an execution takes its keys in the order of the index',
    changes: [
      change(
        'of shuffled([...keys], dependencies.ids)',
        'of shuffled([...keys], { ...dependencies.ids, random: () => 0 })',
      ),
    ],
    test: { file: 'test/leases/executions.test.ts', name: 'a pass takes the keys in an order by chance' },
  },
  {
    name: 'one key that fails stops the schedule',
    changes: [
      change(
        '(error) => failures.push(error),\n      );',
        '(error) => {\n          repaired.complete = false;\n          failures.push(error);\n        },\n      );',
        'shared/locks/repair.ts',
      ),
    ],
    test: { file: 'test/leases/executions.test.ts', name: 'a key that fails stops no other key of the schedule' },
  },
  {
    name: 'an execution of another account stops the clean-up',
    changes: [change("if (isDenied || name === 'InvalidArn')", "if (name === 'InvalidArn')")],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a target of another account keeps no other grant of the execution',
    },
  },
  {
    name: 'an execution of another team may free a lease of a namespace',
    changes: [change('return !rules.ownAlone || isOwn', 'return rules.ownAlone || isOwn')],
    test: {
      file: 'test/namespaces/executions.test.ts',
      name: 'executions of other state machines are refused if a deployment asks for its own',
    },
  },
  {
    name: 'an execution that a deployment never hears of may hold a lease',
    changes: [change('if (!isKnown(rules, arn)) return', 'if (isKnown(rules, arn)) return')],
    test: {
      file: 'test/namespaces/executions.test.ts',
      name: 'executions of other state machines than a deployment is narrowed to are refused',
    },
  },
  {
    name: 'a task is taken for the API by what its payload says',
    changes: [change('alias === API_ALIAS && isHttpEvent(event)', 'isHttpEvent(event)')],
    test: {
      file: 'test/namespaces/matrix.test.ts',
      name: 'a function takes no forged request of the API by the alias',
    },
  },
  {
    name: 'a path that IAM may read otherwise is taken',
    changes: [change('if (AMBIGUOUS.test(rawPath))', "if (rawPath === 'none')")],
    test: {
      file: 'test/namespaces/paths.test.ts',
      name: 'the route POST /v1/leases/acquire at the path /v1//leases/acquire is refused',
    },
  },
  {
    name: 'a POST whose path goes on after a question mark is taken',
    changes: [change("if (rawQueryString !== '')", "if (rawQueryString === 'none')")],
    test: { file: 'test/namespaces/paths.test.ts', name: 'a POST with the query ?key=other is refused' },
  },
  {
    name: 'the alias of a team reaches the keys of every team',
    changes: [change('if (!ofDeployment && /^[a-z0-9]', 'if (/^[a-z0-9]')],
    test: {
      file: 'test/namespaces/executions.test.ts',
      name: 'a function that belongs to no namespace refuses the alias team-a, so that no team ends the leases of another team',
    },
  },
  {
    name: 'an execution that runs is believed to have ended without an event',
    changes: [change('(settled || redriven || reported === undefined)', '(settled || redriven)')],
    test: {
      file: 'test/namespaces/executions.test.ts',
      name: 'a function without a namespace takes the end of an execution that still shows as running only from an event that says how the execution ended',
    },
  },
  {
    name: 'a list of a namespace is not confined if a key is there and undefined',
    changes: [change("typeof request[unless] !== 'string'", '!Object.hasOwn(request, unless)')],
    test: {
      file: 'test/lambda/names.test.ts',
      name: 'a request of a namespace for a key that is undefined sees that namespace alone',
    },
  },
  {
    name: 'a cursor of a namespace is good for its other lists',
    changes: [change("sealedCursors('names')", "sealedCursors('leases')")],
    test: {
      file: 'test/namespaces/others.test.ts',
      name: 'a cursor of one list of a namespace is refused by every other list',
    },
  },
  {
    name: 'a report whose rows are not all counted says that it is complete',
    changes: [change('{ ...own.summary, complete: false }', 'own.summary')],
    test: { file: 'test/expiry/report.test.ts', name: 'a report of a namespace that has no time left to count' },
  },
  {
    name: 'another caller ends the first acquire of a request by sending it before',
    changes: [change('if (isOwnOf(record, request) &&', 'if (record.requestId === request.requestId &&')],
    test: {
      file: 'test/leases/principals.test.ts',
      name: 'a request id and a holder that another caller sent before, by another caller, do not end the first acquire of their own caller',
    },
  },
  {
    name: 'a cursor of a namespace names the records of others',
    changes: [change('cursors.seal(cursor, namespace)', 'cursor')],
    test: {
      file: 'test/namespaces/leases.test.ts',
      name: 'a list of a namespace has its own leases alone, page by page, and its cursors name no other',
    },
  },
  {
    name: 'a lease may name an execution of another account',
    changes: [change('if (home !== undefined &&', 'if (home === undefined &&')],
    test: { file: 'test/leases/executions.test.ts', name: 'acquire refuses an execution that cannot be asked about' },
  },
  {
    name: 'any number of tasks may be parked for a key',
    changes: [change('const isFull = inLine > waitersPerKey;', 'const isFull = inLine < 0;')],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a full line refuses the next task, ends it, and leaves no ticket',
    },
  },
  {
    name: 'a read of a key reads its whole queue',
    changes: [change('if (++waiting === counted) break;', '++waiting;')],
    test: { file: 'test/leases/bounds.test.ts', name: 'a read of a key does not read its whole line' },
  },
  {
    name: 'acquire waits for as long as it is asked to, whatever the deployment allows',
    changes: [change('Math.min(waitSeconds, maxWaitSeconds) * 1000', 'Math.max(waitSeconds, maxWaitSeconds) * 1000')],
    test: {
      file: 'test/leases/acquire.test.ts',
      name: 'acquire waits no longer than the deployment allows, and says when the lease may be free',
    },
  },
  {
    name: 'the schedule looks once at a key that a client of another kind holds',
    changes: [change('return isForeign(current) && hasYoungWaiter', 'return !current && hasYoungWaiter')],
    test: {
      file: 'test/leases/shared-keys.test.ts',
      name: 'a key of a third-party client that ignores the line is looked at every five seconds while tickets are young',
    },
  },
  {
    name: 'one key that fails while it is watched ends the watch of all others',
    changes: [change('failures.push(error);\n        still.push(key);', 'failures.push(error);\n        return;')],
    test: { file: 'test/leases/shared-keys.test.ts', name: 'a key that fails while it is watched ends no watch' },
  },
  {
    name: 'one key that fails while it is watched is not watched on',
    changes: [change('failures.push(error);\n        still.push(key);', 'failures.push(error);')],
    test: { file: 'test/leases/shared-keys.test.ts', name: 'a key that fails while it is watched ends no watch' },
  },
  {
    name: 'data of another client is shown however deep it is nested',
    changes: [change('if (depth > MAX_DEPTH) return true;', 'if (depth > MAX_DEPTH) return false;')],
    test: {
      file: 'test/leases/compat.test.ts',
      name: 'data of another client is shown as text if it is nested too deep for an answer',
    },
  },
  {
    name: 'a page grows over what a function can answer with',
    changes: [change('5 * 1024 * 1024', '50 * 1024 * 1024')],
    test: {
      file: 'test/leases/compat.test.ts',
      name: 'a list is cut if its answer would be larger than a function may give',
    },
  },
  {
    name: 'a page of the web calls the local stack',
    changes: [change('if (origin !== undefined && origin', 'if (origin === undefined && origin')],
    test: {
      file: 'test/local/callers.test.ts',
      name: 'a server of the local stack refuses the page that a browser shows',
    },
  },
  {
    name: 'a page of the web calls the local stack by a name of its own',
    changes: [change('if (!LOOPBACK.test(name) || Number(port)', 'if (Number(port)')],
    test: {
      file: 'test/local/callers.test.ts',
      name: 'a server of the local stack refuses the same page, where the browser sends no origin',
    },
  },
  {
    name: 'the emulator of DynamoDB answers pages of the web',
    changes: [
      change(
        'return startGuard(await startDynamodb(await portClosedToBrowsers(host), dataDir, host), port);',
        'return startDynamodb(port, dataDir);',
      ),
    ],
    test: {
      file: 'test/local/callers.test.ts',
      name: 'a server of the local stack refuses the page that a browser shows',
    },
  },
  {
    name: 'browsers can call the emulator of DynamoDB',
    changes: [change('await portClosedToBrowsers(host), dataDir', 'port + 20_000, dataDir')],
    test: {
      file: 'test/local/callers.test.ts',
      name: 'the guard of DynamoDB has the emulator on a port that browsers do not call, also on systems where its address is not random',
    },
  },
  {
    name: 'a call that fails ends the local stack',
    changes: [change('if (!request.complete) return void response.destroy();', 'throw error;')],
    test: {
      file: 'test/local/callers.test.ts',
      name: 'a server of the local stack answers 500 and continues if what it serves fails, and says why',
    },
  },
  {
    name: 'the log has the request id of a withdrawal',
    changes: [change("logged: ['key', 'holder', 'cancelled'", "logged: ['requestId', 'key', 'holder', 'cancelled'")],
    test: {
      file: 'test/leases/adapters.test.ts',
      name: 'the log has a line for each request, and no lease id, version or request id',
    },
  },
  {
    name: 'the events of the oldest reports are kept in place of the latest',
    changes: [change('.slice(-MAX_UNANNOUNCED)', '.slice(0, MAX_UNANNOUNCED)')],
    test: {
      file: 'test/expiry/adapters.test.ts',
      name: 'EventBridge receives the events of the latest 96 reports after a long time without the bus',
    },
  },
  {
    name: 'the first try of a release takes all of its time',
    changes: [change('{ timeoutMs, ms: timeoutMs / 2 })).released', '{ timeoutMs })).released')],
    test: {
      file: 'test/client/lease.test.ts',
      name: 'a release that is never answered is tried again after half of its limit, and ends at the limit',
    },
  },
  {
    name: 'the client holds a lease by an answer that is no grant',
    changes: [change('!(leftMs() > 0)', 'leftMs() <= 0')],
    test: {
      file: 'test/client/hostile.test.ts',
      name: 'a client loses the lease at a heartbeat whose answer is no grant',
    },
  },
  {
    name: 'the client counts maxHoldMs from the request',
    changes: [change('waitedMs + maxHoldMs', 'maxHoldMs')],
    test: {
      file: 'test/client/hostile.test.ts',
      name: 'the limit maxHoldMs counts from the grant, and not from the request that waited for the grant',
    },
  },
  {
    name: 'a heartbeat under way leaves a release of the client no time',
    changes: [change('const halfMs = timeoutMs / 2;', 'const halfMs = timeoutMs;')],
    test: {
      file: 'test/client/hostile.test.ts',
      name: 'a release has half of its time left if a heartbeat is not answered',
    },
  },
  {
    name: 'a leader of the client ends at its first loss',
    changes: [change('if (!isAbort(error, lease.signal)) throw error;', 'throw error;')],
    test: {
      file: 'test/client/hostile.test.ts',
      name: 'the function lead waits again if the work ends by the loss, and throws',
    },
  },
  {
    name: 'the client acquires several keys in the order of the caller, and two callers wait for each other',
    changes: [change('of inOrder(entries)) {', 'of entries) {')],
    test: {
      file: 'test/client/several.test.ts',
      name: 'withLeases lets no two callers wait for each other, however they name their keys',
    },
  },
  {
    name: 'work that waits for the signal of its lease alone ends its process',
    changes: [change('const end = stayAlive(this.#core.by);', 'const end = () => {};')],
    test: { file: 'test/client/alive.test.ts', name: 'A process whose work waits for the signal of its lease alone' },
  },
  {
    name: 'a later record of a message group is handled after the failure of an earlier one',
    changes: [change('if (isBarred) failed.add(entry);', 'return false;')],
    test: { file: 'test/client/record-leases.test.ts', name: 'No random batch breaks' },
  },
  {
    name: 'a handler answers while its request is withdrawn',
    changes: [change('await inTime(by, { ms: left() - ANSWER_MS }, over).catch(() => {});', 'void over;')],
    test: {
      file: 'test/client/handlers.test.ts',
      name: 'a wrapper ends an acquire without an answer in time to withdraw its request',
    },
  },
  {
    name: 'the client follows redirects',
    changes: [change("redirect: 'manual', ", '')],
    test: { file: 'test/client/http.test.ts', name: 'the client follows no redirect' },
  },
  {
    name: 'the client lets Node keep a copy of what it uploads',
    changes: [change(", redirect: 'error', window: null }", ' }')],
    test: { file: 'test/client/streams.test.ts', name: 'a stream is not held in memory' },
  },
  {
    name: 'work that watched its signal and may have stopped half way stores its result',
    changes: [change('if (lost && isWatching) throw lost;', '')],
    test: {
      file: 'test/client/once.test.ts',
      name: 'holdfast.once aborts the signal and stores nothing if the run is lost',
    },
  },
  {
    name: 'work that fails keeps its slot',
    changes: [change('await begun.release();\n      throw error;', 'throw error;')],
    test: { file: 'test/client/once.test.ts', name: 'holdfast.once frees the slot if the work throws' },
  },
  {
    name: 'the client leaves a doubtful run behind',
    changes: [change('? doubt && once.takeBack({ ...request, requestId, ...retryWith })', '? undefined')],
    test: { file: 'test/client/once.test.ts', name: 'holdfast.once takes back a run whose answers were all lost' },
  },
  {
    name: 'two fires of a node-cron task have one slot',
    changes: [change('{ ...options, slot, ttlSeconds, keepSeconds }', '{ ...options, ttlSeconds, keepSeconds }')],
    test: { file: 'test/client/node-cron.test.ts', name: 'nodeCronCoordinator names the key by the task and the slot' },
  },
];
