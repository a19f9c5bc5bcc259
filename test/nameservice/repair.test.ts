import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_TRIES } from '../../shared/aws/dynamodb.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { post, throughTask } from '../support/stack/adapters.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

let world: Awaited<ReturnType<typeof nameserviceWorld>>;
beforeEach(async () => {
  world = await nameserviceWorld();
  await publish({ op: 'initLedger', alias });
  await publish({ op: 'initLedger', alias: 'other' });
});

const alias = 'l';
const TOO_FAR = Number.MAX_SAFE_INTEGER;
const publish = (op: object) => world.publish(op);
const repair = (op: object) => world.repair({ alias, ...op });
const lookUp = () => world.lookUp(alias);
const items = () => world.rawItems('l:main');
const at = (t: number, address: string | null = `a${t}`) => ({ address, t });

/** A world in which one call has ruined everything that counts up. */
async function ruin(): Promise<void> {
  await publish({ op: 'publishCommit', alias, ...at(5) });
  await publish({ op: 'publishCommit', alias, ...at(TOO_FAR) });
  await publish({ op: 'publishIndex', alias, ...at(TOO_FAR) });
  await publish({
    op: 'pushStatus',
    alias,
    expected: { state: 'ready', v: 1 },
    next: { state: 'busy', v: TOO_FAR, extra: { a: 1 } },
  });
  await publish({ op: 'pushConfig', alias, expected: { v: 0 }, next: { v: TOO_FAR, payload: { extra: { a: 1 } } } });
  await publish({ op: 'retract', alias });
}

const resetCommit = { op: 'resetRef', ref: 'commit', expected: at(TOO_FAR), next: at(5) };
const resetIndex = { op: 'resetRef', ref: 'index', expected: at(TOO_FAR), next: at(0, null) };
const resetStatus = {
  op: 'resetStatus',
  expected: { state: 'busy', v: TOO_FAR },
  next: { state: 'ready', v: 2 },
};
const resetConfig = { op: 'resetConfig', expected: { v: TOO_FAR }, next: { v: 1, payload: null } };
const unretract = { op: 'unretract', expected: { kind: 'ledger' } };
const purge = {
  op: 'purge',
  expected: {
    kind: 'ledger',
    commit: at(TOO_FAR),
    index: at(TOO_FAR),
    status: { state: 'busy', v: TOO_FAR },
    config: { v: TOO_FAR },
  },
};
const RESETS = [resetCommit, resetIndex, resetStatus, resetConfig, unretract];

