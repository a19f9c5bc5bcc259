import {
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
} from '@aws-sdk/client-dynamodb';
import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_TRIES } from '../../shared/aws/dynamodb.ts';
import { call, type Requests } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

// A client of its own for each test: the SDK stops trying again once too many of its tries have failed.
let world: Awaited<ReturnType<typeof nameserviceWorld>>;
beforeEach(async () => {
  world = await nameserviceWorld();
});

const lookUp = (alias: string) => world.lookUp(alias);
const publish = (...[op, as]: Parameters<typeof world.publish>) => world.publish(op, as);

const init = (alias: string) => publish({ op: 'initLedger', alias });
const source = (alias: string, config: unknown = {}) => ({
  op: 'publishGraphSource',
  alias,
  sourceType: 'db:Bm25Index',
  config,
  dependencies: [],
});
const pointer = { address: 'a1', t: 1 };
const unborn = { address: null, t: 0 };

/** A write, and what must be written before it. */
interface Write {
  name: string;
  given?: (alias: string) => object;
  op: (alias: string) => object;
  creates?: true;
  /** Whether the write is a transaction, whose second try DynamoDB recognises by its token. */
  transaction?: true;
}

const WRITES: Write[] = [
  { name: 'initLedger', op: (alias) => ({ op: 'initLedger', alias }), creates: true, transaction: true },
  { name: 'publishCommit', given: ledger, op: (alias) => ({ op: 'publishCommit', alias, ...pointer }) },
  { name: 'publishIndex', given: ledger, op: (alias) => ({ op: 'publishIndex', alias, ...pointer }) },
  {
    name: 'publishIndex allowEqual',
    given: ledger,
    op: (alias) => ({ op: 'publishIndex', alias, ...pointer, allowEqual: true }),
  },
  { name: 'retract', given: ledger, op: (alias) => ({ op: 'retract', alias }) },
  {
    name: 'compareAndSetRef commit',
    given: ledger,
    op: (alias) => ({ op: 'compareAndSetRef', alias, ref: 'commit', expected: unborn, next: pointer }),
  },
  {
    name: 'compareAndSetRef index',
    given: ledger,
    op: (alias) => ({ op: 'compareAndSetRef', alias, ref: 'index', expected: unborn, next: pointer }),
  },
  {
    name: 'compareAndSetRef null',
    op: (alias) => ({ op: 'compareAndSetRef', alias, ref: 'commit', expected: null, next: pointer }),
    creates: true,
    transaction: true,
  },
  { name: 'fastForwardCommit', given: ledger, op: (alias) => ({ op: 'fastForwardCommit', alias, ...pointer }) },
  {
    name: 'pushStatus',
    given: ledger,
    op: (alias) => ({
      op: 'pushStatus',
      alias,
      expected: { state: 'ready', v: 1 },
      next: { state: 'indexing', v: 2, extra: { b: [1.5, { c: null }], a: 'x' } },
    }),
  },
  {
    name: 'pushConfig',
    given: ledger,
    op: (alias) => ({
      op: 'pushConfig',
      alias,
      expected: { v: 0 },
      next: { v: 1, payload: { defaultContextAddress: 'ctx', extra: { b: 1, a: true } } },
    }),
  },
  { name: 'publishGraphSource', op: (alias) => source(alias, { k: 1 }), creates: true, transaction: true },
  {
    name: 'publishGraphSource again',
    given: (alias) => source(alias),
    op: (alias) => source(alias, { k: 2 }),
    transaction: true,
  },
  {
    name: 'publishGraphSourceIndex',
    given: (alias) => source(alias),
    op: (alias) => ({ op: 'publishGraphSourceIndex', alias, ...pointer }),
  },
  { name: 'retractGraphSource', given: (alias) => source(alias), op: (alias) => ({ op: 'retractGraphSource', alias }) },
];

function ledger(alias: string): object {
  return { op: 'initLedger', alias };
}

async function prepared(write: Write, test: string): Promise<object> {
  const alias = `${test} ${write.name}`;
  if (write.given) await publish(write.given(alias));
  world.clock.advance(1000);
  return write.op(alias);
}

/** The items in the table without their times. */
async function items(op: object): Promise<unknown> {
  const stored = await world.rawItems(`${Reflect.get(op, 'alias')}:main`);
  return stored.map(({ updated_at_ms, ...item }) => item);
}

