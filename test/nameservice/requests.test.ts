import { describe, expect, inject, it, vi } from 'vitest';
import { seededIds } from '../support/chance/seed.ts';
import { unitCounter } from '../support/emulators/aws.ts';
import { get, post, throughTask } from '../support/stack/adapters.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const world = await nameserviceWorld();
const { publish, repair, lookUp, list, requests, handlers } = world;

/** What was sent to DynamoDB while `act` ran. */
async function sent(act: () => Promise<unknown>): Promise<string[]> {
  requests.sent.length = 0;
  await act();
  return [...requests.sent];
}

describe('unprocessed keys', () => {
  it('unprocessed keys are requested again after a pause that doubles each time', async () => {
    for (const [random, share] of [
      [0, 0.5],
      [0.5, 0.75],
    ] as const) {
      const slow = await nameserviceWorld({ ids: { ...seededIds(1), random: () => random } });
      await slow.publish({ op: 'initLedger', alias: 'a' });
      const at: number[] = [];
      slow.intercepted.by = async (command, input: { RequestItems: object }, next) => {
        if (command !== 'BatchGetItem') return next();
        at.push(slow.clock.now());
        return { Responses: {}, UnprocessedKeys: input.RequestItems };
      };
      expect((await failure(slow.list({ limit: 1 }))).code).toBe('Throttled');
      expect(at.slice(1).map((time, index) => time - (at[index] ?? 0))).toEqual(
        [50, 100, 200, 400, 800].map((pause) => pause * share),
      );
    }
  });
});