describe('a repair', () => {
  it('a repair reverts what a publish cannot, and publishing goes on from there', async () => {
    await ruin();
    expect(await repair(resetCommit)).toEqual({ alias: 'l:main', op: 'resetRef', repeated: false, current: at(5) });
    expect(await repair(resetIndex)).toMatchObject({ repeated: false, current: at(0, null) });
    expect(await repair(resetStatus)).toMatchObject({ current: { state: 'ready', v: 2, extra: {} } });
    expect(await repair(resetConfig)).toMatchObject({ current: { v: 1, payload: null } });
    expect(await repair(unretract)).toMatchObject({ repeated: false, current: { retracted: false } });
    expect(await lookUp()).toMatchObject({
      retracted: false,
      commit: at(5),
      index: at(0, null),
      status: { state: 'ready', v: 2, extra: {} },
      config: { v: 1, payload: null },
    });

    expect(await publish({ op: 'publishCommit', alias, ...at(6) })).toMatchObject({ outcome: 'updated' });
    expect(await publish({ op: 'publishIndex', alias, ...at(1) })).toMatchObject({ outcome: 'updated' });
    const next = { state: 'indexing', v: 3 };
    expect(await publish({ op: 'pushStatus', alias, expected: { state: 'ready', v: 2 }, next })).toMatchObject({
      outcome: 'updated',
    });
    expect(await publish({ op: 'retract', alias })).toMatchObject({ repeated: false });
  });

  it('a purge frees the alias, and leaves the rows of other clients', async () => {
    await ruin();
    await world.putRaw({ pk: { S: 'l:main' }, sk: { S: `commit#${'0'.repeat(20)}` } });
    expect(await repair(purge)).toEqual({ alias: 'l:main', op: 'purge', repeated: false, current: null });
    expect((await items()).map(({ sk }) => sk?.S)).toEqual([`commit#${'0'.repeat(20)}`]);
    expect((await failure(lookUp())).code).toBe('NotFound');
    expect(await publish({ op: 'initLedger', alias })).toMatchObject({ created: true });
    expect(await world.lookUp('other')).toMatchObject({ retracted: false });
  });

  it('a purge removes graph sources, and what another purge left behind', async () => {
    const source = { op: 'publishGraphSource', alias: 's', sourceType: 'x', config: {}, dependencies: [] };
    await publish(source);
    await publish({ op: 'retractGraphSource', alias: 's' });
    const expected = {
      kind: 'graph_source',
      index: at(0, null),
      status: { state: 'ready', v: 1 },
      config: { v: 1 },
    };
    expect(await repair({ op: 'purge', alias: 's', expected })).toMatchObject({ current: null });
    expect(await world.rawItems('s:main')).toEqual([]);

    for (const sk of ['meta', 'index']) await world.deleteRaw('l:main', sk);
    expect(await repair({ op: 'purge', expected: null })).toMatchObject({ current: null });
    expect(await items()).toEqual([]);
    expect((await failure(repair({ op: 'purge', expected: null }))).code).toBe('NotFound');
    expect((await failure(repair(purge))).code).toBe('NotFound');
    await world.putRaw({ pk: { S: 'l:main' }, sk: { S: 'genesis' } });
    expect((await failure(repair({ op: 'purge', expected: null }))).code, 'a row of another client').toBe('NotFound');
    expect(await items()).toHaveLength(1);
  });

  it('a repair of an index sets a revision, so that earlier writes fail', async () => {
    await ruin();
    await repair({ ...resetIndex, next: at(5) });
    await repair(resetCommit);
    const revisionOf = async (name: string) => (await items()).find(({ sk }) => sk?.S === name)?.index_revision?.S;
    const revision = await revisionOf('index');
    expect([revision, await revisionOf('head')]).toEqual([expect.any(String), undefined]);
    await repair({ ...resetIndex, expected: at(5), next: at(5) });
    expect(await revisionOf('index')).not.toBe(revision);
  });

  it('a repair of a ref under the other name leaves one address', async () => {
    const commit = { commit_id: { S: 'a9' }, commit_t: { N: '9' }, updated_at_ms: { N: '1' } };
    await world.putRaw({ pk: { S: 'l:main' }, sk: { S: 'head' }, ...commit });
    await repair({ ...resetCommit, expected: at(9) });
    const head = (await items()).find(({ sk }) => sk?.S === 'head');
    expect(head).toMatchObject({ commit_address: { S: 'a5' }, commit_t: { N: '5' } });
    expect(head).not.toHaveProperty('commit_id');
  });

  it('a purge refuses a config that a ledger cannot have', async () => {
    await ruin();
    const config = { config_json: { S: '{}' }, config_v: { N: String(TOO_FAR) } };
    await world.putRaw({ pk: { S: 'l:main' }, sk: { S: 'config' }, ...config });
    expect(await failure(repair(purge))).toMatchObject({ code: 'Conflict', context: { actual: purge.expected } });
    expect(await items()).toHaveLength(5);
  });

  it.each([
    [resetCommit, { op: 'publishCommit' }, { expected: at(7) }, at(TOO_FAR)],
    [resetIndex, {}, { expected: at(7), next: at(6) }, at(TOO_FAR)],
    [resetStatus, {}, { expected: { state: 'ready', v: TOO_FAR } }, { state: 'busy', v: TOO_FAR, extra: { a: 1 } }],
    [resetConfig, {}, { expected: { v: 7 } }, { v: TOO_FAR, payload: { extra: { a: 1 } } }],
    [purge, {}, { expected: { ...purge.expected, config: { v: 1 } } }, { ...purge.expected, retracted: true }],
    [purge, {}, { expected: null }, { ...purge.expected, retracted: true }],
    [purge, {}, { expected: { ...purge.expected, commit: at(0, null) } }, { ...purge.expected, retracted: true }],
  ])('a repair of anything that changed after it was seen is a Conflict: %o', async (op, _, wrong, actual) => {
    await ruin();
    const before = await items();
    expect(await failure(repair({ ...op, ...wrong }))).toMatchObject({
      code: 'Conflict',
      context: { alias: 'l:main', actual },
    });
    expect(await items()).toEqual(before);
  });

  it('a purge refuses a record that is not retracted', async () => {
    const { kind, commit, index, status, config } = (await lookUp()) as never as typeof purge.expected;
    const expected = { kind, commit, index, status: { state: status.state, v: status.v }, config: { v: config.v } };
    const { code, context } = await failure(repair({ op: 'purge', expected }));
    expect([code, context.actual]).toEqual(['Conflict', { ...expected, retracted: false }]);
    expect(await items()).toHaveLength(5);
  });

  it('a purge refuses an alias with branches of Fluree until they are dropped', async () => {
    await ruin();
    const meta = (await items()).find(({ sk }) => sk?.S === 'meta');
    await world.putRaw({ ...meta, branches: { N: '2' } });
    const before = await items();
    expect(await failure(repair(purge))).toMatchObject({
      code: 'Conflict',
      message: '2 Fluree branches began at the alias: drop the branches with Fluree first',
      context: { actual: { ...purge.expected, retracted: true } },
    });
    expect(await items()).toEqual(before);
    await world.putRaw({ ...meta, branches: { N: '0' } });
    expect(await repair(purge)).toMatchObject({ current: null });
  });

  it('a repair of an unknown alias or of another kind is NotFound', async () => {
    for (const op of RESETS)
      expect((await failure(world.repair({ ...op, alias: 'ghost' }))).code, JSON.stringify(op)).toBe('NotFound');
    expect(await world.rawItems('ghost:main')).toEqual([]);
    const { code, context } = await failure(repair({ op: 'unretract', expected: { kind: 'graph_source' } }));
    expect([code, context.kind]).toEqual(['NotFound', 'ledger']);
    for (const [sk, op] of [
      ['head', resetCommit],
      ['index', resetIndex],
      ['status', { ...resetStatus, expected: { state: 'ready', v: 1 }, next: { state: 'new', v: 0 } }],
      ['config', { ...resetConfig, expected: { v: 0 }, next: { v: 0, payload: null } }],
    ] as const) {
      await world.deleteRaw('l:main', sk);
      expect((await failure(repair(op))).code, sk).toBe('NotFound');
    }
    expect((await items()).map(({ sk }) => sk?.S)).toEqual(['meta']);
    const stub = { pk: { S: 'stub:main' }, sk: { S: 'meta' }, kind: { S: 'ledger' } };
    await world.putRaw(stub); // no flag says that it is retracted
    expect(await world.repair({ ...unretract, alias: 'stub' })).toMatchObject({ repeated: true });
    expect(await world.rawItems('stub:main')).toEqual([stub]);
  });
});