describe('a lost reply', () => {
  it.each(WRITES)('a lost reply of $name makes the next try a success', async (write) => {
    const op = await prepared(write, 'inner');
    world.requests.faults = lostAtLastWrite(write);
    const answer = await publish(op);
    expect(world.requests.faults).toEqual([]);
    const { creates = false, transaction = false } = write;
    expect(answer).toMatchObject({ outcome: 'updated', repeated: !transaction, created: creates });
  });

  it.each(WRITES)('a repeat of $name with the same requestId is a success, and says so', async (write) => {
    const op = await prepared(write, 'outer');
    world.requests.faults = [...lostAtLastWrite(write), ...Array(MAX_TRIES - 1).fill('neverSent')];
    const { code, context } = await failure(publish(op));
    expect(code).toBe('OutcomeUnknown');
    const { retryWith } = context as { retryWith: { requestId: string } };
    const stored = await items(op);

    world.clock.advance(90_000);
    const repeat = await publish({ ...op, ...retryWith });
    expect(repeat).toMatchObject({ outcome: 'updated', repeated: true, created: false });
    expect(await items(op)).toEqual(stored);
    expect(await publish({ ...op, ...retryWith })).toMatchObject({ repeated: true });
  });

  /** A redefinition writes in its second transaction: the first finds that the graph source exists. */
  function lostAtLastWrite({ name }: Write): Requests['faults'] {
    return name === 'publishGraphSource again' ? ['none', 'lostReply'] : ['lostReply'];
  }

  describe('creations', () => {
    const status = { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: 'busy', v: 2 } };
    const ledgerWrites = [
      { op: 'publishCommit', address: 'c5', t: 5 },
      { op: 'publishIndex', address: 'i5', t: 5 },
      { op: 'pushConfig', expected: { v: 0 }, next: { v: 1, payload: { extra: { a: 1 } } } },
      status,
      { op: 'retract' },
    ];
    const sourceWrites = [
      { op: 'publishGraphSourceIndex', address: 'i5', t: 5 },
      status,
      { ...source(''), sourceType: 'other' },
      { op: 'retractGraphSource' },
    ];
    it.each([
      [{ op: 'initLedger' }, ledgerWrites, { commit: { address: 'c5', t: 5 }, retracted: true }],
      [{ op: 'compareAndSetRef', ref: 'commit', expected: null, next: pointer }, ledgerWrites, { address: 'c5', t: 5 }],
      [{ op: 'compareAndSetRef', ref: 'index', expected: null, next: pointer }, ledgerWrites, { address: 'i5', t: 5 }],
      [source(''), sourceWrites, { sourceType: 'other', retracted: true, config: { v: 2 } }],
    ])('a creation is recognised after others have written over it: %j', async (operation, writes, current) => {
      const alias = 'moved on';
      const op = { ...operation, alias, requestId: 'first' };
      expect(await publish(op)).toMatchObject({ created: true });
      for (const write of writes) {
        world.clock.advance(1000);
        expect(await publish({ ...write, alias })).toMatchObject({ outcome: 'updated', repeated: false });
      }
      const stored = await world.rawItems('moved on:main');
      world.requests.sent.length = 0;
      expect(await publish(op)).toMatchObject({ repeated: true, created: false, current });
      expect(world.requests.sent).toEqual(['TransactWriteItems', 'Query']);
      expect(await world.rawItems('moved on:main')).toEqual(stored);
    });

    it('a redefinition is recognised after others have written over it', async () => {
      const alias = 'redefined';
      await publish(source(alias));
      const op = { ...source(alias, { k: 2 }), requestId: 'again' };
      expect(await publish(op)).toMatchObject({ current: { config: { v: 2 } } });
      for (const write of sourceWrites) {
        world.clock.advance(1000);
        await publish({ ...write, alias });
      }
      expect(await publish(op)).toMatchObject({ repeated: true, current: { sourceType: 'other', config: { v: 3 } } });
    });
  });

  it('a repeated creation is Unavailable if its alias was removed since', async () => {
    for (const op of [
      { op: 'initLedger', alias: 'removed' },
      { op: 'compareAndSetRef', alias: 'removed', ref: 'commit', expected: null, next: pointer },
      source('removed'),
    ]) {
      await publish({ ...op, requestId: 'first' });
      await remove('removed');
      world.clock.advance(1);
      const { code, context } = await failure(publish({ ...op, requestId: 'first' }));
      expect([code, context.retryAfterMs]).toEqual(['Unavailable', 1000]);
      expect(await world.rawItems('removed:main')).toEqual([]);
    }
  });

  it('a repeated creation is AlreadyExists if the alias has another kind by then', async () => {
    for (const [op, other] of [
      [{ op: 'initLedger', alias: 'turned' }, source('turned')],
      [{ op: 'compareAndSetRef', alias: 'turned', ref: 'commit', expected: null, next: pointer }, source('turned')],
      [source('turned'), { op: 'initLedger', alias: 'turned' }],
      [{ op: 'compareAndSetRef', alias: 'turned', ref: 'index', expected: null, next: pointer }, source('turned')],
    ] as const) {
      await publish({ ...op, requestId: 'first' });
      await remove('turned');
      world.clock.advance(1);
      await publish(other);
      const { code, context } = await failure(publish({ ...op, requestId: 'first' }));
      // Both kinds have an index, and that of the new kind is unborn.
      if ('ref' in op && op.ref === 'index') expect([code, context.actual]).toEqual(['Conflict', unborn]);
      else expect(code).toBe('AlreadyExists');
      await remove('turned');
    }
  });
});