describe('one request', () => {
  it('each publish and compare-and-set sends one request, even if it loses', async () => {
    const alias = 'one';
    await publish({ op: 'initLedger', alias });
    const pointer = (t: number) => ({ address: `a${t}`, t });
    const cas = { op: 'compareAndSetRef', alias, ref: 'commit' };
    const status = { op: 'pushStatus', alias, expected: { state: 'ready', v: 1 } };
    const config = { op: 'pushConfig', alias, expected: { v: 0 } };
    const wins = [
      { op: 'publishCommit', alias, ...pointer(5) },
      { op: 'publishIndex', alias, ...pointer(5) },
      { op: 'publishIndex', alias, ...pointer(5), allowEqual: true },
      { op: 'publishCommit', alias, ...pointer(4) },
      { op: 'publishIndex', alias, ...pointer(4) },
      { ...cas, expected: pointer(5), next: pointer(6) },
      { op: 'fastForwardCommit', alias, ...pointer(7) },
      { ...status, next: { state: 'indexing', v: 2 } },
      { ...config, next: { v: 1, payload: null } },
      { op: 'publishGraphSourceIndex', alias, ...pointer(9) },
      { op: 'retract', alias },
      { op: 'retract', alias },
    ];
    for (const op of wins) expect(await sent(() => publish(op)), JSON.stringify(op)).toEqual(['UpdateItem']);
    const losses = [
      { ...cas, expected: pointer(1), next: pointer(99) },
      { op: 'fastForwardCommit', alias, ...pointer(1) },
      { ...status, next: { state: 'lost', v: 3 } },
      { ...config, next: { v: 2, payload: { extra: { a: 1 } } } },
    ];
    for (const op of losses)
      expect(
        await sent(async () => expect((await failure(publish(op))).code).toBe('Conflict')),
        JSON.stringify(op),
      ).toEqual(['UpdateItem']);
  });

  it('a fast-forward that cannot create the ledger sends one transaction, and gives up', async () => {
    await publish({ op: 'publishGraphSource', alias: 'source', sourceType: 'x', config: {}, dependencies: [] });
    const forward = { op: 'fastForwardCommit', alias: 'source', address: 'a1', t: 1, maxRetries: 5 };
    const tries = await sent(async () => expect((await failure(publish(forward))).code).toBe('AlreadyExists'));
    expect(tries.filter((command) => command === 'TransactWriteItems')).toHaveLength(1);
  });

  it('a replacement of an index at its t sends two requests', async () => {
    await publish({ op: 'initLedger', alias: 'rebuilt' });
    const at = (address: string) => ({ address, t: 5 });
    const index = (address: string) => ({ op: 'publishIndex', alias: 'rebuilt', ...at(address), allowEqual: true });
    const cas = (expected: string, next: object) => ({
      op: 'compareAndSetRef',
      alias: 'rebuilt',
      ref: 'index',
      expected: at(expected),
      next,
    });
    for (const [op, count] of [
      [index('A'), 1],
      [cas('A', at('B')), 1],
      [index('C'), 2],
      [cas('C', at('D')), 2],
      [cas('D', { address: 'E', t: 6 }), 2],
      [{ ...cas('E', { address: 'F', t: 6 }), expected: { address: 'E', t: 6 } }, 1],
    ] as const)
      expect(await sent(() => publish(op)), JSON.stringify(op)).toEqual(Array(count).fill('UpdateItem'));
  });

  it('a write that can never win sends only a read', async () => {
    await publish({ op: 'initLedger', alias: 'never' });
    const ops = [
      { op: 'compareAndSetRef', ref: 'commit', expected: { address: 'a', t: 2 }, next: { address: 'b', t: 2 } },
      { op: 'compareAndSetRef', ref: 'index', expected: { address: 'a', t: 2 }, next: { address: 'b', t: 1 } },
      { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: 'x', v: 1 } },
      { op: 'pushConfig', expected: { v: 1 }, next: { v: 0, payload: null } },
    ];
    for (const op of ops) expect(await sent(() => failure(publish({ alias: 'never', ...op })))).toEqual(['Query']);
    for (const op of ops) expect((await failure(publish({ alias: 'nobody', ...op }))).context.actual, op.op).toBeNull();
    await publish({ op: 'publishGraphSource', alias: 'source', sourceType: 'x', config: {}, dependencies: [] });
    expect((await failure(publish({ alias: 'source', ...ops[3] }))).context.actual).toBeNull();
  });

  it('each creation sends one transaction, even if it loses', async () => {
    const ops = [
      { op: 'initLedger', alias: 'create-1' },
      { op: 'compareAndSetRef', alias: 'create-2', ref: 'commit', expected: null, next: { address: 'a', t: 1 } },
    ];
    for (const op of ops) {
      expect(await sent(() => publish(op))).toEqual(['TransactWriteItems']);
      const next = { address: 'b', t: 1 };
      expect(await sent(() => failure(publish('next' in op ? { ...op, next } : op)))).toEqual(['TransactWriteItems']);
    }
    const source = { op: 'publishGraphSource', alias: 'create-3', sourceType: 'x', config: 1, dependencies: [] };
    expect(await sent(() => publish(source))).toEqual(['TransactWriteItems']);
    expect(await sent(() => failure(publish({ ...source, alias: 'create-1' })))).toEqual(['TransactWriteItems']);
    // Only a lost race leads to another try.
    const raise = { op: 'fastForwardCommit', alias: 'create-3', address: 'a', t: 1 };
    expect(await sent(() => failure(publish(raise)))).toEqual(['UpdateItem', 'Query', 'TransactWriteItems', 'Query']);
  });

  it('a compare-and-set of a commit with a foreign revision sends one request', async () => {
    const alias = 'revised';
    await publish({ op: 'initLedger', alias });
    const [head] = (await world.rawItems(`${alias}:main`)).filter(({ sk }) => sk?.S === 'head');
    await world.putRaw({ ...head, index_revision: { N: '1' } });
    const expected = { address: null, t: 0 };
    const op = { op: 'compareAndSetRef', alias, ref: 'commit', expected, next: { address: 'a', t: 1 } };
    expect(await sent(() => publish(op))).toEqual(['UpdateItem']);
  });

  it('a commit sends one request, and keeps a revision of another client', async () => {
    const alias = 'revised head';
    await publish({ op: 'initLedger', alias });
    const headOf = async () => (await world.rawItems(`${alias}:main`)).find(({ sk }) => sk?.S === 'head');
    await world.putRaw({ ...(await headOf()), index_revision: { S: 'theirs' } });
    expect(await sent(() => publish({ op: 'publishCommit', alias, address: 'a', t: 1 }))).toEqual(['UpdateItem']);
    expect(await headOf()).toMatchObject({ commit_t: { N: '1' }, index_revision: { S: 'theirs' } });
  });

  it('a compare-and-set of a commit without a t sends one request', async () => {
    const alias = 'without t';
    await publish({ op: 'initLedger', alias });
    const [{ commit_t: _, ...head } = {}] = (await world.rawItems(`${alias}:main`)).filter(
      ({ sk }) => sk?.S === 'head',
    );
    await world.putRaw({ ...head, commit_address: { S: 'a' } });
    const expected = { address: 'a', t: 0 };
    const op = { op: 'compareAndSetRef', alias, ref: 'commit', expected, next: { address: 'b', t: 1 } };
    expect(await sent(() => publish(op))).toEqual(['UpdateItem']);
  });

  it('a lookup sends one consistent query', async () => {
    await publish({ op: 'initLedger', alias: 'looked up' });
    expect(await sent(() => lookUp('looked up'))).toEqual(['Query']);
    world.intercepted.by = async (_, input, next) => {
      expect(input).toMatchObject({ ConsistentRead: true });
      return next();
    };
    await lookUp('looked up');
    delete world.intercepted.by;
  });
});