it('a repair comes by HTTP or as a task, with its own role', async () => {
  await ruin();
  const { repairNames } = world.handlers;
  expect(await post(repairNames, { alias, ...resetCommit })).toMatchObject({ status: 200, body: { current: at(5) } });
  const wrong = await throughTask(repairNames, { alias, ...purge });
  expect([wrong.outcome, wrong.body.actual]).toEqual([
    'Conflict',
    { ...purge.expected, commit: at(5), retracted: true },
  ]);
  const right = await throughTask(repairNames, { alias, ...purge, expected: { ...purge.expected, commit: at(5) } });
  expect(right.body).toEqual({ alias: 'l:main', op: 'purge', repeated: false, current: null });
});

describe('an answer to a repair that gets lost', () => {
  it.each([...RESETS, purge])('a repair $op whose answer is lost is found by the next try', async (op) => {
    await ruin();
    world.requests.faults = ['lostReply'];
    const requestId = 'mine';
    // DynamoDB recognises a repeated purge by its token. The next try of another repair finds its own value.
    expect(await repair({ ...op, requestId })).toMatchObject({ repeated: op !== purge });
    const after = await items();
    world.clock.advance(5000);
    const current = op === unretract ? { retracted: false } : op === purge ? null : (op as typeof resetCommit).next;
    expect(await repair({ ...op, requestId })).toMatchObject({ repeated: op !== purge, current });
    expect(await items()).toEqual(after);
  });

  it('a repair that may have landed is OutcomeUnknown, with a requestId for repeats', async () => {
    await ruin();
    for (const op of [resetCommit, purge]) {
      world.requests.faults = ['lostReply', ...Array(MAX_TRIES - 1).fill('neverSent')];
      const { code, context } = await failure(repair({ ...op, ...(op === purge && { expected: seenAfter }) }));
      expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
    }
    expect(await items()).toEqual([]);
  });
  const seenAfter = { ...purge.expected, commit: at(5) };
});