/** Removes an alias as another client purges it. */
async function remove(name: string): Promise<void> {
  for (const { sk } of await world.rawItems(`${name}:main`)) await world.deleteRaw(`${name}:main`, sk?.S ?? '');
}

describe('a lost reply of a write that others wrote over', () => {
  /** The write lands, then `other` lands, and then the next try of the write comes. */
  const overwritten = (other: object) => async (send: () => Promise<unknown>) => {
    await send();
    await publish(other);
    throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
  };
  const alias = 'overwritten';
  const requestId = 'mine';
  const status = (v: number) => ({ state: v === 1 ? 'ready' : `s${v}`, v, extra: {} });
  const config = (v: number) => ({ v, payload: { extra: { v } } });
  const commit2 = { op: 'publishCommit', alias, address: 'a2', t: 2 };

  it.each([
    [{ op: 'compareAndSetRef', ref: 'commit', expected: unborn, next: pointer }, commit2, { address: 'a2', t: 2 }],
    [
      { op: 'compareAndSetRef', ref: 'index', expected: unborn, next: pointer },
      { op: 'publishIndex', alias, address: 'a2', t: 1, allowEqual: true },
      { address: 'a2', t: 1 },
    ],
    [{ op: 'fastForwardCommit', ...pointer }, commit2, { address: 'a2', t: 2 }],
    [
      { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: status(2) },
      { op: 'pushStatus', alias, expected: { state: 's2', v: 2 }, next: status(3) },
      status(3),
    ],
    [
      { op: 'pushConfig', expected: { v: 0 }, next: config(1) },
      { op: 'pushConfig', alias, expected: { v: 1 }, next: config(2) },
      config(2),
    ],
  ])('a lost reply of %j is not a conflict: the write may have won', async (op, other, actual) => {
    await init(alias);
    world.requests.faults = [overwritten(other)];
    const { code, context } = await failure(publish({ ...op, alias, requestId }));
    expect(code).toBe('OutcomeUnknown');
    expect(context).toEqual({ alias: 'overwritten:main', actual, retryWith: { requestId }, retryAfterMs: 1000 });
    const sure = await failure(publish({ ...op, alias, requestId }));
    expect([sure.code, sure.context.actual]).toEqual(['Conflict', actual]);
  });

  it.each([
    ['publishCommit', 'commit'],
    ['publishIndex', 'index'],
  ] as const)('a lost %s is stale, even if its value was read in between', async (op, part) => {
    await init(alias);
    const newer = { address: 'a2', t: 2 };
    const overwrite = overwritten({ op, alias, ...newer });
    const read: unknown[] = [];
    const land = async (send: () => Promise<unknown>) => {
      await send();
      read.push((await lookUp(alias))[part]);
    };
    world.requests.faults = [(send) => overwrite(() => land(send))];
    const answer = await publish({ op, alias, ...pointer });
    expect(answer).toMatchObject({ outcome: 'stale', repeated: false, current: newer });
    read.push((await lookUp(alias))[part]);
    expect(read).toEqual([pointer, newer]);
  });
});