describe('the adapters', () => {
  it('the adapters answer 201 if an alias was created, else 200', async () => {
    const init = { op: 'initLedger', alias: 'door', requestId: 'door-1' };
    const statuses = [];
    for (const op of [
      init,
      init,
      { op: 'publishCommit', alias: 'door', address: 'a', t: 1 },
      { op: 'compareAndSetRef', alias: 'door-2', ref: 'index', expected: null, next: { address: 'i', t: 1 } },
      { op: 'fastForwardCommit', alias: 'door-3', address: 'a', t: 1 },
      { op: 'publishGraphSource', alias: 'door-4', sourceType: 'x', config: {}, dependencies: [] },
      { op: 'publishGraphSource', alias: 'door-4', sourceType: 'x', config: {}, dependencies: [] },
    ]) {
      statuses.push((await post(handlers.publish, op)).status);
      world.clock.advance(1); // two calls in one millisecond would be the same to the letter, and so one
    }
    expect(statuses).toEqual([201, 200, 200, 201, 201, 201, 200]);
  });

  it('an error has its status over HTTP and its name in a task', async () => {
    await publish({ op: 'initLedger', alias: 'errors' });
    const conflict = { op: 'pushConfig', alias: 'errors', expected: { v: 4 }, next: { v: 5, payload: null } };
    const cases = [
      [{ op: 'initLedger', alias: 'errors' }, 409, 'AlreadyExists', { alias: 'errors:main', kind: 'ledger' }],
      [{ op: 'retract', alias: 'nobody' }, 404, 'NotFound', { alias: 'nobody:main' }],
      [{ op: 'retractGraphSource', alias: 'errors' }, 404, 'NotFound', { alias: 'errors:main', kind: 'ledger' }],
      [conflict, 409, 'Conflict', { alias: 'errors:main', actual: { v: 0, payload: null } }],
    ] as const;
    for (const [payload, status, code, context] of cases) {
      const http = await post(handlers.publish, payload);
      expect([http.status, http.headers?.['content-type']]).toEqual([status, 'application/problem+json']);
      expect(http.body).toMatchObject({ type: `urn:holdfast:error:${code}`, status, code, ...context });
      const task = await throughTask(handlers.publish, payload);
      expect(task).toMatchObject({ outcome: code, body: context });
    }
  });

  it('the adapters read one alias or a page', async () => {
    await publish({ op: 'initLedger', alias: 'page' });
    const one = await get(handlers.readNames, { alias: 'page' });
    expect([one.status, one.body]).toEqual([200, await lookUp('page')]);
    const page = await get(handlers.readNames, { prefix: 'page', kind: 'ledger', limit: '10' });
    expect(page.body).toEqual({ records: [await lookUp('page')], nextCursor: null });
    expect((await get(handlers.readNames, { alias: 'unknown' })).status).toBe(404);
  });

  it('a restore of a concern adds one read and one transaction', async () => {
    await publish({ op: 'initLedger', alias: 'restored' });
    await world.deleteRaw('restored:main', 'head');
    handlers.publish.requests.sent.length = 0;
    await post(handlers.publish, { op: 'publishCommit', alias: 'restored', address: 'a', t: 1 });
    expect(handlers.publish.requests.sent).toEqual(['UpdateItem', 'Query', 'TransactWriteItems', 'UpdateItem']);
  });
});

describe('the log', () => {
  it('the log names the alias as text, even if the store fails', async () => {
    const lines: string[] = [];
    vi.stubEnv('LOG_LEVEL', 'DEBUG');
    vi.resetModules(); // the logger reads its level when it is loaded
    const fresh = (await import(
      '../support/worlds/nameservice.ts'
    )) as typeof import('../support/worlds/nameservice.ts');
    for (const stream of [process.stdout, process.stderr])
      vi.spyOn(stream, 'write').mockImplementation((chunk) => lines.push(String(chunk)) > 0);
    const { handlers: logging } = await fresh.nameserviceWorld();
    await post(logging.publish, { op: 'initLedger', alias: 'logged' });
    for (const handler of [logging.publish, logging.readNames]) handler.requests.faults = Array(3).fill('throttle');
    await post(logging.publish, { op: 'publishCommit', alias: 'logged', address: 'a', t: 1 });
    await get(logging.readNames, { alias: 'logged' });
    await get(logging.readNames, {});
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    vi.resetModules(); // the modules were loaded with another log level
    const logged = lines.flatMap((line) => line.split('\n')).filter((line) => /"(answered|refused)"/.test(line));
    const parsed = logged.map((line) => JSON.parse(line) as { code?: string; alias?: string });
    expect(parsed.map(({ code, alias }) => [code, alias])).toEqual([
      [undefined, 'logged:main'],
      ['Throttled', 'logged:main'],
      ['Throttled', 'logged:main'],
      [undefined, undefined],
    ]);
  });
});