describe('a write from before a repair', () => {
  it.each([
    [{ op: 'publishCommit', ...at(TOO_FAR - 1) }, resetCommitBelow()],
    [
      { op: 'publishIndex', ...at(TOO_FAR - 1) },
      { ...resetIndex, expected: at(TOO_FAR - 1) },
    ],
    [{ op: 'retract' }, unretract],
    [
      { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: 'busy', v: 9 } },
      { op: 'resetStatus', expected: { state: 'busy', v: 9 }, next: { state: 'ready', v: 1 } },
    ],
    [
      { op: 'pushConfig', expected: { v: 0 }, next: { v: 9, payload: null } },
      { op: 'resetConfig', expected: { v: 9 }, next: { v: 0, payload: null } },
    ],
    [
      { op: 'compareAndSetRef', ref: 'commit', expected: at(0, null), next: at(9) },
      { op: 'resetRef', ref: 'commit', expected: at(9), next: at(0, null) },
    ],
  ])('a write from before a repair does not land after it: %o', async (write, undo) => {
    let arrive = async (): Promise<unknown> => undefined;
    world.requests.faults = [
      (send) => {
        arrive = send;
        return Promise.reject(networkError('ECONNRESET', 'read'));
      },
    ];
    expect(await publish({ alias, ...write })).toMatchObject({ outcome: 'updated', repeated: false });
    // The clock that repairs is a second behind the one that published.
    world.clock.advance(-990);
    await repair(undo);
    const after = await items();
    await arrive().catch(() => {});
    expect(await items()).toEqual(after);
  });

  function resetCommitBelow() {
    return { op: 'resetRef', ref: 'commit', expected: at(TOO_FAR - 1), next: at(0, null) };
  }

  it('a write right after a repair waits until the repair has ended', async () => {
    await ruin();
    await repair(resetCommit);
    const before = world.clock.now();
    world.requests.sent.length = 0;
    expect(await publish({ op: 'publishCommit', alias, ...at(6) })).toMatchObject({ outcome: 'updated' });
    expect(world.requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
    expect(world.clock.now() - before).toBe(1001);
    await repair({ ...resetCommit, expected: at(6) });
    world.clock.advance(1000); // the last millisecond of the repair
    expect(await publish({ op: 'publishCommit', alias, ...at(6) })).toMatchObject({ outcome: 'updated' });
  });

  it('a write from before a repair is unknown if a try was not answered', async () => {
    await publish({ op: 'publishCommit', alias, ...at(5) });
    world.requests.faults = [
      async (send) => {
        await send();
        await repair({ op: 'resetRef', ref: 'commit', expected: at(7), next: at(5) });
        throw networkError('ECONNRESET', 'read');
      },
    ];
    expect((await failure(publish({ op: 'publishCommit', alias, ...at(7) }))).code).toBe('OutcomeUnknown');
    expect((await lookUp()).commit).toEqual(at(5));
  });

  describe('a reindex without an answer', () => {
    const index = (address: string) => ({ op: 'publishIndex', alias, ...at(1, address), allowEqual: true });
    /** The reindex lands and is undone, and a later one raises the ref again, which removes the revision. */
    const undone = (undo: () => Promise<unknown>) => async (send: () => Promise<unknown>) => {
      await send();
      await undo();
      world.clock.advance(1001);
      await publish(index('newer'));
      throw networkError('ECONNRESET', 'read');
    };
    const setBack = undone(() => repair({ ...resetIndex, expected: at(1, 'own') }));
    const isUnknown = async () => {
      const { code, context } = await failure(publish(index('own')));
      expect([code, context.actual]).toEqual(['OutcomeUnknown', at(1, 'newer')]);
      expect((await lookUp()).index).toEqual(at(1, 'newer'));
    };

    it('a reindex without an answer is unknown if others raised the ref again', async () => {
      world.requests.faults = [setBack];
      await isUnknown();
      // An old repair does not make a later reindex unknown.
      world.requests.faults = ['neverSent'];
      expect(await publish(index('later'))).toMatchObject({ outcome: 'updated', repeated: false });
    });

    it('a replacing reindex without an answer does not take effect a second time', async () => {
      await publish(index('old'));
      world.requests.faults = ['none', setBack];
      await isUnknown();
    });

    it('a reindex that restored its item does not take effect a second time', async () => {
      await world.deleteRaw('l:main', 'index');
      world.requests.faults = ['none', 'none', 'none', setBack]; // no item, a read of the alias, and the item restored
      await isUnknown();
    });

    it('a reindex does not take effect twice if others have restored the item', async () => {
      const restored = async (send: () => Promise<unknown>) => {
        await publish(index('newer'));
        return send();
      };
      const gone = async (send: () => Promise<unknown>) => {
        await send();
        await world.deleteRaw('l:main', 'index');
        throw networkError('ECONNRESET', 'read');
      };
      world.requests.faults = [gone, 'none', 'none', restored]; // no item, a read of the alias, and the item restored
      await isUnknown();
    });
  });

  it('a write from before a repair is stale if a newer commit came', async () => {
    const commit = (address: string) => ({ op: 'publishCommit', alias, ...at(7, address) });
    world.requests.faults = [
      async (send) => {
        await send();
        await repair({ op: 'resetRef', ref: 'commit', expected: at(7, 'own'), next: at(0, null) });
        world.clock.advance(1001);
        await publish(commit('newer'));
        throw networkError('ECONNRESET', 'read');
      },
    ];
    expect(await publish(commit('own'))).toMatchObject({ outcome: 'stale', current: at(7, 'newer') });
  });

  it('a write from before a repair does not land after a delayed repair', async () => {
    const start = world.clock.now();
    await publish({ op: 'publishIndex', alias, ...at(9) });
    world.clock.advance(900); // an administrator whose clock is ahead
    await repair({ ...resetIndex, expected: at(9), next: at(8) });
    world.clock.set(start);
    let arrive = async (): Promise<unknown> => undefined;
    world.clock.at(start + 1500, async () => {
      world.requests.faults = [
        (send) => {
          arrive = send;
          return Promise.reject(networkError('ECONNRESET', 'read'));
        },
      ];
      expect(await publish({ op: 'publishIndex', alias, ...at(5) })).toMatchObject({ outcome: 'stale' });
    });
    await repair({ ...resetIndex, expected: at(8) });
    expect(world.clock.now()).toBe(start + 1901);
    await arrive();
    expect((await lookUp()).index).toEqual(at(0, null));
  });

  it('a write is refused if the clock that repaired is too far ahead', async () => {
    await publish({ op: 'publishCommit', alias, ...at(5) });
    world.clock.advance(60_000);
    await repair({ op: 'resetRef', ref: 'commit', expected: at(5), next: at(4) });
    world.clock.advance(-60_000);
    const late = { op: 'publishCommit', alias, ...at(6) };
    for (const timeLeftMs of [10_000, 61_000])
      expect(await failure(world.publish(late, call({ timeLeftMs: () => timeLeftMs })))).toMatchObject({
        code: 'Unavailable',
        context: { retryAfterMs: 61_001 },
      });
  });
});