describe('a late first try', () => {
  const alias = 'late';
  const index = (address: string) => ({ op: 'publishIndex', alias, address, t: 1, allowEqual: true });
  const cas = (from: string, to: string) => ({
    op: 'compareAndSetRef',
    alias,
    ref: 'index',
    expected: { address: from, t: 1 },
    next: { address: to, t: 1 },
  });

  /** The first try of each request is held back, and the SDK's second one goes through. Then all that was held arrives. */
  async function withLateTries(op: object): Promise<{ answer: object; arrive: () => Promise<void> }> {
    const held: (() => Promise<unknown>)[] = [];
    const hold = (send: () => Promise<unknown>) => {
      held.push(send);
      return Promise.reject(networkError('ECONNRESET', 'read'));
    };
    // If the index was replaced before, the first request only reads its revision.
    const isKnown =
      'index_revision' in ((await world.rawItems(`${alias}:main`)).find(({ sk }) => sk?.S === 'index') ?? {});
    world.requests.faults = isKnown ? ['none', hold, 'none'] : [hold, 'none', hold, 'none'];
    const answer = await publish(op);
    world.requests.faults = [];
    const arrive = async () => {
      const arrived = await Promise.allSettled(held.map((send) => send()));
      expect(arrived.length).toBeGreaterThan(0);
    };
    return { answer, arrive };
  }

  it.each([
    ['a reindex', [], index('B'), [index('A')]],
    ['a reindex, after another one', [index('X'), index('A')], index('B'), [index('C'), index('A')]],
    ['a compare-and-set', [], cas('A', 'B'), [cas('B', 'A')]],
    ['a compare-and-set, after a reindex', [index('X'), index('A')], cas('A', 'B'), [cas('B', 'C'), cas('C', 'A')]],
    ['a compare-and-set, and a reindex', [], cas('A', 'B'), [index('C'), index('A')]],
  ])("a late first try of %s does not undo others' writes at that t", async (_, before, op, others) => {
    await init(alias);
    for (const write of [index('A'), ...before]) await publish(write);
    const { answer, arrive } = await withLateTries(op);
    expect(answer).toMatchObject({ outcome: 'updated', repeated: false });
    for (const other of others) expect(await publish(other)).toMatchObject({ outcome: 'updated', repeated: false });
    await arrive();
    expect((await lookUp(alias)).index).toEqual({ address: 'A', t: 1 });
  });

  it('a refused compare-and-set does not win late when its expected value comes back', async () => {
    await init(alias);
    await publish(index('A'));
    await publish(index('C'));
    let again = async (): Promise<unknown> => undefined;
    world.requests.faults = [
      (send) => {
        again = send;
        return send();
      },
    ];
    expect((await failure(publish(cas('A', 'B')))).code).toBe('Conflict');
    await publish(index('A'));
    await again().catch(() => {});
    expect((await lookUp(alias)).index).toEqual({ address: 'A', t: 1 });
  });

  it('a reindex without an answer that others replaced is an unknown outcome', async () => {
    await init(alias);
    const landed = async (send: () => Promise<unknown>) => {
      await send();
      for (const address of ['C', 'D']) await publish(index(address));
      throw networkError('ECONNRESET', 'read');
    };
    for (const before of [[], [index('A')]]) {
      for (const write of before) await publish(write);
      world.requests.faults = before.length > 0 ? ['none', landed] : [landed];
      const { code, context } = await failure(publish({ ...index('B'), requestId: 'mine' }));
      expect([code, context.actual, context.retryWith]).toEqual([
        'OutcomeUnknown',
        { address: 'D', t: 1 },
        { requestId: 'mine' },
      ]);
      expect((await lookUp(alias)).index).toEqual({ address: 'D', t: 1 });
    }
    expect(await publish(index('B'))).toMatchObject({ outcome: 'updated', repeated: false });
  });
});

it('a foreign write between two requests of a reindex is seen by its time', async () => {
  await init('foreign');
  const index = (address: string) => ({ op: 'publishIndex', alias: 'foreign', address, t: 1, allowEqual: true });
  await publish(index('A'));
  const foreign = { pk: { S: 'foreign:main' }, sk: { S: 'index' }, index_t: { N: '1' }, index_address: { S: 'A' } };
  const after = (write: () => Promise<unknown>) => async (send: () => Promise<unknown>) => {
    await write();
    return send();
  };
  world.requests.faults = ['none', after(() => world.putRaw({ ...foreign, updated_at_ms: { N: '1999' } }))];
  world.requests.sent.length = 0;
  expect(await publish(index('B'))).toMatchObject({ outcome: 'updated' });
  expect(world.requests.sent).toEqual(['UpdateItem', 'UpdateItem', 'UpdateItem']);
});