it('a creation that comes again in the same millisecond is answered as a repeat', async () => {
  const op = { op: 'initLedger', alias: 'same time', requestId: 'run-1' };
  expect(await publish(op)).toMatchObject({ created: true, repeated: false });
  expect(await publish(op)).toMatchObject({ created: false, repeated: true });
  const source = { op: 'publishGraphSource', alias: 'same time too', sourceType: 't', config: {}, dependencies: [] };
  const graph = { ...source, requestId: 'run-1' };
  await publish(source);
  expect(await publish(graph)).toMatchObject({ created: false, repeated: false });
  expect(await publish(graph)).toMatchObject({ created: false, repeated: true, current: { config: { v: 2 } } });
});

/** The request units that docs/nameservice.md names. */
const unitsOf = unitCounter(world.dynamodb);

describe('request units', () => {
  it.runIf(inject('countsUnits'))('a publish costs one request unit, and two if it writes the index', async () => {
    const alias = 'inventory';
    const pointer = { address: 's3://ledgers/inventory/commit/2.json', t: 2 };
    expect(await unitsOf(() => publish({ op: 'initLedger', alias }))).toEqual([11]);
    const ops = [
      { op: 'publishCommit', ...pointer },
      { op: 'publishIndex', ...pointer },
      { op: 'publishIndex', ...pointer, t: 3, allowEqual: true },
      { op: 'fastForwardCommit', ...pointer, t: 3 },
      { op: 'compareAndSetRef', ref: 'commit', expected: { ...pointer, t: 3 }, next: { ...pointer, t: 4 } },
      {
        op: 'pushStatus',
        expected: { state: 'ready', v: 1 },
        next: { state: 'indexing', v: 2, extra: { queued: 3 } },
      },
      { op: 'pushConfig', expected: { v: 0 }, next: { v: 1, payload: { defaultContextAddress: 'ctx' } } },
    ];
    for (const op of ops) expect(await unitsOf(() => publish({ alias, ...op })), op.op).toEqual([1]);
    expect(await unitsOf(() => publish({ op: 'retract', alias }))).toEqual([2]);
    const create = { op: 'compareAndSetRef', alias: 'created', ref: 'commit', expected: null, next: pointer };
    expect(await unitsOf(() => publish(create))).toEqual([11]);
  });

  it.runIf(inject('countsUnits'))('a repair costs its request units', async () => {
    const alias = 'repaired';
    await publish({ op: 'initLedger', alias });
    await publish({ op: 'retract', alias });
    const unborn = { address: null, t: 0 };
    const status = { state: 'ready', v: 1 };
    const expected = { kind: 'ledger', commit: unborn, index: unborn, status, config: { v: 0 } };
    const resets = [
      { op: 'resetRef', ref: 'commit', expected: unborn, next: unborn },
      { op: 'resetStatus', expected: status, next: status },
    ];
    for (const op of resets) expect(await unitsOf(() => repair({ alias, ...op })), op.op).toEqual([1]);
    const kind = { kind: 'ledger' };
    expect(await unitsOf(() => repair({ alias, op: 'unretract', expected: kind }))).toEqual([2]);
    await publish({ op: 'retract', alias });
    expect(await unitsOf(() => repair({ alias, op: 'purge', expected }))).toEqual([11]);
  });

  it.runIf(inject('countsUnits'))('a repair of a graph source costs nine request units', async () => {
    const source = { op: 'publishGraphSource', alias: 'search', sourceType: 'x', config: {}, dependencies: [] };
    expect(await unitsOf(() => publish(source))).toEqual([9]);
  });

  it('a lookup costs one request unit, and a listing five per alias', async () => {
    for (const alias of ['listed-1', 'listed-2']) await publish({ op: 'initLedger', alias });
    expect(await unitsOf(() => lookUp('listed-1'))).toEqual([1]);
    expect(await unitsOf(() => list({ kind: 'ledger', prefix: 'listed-' }))).toEqual([0.5, 10]);
  });
});