it('an unretract without an answer is unknown if the alias was retracted again', async () => {
  await publish({ op: 'retract', alias });
  world.requests.faults = [
    async (send) => {
      await send();
      await publish({ op: 'retract', alias });
      throw networkError('ECONNRESET', 'read');
    },
  ];
  const { code, context } = await failure(repair(unretract));
  expect([code, context]).toMatchObject(['OutcomeUnknown', { actual: { retracted: true } }]);
});

describe('bad input', () => {
  it.each([
    [{ ...resetCommit, next: at(TOO_FAR + 1) }, 'next.t'],
    [{ ...resetCommit, expected: at(4), next: at(5) }, 'next.t'],
    [{ ...resetCommit, next: at(1, null) }, 'next.t'],
    [{ ...resetCommit, ref: 'head' }, 'ref'],
    [{ ...resetCommit, expected: null }, 'expected'],
    [{ ...resetStatus, next: { state: 'x', v: 9 }, expected: { state: 'x', v: 8 } }, 'next.v'],
    [{ ...resetConfig, expected: { v: 0 } }, 'next.v'],
    [{ ...resetConfig, next: { v: 0 } }, 'next.payload'],
    [{ ...unretract, expected: {} }, 'expected.kind'],
    [{ op: 'purge' }, 'expected'],
    [{ ...purge, expected: { ...purge.expected, commit: undefined } }, 'expected.commit'],
    [{ ...purge, expected: { ...purge.expected, kind: 'graph_source' } }, 'expected.commit'],
    [{ ...purge, expected: { ...purge.expected, updatedAt: 'x' } }, 'expected.updatedAt'],
    [{ ...unretract, alias: 'a:b:c' }, 'alias'],
    [{ ...unretract, surplus: 1 }, 'surplus'],
    [{ op: 'publishCommit' }, 'op'],
    [{}, 'op'],
  ])('bad input to a repair is named, and not sent: %j', async (op, path) => {
    const { requests } = world.handlers.repairNames;
    const { outcome, body } = await throughTask(world.handlers.repairNames, { alias, ...op });
    expect(outcome).toBe('InvalidRequest');
    expect((body.issues as { path: string }[]).map((issue) => issue.path)).toContain(path);
    expect(requests.sent).toEqual([]);
  });

  it('bad input to a repair names all operations if op is unknown', async () => {
    const { body } = await throughTask(world.handlers.repairNames, { alias, op: 'publishCommit' });
    const message = 'must be one of resetRef, resetStatus, resetConfig, unretract, purge';
    expect(body.issues).toEqual([{ path: 'op', message }]);
    expect(world.handlers.repairNames.requests.sent).toEqual([]);
  });

  it('bad input to a repair includes an address that must be a CID', async () => {
    const g2 = await nameserviceWorld({ pointerStyle: 'id' });
    const payload = { defaultContextAddress: 'fluree:file://context' };
    for (const [op, path] of [
      [resetCommit, 'next.address'],
      [{ ...resetConfig, next: { v: 1, payload } }, 'next.payload.defaultContextAddress'],
    ] as const) {
      const { code, context } = await failure(g2.repair({ alias, ...op }));
      expect([code, context.issues]).toMatchObject(['InvalidRequest', [{ path }]]);
    }
    // An unborn ref has no address.
    await g2.publish({ op: 'initLedger', alias });
    const unborn = { ...resetIndex, alias, expected: at(0, null) };
    expect(await g2.repair(unborn)).toMatchObject({ current: at(0, null) });
  });
});