it('16 callers that rebuild an index at one t replace it in turn', async () => {
  await init('rebuilt');
  const rebuild = (address: string) =>
    publish({ op: 'publishIndex', alias: 'rebuilt', address, t: 1, allowEqual: true });
  const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => rebuild(`i${i}`)));
  for (const answer of answers) expect(answer).toMatchObject({ outcome: 'updated', repeated: false });
  // A publish of a higher t removes the revision.
  await publish({ op: 'publishIndex', alias: 'rebuilt', address: 'next', t: 2 });
  expect((await world.rawItems('rebuilt:main')).find(({ sk }) => sk?.S === 'index')).not.toHaveProperty(
    'index_revision',
  );
});

it('a repeat with a -0, which DynamoDB does not know, is recognised', async () => {
  await init('minus');
  const extra = { a: -0, b: [{ c: -0 }] };
  for (const op of [
    { op: 'pushStatus', alias: 'minus', expected: { state: 'ready', v: 1 }, next: { state: 'x', v: 2, extra } },
    { op: 'pushConfig', alias: 'minus', expected: { v: -0 }, next: { v: 1, payload: { extra } } },
  ]) {
    await publish(op);
    expect(await publish(op)).toMatchObject({ repeated: true });
  }
});

describe('a requestId', () => {
  it("a requestId used for another request does not receive the first one's answer", async () => {
    const requestId = 'shared';
    const create = { op: 'compareAndSetRef', alias: 'owner', ref: 'commit', expected: null, next: pointer, requestId };
    await publish({ ...create });
    world.clock.advance(1);
    for (const [op, code] of [
      [{ op: 'initLedger', alias: 'owner', requestId }, 'AlreadyExists'],
      [{ ...create, next: { address: 'a2', t: 1 } }, 'Conflict'],
      [{ ...create, ref: 'index' }, 'Conflict'],
      [{ ...source('owner'), requestId }, 'AlreadyExists'],
    ] as const)
      expect((await failure(publish(op))).code).toBe(code);
    expect(await publish({ ...create, alias: 'other' })).toMatchObject({ created: true });
    expect(await publish({ ...source('source'), requestId })).toMatchObject({ created: true });
    const redefined = { ...source('source', { k: 2 }), requestId };
    expect(await publish(redefined)).toMatchObject({ repeated: false, current: { config: { v: 2 } } });
    world.clock.advance(1);
    expect(await publish(redefined)).toMatchObject({ repeated: true, current: { config: { v: 2 } } });
    expect(await publish(create)).toMatchObject({ repeated: true, current: pointer });
  });

  it('a requestId whose creation failed may be used again', async () => {
    const op = { op: 'initLedger', alias: 'claimed', requestId: 'mine' };
    await init('claimed');
    for (const _ of [1, 2]) {
      world.clock.advance(1);
      expect((await failure(publish(op))).code).toBe('AlreadyExists');
    }
    await remove('claimed');
    expect(await publish(op)).toMatchObject({ created: true });
  });

  it('a requestId of another caller is a different one', async () => {
    const as = (principal: string) => ({ principal, signal: new AbortController().signal, timeLeftMs: () => 30_000 });
    const op = { op: 'initLedger', alias: 'principals', requestId: 'run-1' };
    await publish(op, as('alice'));
    world.clock.advance(1);
    expect((await failure(publish(op, as('bob')))).code).toBe('AlreadyExists');
    expect(await publish({ ...op, alias: 'principals-2' }, as('bob'))).toMatchObject({ created: true });
    expect(await publish(op, as('alice'))).toMatchObject({ repeated: true });
  });

  it('a requestId may have any allowed length, because only its hash is sent', async () => {
    world.intercepted.by = async (_, input, next) => {
      expect(input).toMatchObject({ ClientRequestToken: expect.stringMatching(/^[\w-]{36}$/) });
      return next();
    };
    await publish({ op: 'initLedger', alias: 'long id', requestId: 'ü'.repeat(128) });
    delete world.intercepted.by;
  });
});

const cancelled = (...codes: (string | undefined)[]) =>
  new TransactionCanceledException({
    message: 'Transaction cancelled',
    $metadata: { httpStatusCode: 400 },
    CancellationReasons: codes.map((Code) => ({ Code })),
  });
const met = () =>
  new TransactionConflictException({ message: 'Transaction is ongoing', $metadata: { httpStatusCode: 400 } });

/** Throws for the first `times` commands called `name`. */
function inTheWay(name: string, times: number, error: () => Error): () => number {
  let met = 0;
  world.intercepted.by = (command, _, next) => (command === name && met++ < times ? Promise.reject(error()) : next());
  return () => met;
}

describe('a conflicting transaction', () => {
  it('a transaction waits until a conflicting transaction has ended', async () => {
    const before = world.clock.now();
    inTheWay('TransactWriteItems', 4, () => cancelled('TransactionConflict', 'None', 'None', 'None', 'None'));
    expect(await init('conflict-1')).toMatchObject({ created: true });
    const waitedMs = world.clock.now() - before;
    expect(waitedMs).toBeGreaterThan((25 + 50 + 100 + 200) / 2);
    expect(waitedMs).toBeLessThanOrEqual(25 + 50 + 100 + 200);
  });

  it('a call is Throttled if a conflicting transaction takes too long', async () => {
    const tries = inTheWay('TransactWriteItems', 99, () => cancelled('None', 'TransactionConflict'));
    const { code, context } = await failure(init('conflict-2'));
    expect([code, context.retryAfterMs, tries()]).toEqual(['Throttled', 1000, 5]);
    delete world.intercepted.by;
    expect(await init('conflict-2')).toMatchObject({ created: true });
  });

  it('a plain write waits until a conflicting transaction has ended', async () => {
    await init('conflict-3');
    inTheWay('UpdateItem', 4, met);
    expect(await publish({ op: 'publishCommit', alias: 'conflict-3', ...pointer })).toMatchObject({
      outcome: 'updated',
      repeated: false,
    });
  });

  it("a transaction that is in a plain write's way for too long is Throttled", async () => {
    await init('conflict-3');
    const tries = inTheWay('UpdateItem', 99, met);
    const { code } = await failure(publish({ op: 'publishCommit', alias: 'conflict-3', address: 'a2', t: 2 }));
    expect([code, tries()]).toEqual(['Throttled', 5]);
    delete world.intercepted.by;
    expect((await world.lookUp('conflict-3')).commit).toEqual(unborn);
  });

  it.each(['lostReply', 'error500'] as const)(
    'a conflicting transaction after a %s makes the outcome unknown',
    async (fault) => {
      const op = { op: 'initLedger', alias: 'conflict-4' };
      world.requests.faults = [fault, ...Array(5).fill(() => Promise.reject(cancelled('TransactionConflict')))];
      const { code, context } = await failure(publish({ ...op, requestId: 'mine' }));
      expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: 'mine' }]);
      expect(world.requests.faults).toEqual([]);
      world.clock.advance(1000);
      const landed = fault === 'lostReply';
      expect(await publish({ ...op, requestId: 'mine' })).toMatchObject({ repeated: landed, created: !landed });
    },
  );

  it('an outcome stays unknown even if the last try is throttled or refused', async () => {
    const conflict = () => Promise.reject(cancelled('TransactionConflict'));
    for (const last of ['throttle', 'neverSent'] as const) {
      world.requests.faults = ['lostReply', conflict, ...Array(MAX_TRIES).fill(last)];
      const { code, context } = await failure(publish({ op: 'initLedger', alias: last, requestId: 'mine' }));
      expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: 'mine' }]);
    }
  });

  it('a transaction carries one token for each call, even without a requestId', async () => {
    const tokens: unknown[] = [];
    world.intercepted.by = async (command, input: { ClientRequestToken?: string }, next) => {
      if (command !== 'TransactWriteItems') return next();
      tokens.push(input.ClientRequestToken);
      return tokens.length % 3 ? Promise.reject(cancelled('TransactionConflict')) : next();
    };
    await init('conflict-5');
    await world.deleteRaw('conflict-5:main', 'head');
    await publish({ op: 'publishCommit', alias: 'conflict-5', ...pointer });
    expect([new Set(tokens.slice(0, 3)).size, new Set(tokens.slice(3)).size, tokens.length]).toEqual([1, 1, 6]);
    expect(tokens).not.toContain(undefined);
    expect(new Set(tokens).size).toBe(2);
  });

  it('a call waits for a conflicting transaction only while it has time left', async () => {
    await init('hurried');
    const hurried = call({ timeLeftMs: () => 5 });
    const before = world.clock.now();
    inTheWay('TransactWriteItems', 99, () => cancelled('TransactionConflict'));
    expect((await failure(publish({ op: 'initLedger', alias: 'hurried-2' }, hurried))).code).toBe('Throttled');
    inTheWay('UpdateItem', 99, met);
    const op = { op: 'publishCommit', alias: 'hurried', ...pointer };
    expect((await failure(publish(op, hurried))).code).toBe('Throttled');
    expect(world.clock.now() - before).toBe(2 * 4 * 5);
  });

  it('a call waits for its own earlier try', async () => {
    const options = { message: 'in progress', $metadata: { httpStatusCode: 400 } };
    inTheWay('TransactWriteItems', 4, () => new TransactionInProgressException(options));
    expect(await init('conflict-6')).toMatchObject({ created: true });
    inTheWay('TransactWriteItems', 99, () => new TransactionInProgressException(options));
    expect((await failure(init('conflict-7'))).code).toBe('Throttled');
  });

  it('a transaction cancelled by throttling is tried again; another reason is named', async () => {
    for (const code of ['ThrottlingError', 'ProvisionedThroughputExceeded', undefined]) {
      inTheWay('TransactWriteItems', 1, () => cancelled(code, 'None'));
      expect(await init(`throttled by ${code}`)).toMatchObject({ created: true });
    }
    inTheWay('TransactWriteItems', 1, () => cancelled('ValidationError', 'None'));
    const { code, message, context } = await failure(init('invalid'));
    expect([code, context.retryAfterMs]).toEqual(['Unavailable', 1000]);
    expect(message).toMatch(/cannot be used \(ValidationError\): send the call again later$/);
    delete world.intercepted.by;
  });

  it('a lost condition is reported, even if a transaction conflicted before', async () => {
    await init('both reasons');
    inTheWay('TransactWriteItems', 1, () => cancelled('ConditionalCheckFailed', 'TransactionConflict'));
    // The kind is read, because the reasons of the transaction do not contain it.
    const kind = 'ledger';
    expect(await failure(init('both reasons'))).toMatchObject({ code: 'AlreadyExists', context: { kind } });
    delete world.intercepted.by;
  });
});