describe('a retraction', () => {
  const meta = { pk: { S: 'back:main' }, sk: { S: 'meta' }, kind: { S: 'ledger' } };
  const retract = { op: 'retract', alias: 'back' };

  it('a retraction shows the alias as retracted, the first time and again', async () => {
    await publish({ op: 'initLedger', alias: 'back' });
    expect(await publish(retract)).toMatchObject({ repeated: false, current: { retracted: true } });
    expect(await publish(retract)).toMatchObject({ repeated: true, current: { retracted: true } });
  });

  it.each([
    ['was taken back', async () => world.repair({ op: 'unretract', alias: 'back', expected: { kind: 'ledger' } })],
    [
      'was repaired by a client that leaves the flag out',
      async () => world.putRaw({ ...meta, repaired_at_ms: { N: String(world.clock.now() + 1000) } }),
    ],
  ])('a retraction without an answer, which %s before its next try, is unknown', async (_, other) => {
    await publish({ op: 'initLedger', alias: 'back' });
    world.requests.faults = [
      async (send) => {
        await send();
        await other();
        throw networkError('ECONNRESET', 'read');
      },
    ];
    const { code, context } = await failure(publish(retract));
    expect([code, context]).toMatchObject(['OutcomeUnknown', { actual: { retracted: false } }]);
  });
});