describe('a store that fails', () => {
  it.each([
    ['throttle', 'Throttled'],
    ['neverSent', 'Unavailable'],
    ['error500', 'OutcomeUnknown'],
  ] as const)('a store that fails by %s on every try of a write is %s', async (fault, code) => {
    await init(`fails-${fault}`);
    for (const op of [
      { op: 'publishCommit', alias: `fails-${fault}`, ...pointer },
      { op: 'initLedger', alias: `fails-${fault}-2` },
    ]) {
      world.requests.faults = Array(MAX_TRIES).fill(fault);
      expect((await failure(publish(op))).code).toBe(code);
      expect(world.requests.faults).toEqual([]);
    }
    expect((await world.lookUp(`fails-${fault}`)).commit).toEqual(unborn);
  });

  it('a store that fails on a read is never an unknown outcome', async () => {
    for (const [fault, code] of [
      ['throttle', 'Throttled'],
      ['error500', 'Unavailable'],
    ] as const) {
      world.requests.faults = Array(MAX_TRIES).fill(fault);
      expect((await failure(world.lookUp('anything'))).code).toBe(code);
    }
  });

  it('a store that fails after the restore of a concern does not lose records', async () => {
    await init('half restored');
    await world.deleteRaw('half restored:main', 'head');
    world.requests.faults = ['none', 'none', 'none', ...Array(MAX_TRIES).fill('neverSent')];
    const op = { op: 'publishCommit', alias: 'half restored', ...pointer };
    expect((await failure(publish(op))).code).toBe('Unavailable');
    expect((await world.lookUp('half restored')).commit).toEqual(unborn);
    expect(await publish(op)).toMatchObject({ outcome: 'updated', repeated: false });
  });
});
