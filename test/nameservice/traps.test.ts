import { describe, expect, it } from 'vitest';
import { isCid } from '../../shared/nameservice/cid.ts';
import { nameserviceFromEnvironment } from '../../shared/nameservice/environment.ts';
import { get, post } from '../support/stack/adapters.ts';
import { isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const world = await nameserviceWorld();
const { publish, lookUp, rawItems, putRaw, deleteRaw } = world;

const init = (alias: string) => publish({ op: 'initLedger', alias });
const source = (alias: string) =>
  publish({ op: 'publishGraphSource', alias, sourceType: 'db:Bm25Index', config: {}, dependencies: [] });
const commit = (alias: string, t = 1) => publish({ op: 'publishCommit', alias, address: `a${t}`, t });
const pk = (alias: string) => ({ pk: { S: `${alias}:main` } });

describe('a retract', () => {
  it('a retract of an unknown alias does not create a record', async () => {
    for (const op of ['retract', 'retractGraphSource'])
      expect((await failure(publish({ op, alias: 'ghost' }))).code).toBe('NotFound');
    expect(await rawItems('ghost:main')).toEqual([]);
    expect(await init('ghost')).toMatchObject({ created: true });
  });

  it('a retract of the other kind does not change a record', async () => {
    await init('kind-l');
    await source('kind-g');
    expect((await failure(publish({ op: 'retractGraphSource', alias: 'kind-l' }))).code).toBe('NotFound');
    expect((await failure(publish({ op: 'retract', alias: 'kind-g' }))).code).toBe('NotFound');
    for (const alias of ['kind-l', 'kind-g']) expect(await lookUp(alias)).toMatchObject({ retracted: false });
  });

  it('a retract leaves the stub of another client free to use', async () => {
    await putRaw({ ...pk('stub'), sk: { S: 'meta' }, retracted: { BOOL: true }, updated_at_ms: { N: '1' } });
    expect((await failure(lookUp('stub'))).code).toBe('NotFound');
    expect((await failure(publish({ op: 'retract', alias: 'stub' }))).code).toBe('NotFound');
    expect(await init('stub')).toMatchObject({ created: true, current: { retracted: false } });
  });
});

describe('an alias', () => {
  it('an alias never passes from a ledger to a graph source or back', async () => {
    await init('taken-l');
    await commit('taken-l', 3);
    const before = await rawItems('taken-l:main');
    expect(await failure(source('taken-l'))).toMatchObject({ code: 'AlreadyExists', context: { kind: 'ledger' } });
    expect(await rawItems('taken-l:main')).toEqual(before);

    await source('taken-g');
    const created = await rawItems('taken-g:main');
    const next = { address: 'a', t: 1 };
    const bySource = { code: 'AlreadyExists', context: { kind: 'graph_source' } };
    expect(await failure(init('taken-g'))).toMatchObject(bySource);
    expect(
      await failure(publish({ op: 'compareAndSetRef', alias: 'taken-g', ref: 'commit', expected: null, next })),
    ).toMatchObject(bySource);
    expect(await failure(publish({ op: 'fastForwardCommit', alias: 'taken-g', ...next }))).toMatchObject(bySource);
    expect((await failure(commit('taken-g'))).code).toBe('NotFound');
    expect(await rawItems('taken-g:main')).toEqual(created);
  });

  it('an alias with a second colon is refused', async () => {
    await expect(init('a:b:c')).rejects.toThrow(/without empty parts or further colons/);
    await putRaw({ pk: { S: 'a:b:c' }, sk: { S: 'meta' }, kind: { S: 'ledger' } });
    await expect(lookUp('a:b:c')).rejects.toThrow(/without empty parts or further colons/);
  });

  it('an alias is neither trimmed nor lower-cased', async () => {
    await init(' Spaced Name@t:1');
    expect(await lookUp(' Spaced Name@t:1')).toMatchObject({ name: ' Spaced Name@t', branch: '1' });
  });

  it('an alias may fill its 1,024 bytes', async () => {
    const name = `${'é'.repeat(509)}x`;
    expect(await init(name)).toMatchObject({ alias: `${name}:main` });
    expect((await world.list({ prefix: 'é' })).records).toHaveLength(1);
  });

  it('an alias that another client is deleting is reported by what is left', async () => {
    await init('purged');
    await deleteRaw('purged:main', 'meta');
    expect((await failure(lookUp('purged'))).code).toBe('NotFound');
    const { code, context } = await failure(init('purged'));
    expect([code, context]).toEqual(['AlreadyExists', { alias: 'purged:main' }]);
  });
});

describe('a concern that is missing under its meta', () => {
  it.each([
    ['head', { op: 'publishCommit', address: 'a', t: 1 }, { commit: { address: 'a', t: 1 } }],
    ['head', { op: 'fastForwardCommit', address: 'a', t: 1 }, { commit: { address: 'a', t: 1 } }],
    [
      'head',
      { op: 'compareAndSetRef', ref: 'commit', expected: { address: null, t: 0 }, next: { address: 'a', t: 1 } },
      { commit: { address: 'a', t: 1 } },
    ],
    ['index', { op: 'publishIndex', address: 'i', t: 1 }, { index: { address: 'i', t: 1 } }],
    [
      'status',
      { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: 'x', v: 2 } },
      { status: { state: 'x', v: 2 } },
    ],
    [
      'config',
      { op: 'pushConfig', expected: { v: 0 }, next: { v: 1, payload: { extra: { a: 1 } } } },
      { config: { v: 1, payload: { extra: { a: 1 } } } },
    ],
  ])('a missing %s is reported by a lookup, and restored by %o', async (concern, op, healed) => {
    const alias = `lost-${concern}-${op.op}`;
    await init(alias);
    await deleteRaw(`${alias}:main`, concern);
    expect(await lookUp(alias)).toMatchObject({ missing: [concern] });
    expect(await publish({ alias, ...op })).toMatchObject({ outcome: 'updated' });
    expect(await lookUp(alias)).toMatchObject(healed);
    expect(await lookUp(alias)).not.toHaveProperty('missing');
  });

  it.each([
    ['status', { state: 'ready', v: 1 }, { state: 'other', v: 1 }, { state: 'ready', v: 1 }],
    ['config', { v: 0 }, { v: 0, payload: null }, { v: 0, payload: null }],
  ])('a missing %s conflicts as its first version if the version does not rise', async (concern, ...given) => {
    const [expected, next, actual] = given;
    const op = concern === 'status' ? 'pushStatus' : 'pushConfig';
    const alias = `still-${concern}`;
    await init(alias);
    await deleteRaw(`${alias}:main`, concern);
    const { code, context } = await failure(publish({ op, alias, expected, next }));
    expect([code, context.actual]).toMatchObject(['Conflict', actual]);
  });

  it('a conflict with a missing concern of a graph source does not name one', async () => {
    await source('no ledger');
    await deleteRaw('no ledger:main', 'config');
    const op = { op: 'pushConfig', alias: 'no ledger', expected: { v: 1 }, next: { v: 1, payload: null } };
    const { code, context } = await failure(publish(op));
    expect([code, context.actual]).toEqual(['Conflict', null]);
  });

  it('a conflict with a missing ref names a value that can be expected', async () => {
    await init('unborn');
    await deleteRaw('unborn:main', 'head');
    const cas = (expected: object | null) =>
      publish({ op: 'compareAndSetRef', alias: 'unborn', ref: 'commit', expected, next: { address: 'a', t: 1 } });
    const { context } = await failure(cas(null));
    expect(context.actual).toEqual({ address: null, t: 0 });
    expect(await cas(context.actual as object)).toMatchObject({ outcome: 'updated' });
  });

  it('a head without the other items is not an alias, and stays', async () => {
    await putRaw({ ...pk('head alone'), sk: { S: 'head' }, commit_address: { S: 'a1' }, commit_t: { N: '1' } });
    const next = { address: 'a2', t: 2 };
    const op = { op: 'compareAndSetRef', alias: 'head alone', ref: 'commit', expected: null, next };
    expect(await failure(publish(op))).toMatchObject({
      code: 'Conflict',
      context: { actual: { address: 'a1', t: 1 } },
    });
    expect(await rawItems('head alone:main')).toHaveLength(1);
  });

  it('a missing concern of a graph source is restored without a head', async () => {
    await source('lost-gs');
    await deleteRaw('lost-gs:main', 'index');
    await publish({ op: 'publishGraphSourceIndex', alias: 'lost-gs', address: 'g', t: 2 });
    await deleteRaw('lost-gs:main', 'status');
    await source('lost-gs');
    expect(await lookUp('lost-gs')).toMatchObject({ index: { address: 'g', t: 2 }, status: { state: 'ready', v: 1 } });
    expect((await rawItems('lost-gs:main')).map(({ sk }) => sk?.S)).toEqual(['config', 'index', 'meta', 'status']);
  });

  it('a new definition restores each missing concern of a graph source', async () => {
    await source('defined again');
    for (const concern of ['index', 'status', 'config']) await deleteRaw('defined again:main', concern);
    const [{ retracted: _, ...meta } = {}] = await rawItems('defined again:main');
    await putRaw(meta);
    await source('defined again');
    const record = await lookUp('defined again');
    expect(record).toMatchObject({
      retracted: false,
      index: { address: null, t: 0 },
      status: { state: 'ready', v: 1 },
    });
    expect(record).not.toHaveProperty('missing');
    expect((await rawItems('defined again:main'))[2]).toMatchObject({ sk: { S: 'meta' }, retracted: { BOOL: false } });
  });

  it('an item without its t is below every t', async () => {
    await init('t-less');
    await putRaw({ ...pk('t-less'), sk: { S: 'head' }, schema: { N: '2' } });
    expect(await commit('t-less', 0)).toMatchObject({ outcome: 'updated', current: { address: 'a0', t: 0 } });
  });
});

describe("other clients' rows", () => {
  it("other clients' rows of many megabytes do not hide meta, and stay", async () => {
    await init('crowded');
    // A page of a query is 1 MB: the journal rows between config and status do not fit into one.
    const rows = Array.from({ length: 300 }, (_, i) => ({
      ...pk('crowded'),
      sk: { S: `${['commit', 'journal', 'zzz'][i % 3]}#${String(i).padStart(20, '0')}` },
      note: { S: 'x'.repeat(11_000) },
    }));
    for (let from = 0; from < rows.length; from += 100) await Promise.all(rows.slice(from, from + 100).map(putRaw));
    world.requests.sent.length = 0;
    expect(await lookUp('crowded')).toMatchObject({ kind: 'ledger', status: { state: 'ready' } });
    expect(world.requests.sent).toEqual(['Query', 'Query']);
    expect(await commit('crowded')).toMatchObject({ outcome: 'updated' });
    expect((await failure(init('crowded'))).code).toBe('AlreadyExists');
  });

  it('an endlessly nested config of another client is shown as text', async () => {
    const deep = '['.repeat(150_000) + ']'.repeat(150_000);
    const source = { op: 'publishGraphSource', alias: 'deep', sourceType: 'x', config: {}, dependencies: [] };
    await publish(source);
    await putRaw({ ...pk('deep'), sk: { S: 'config' }, config_v: { N: '1' }, config_json: { S: deep } });
    for (const answer of [
      await get(world.handlers.readNames, { alias: 'deep' }),
      await get(world.handlers.readNames, { kind: 'graph_source', prefix: 'deep' }),
    ]) {
      const [record] = (answer.body.records ?? [answer.body]) as { config: { value: string } }[];
      expect([answer.status, record?.config.value === deep]).toEqual([200, true]);
    }
  });

  it.runIf(isFull)('rows of other clients that exceed an answer affect only themselves', async () => {
    for (const alias of ['vast-1', 'vast-2', 'vast-3']) await init(alias);
    await source('vast-4');
    const vast = { S: '\u0001'.repeat(390_000) };
    const short = '\u0001'.repeat(1024);
    for (const [alias, sk, more] of [
      ['vast-2', 'head', { commit_address: vast, commit_t: { N: '7' } }],
      ['vast-2', 'status', { status: vast, status_v: { N: '4' } }],
      ['vast-2', 'config', { default_context_address: vast, config_v: { N: '3' } }],
      ['vast-4', 'index', { index_address: vast, index_t: { N: '5' } }],
      ['vast-4', 'status', { status: vast, status_v: { N: '4' } }],
      ['vast-4', 'config', { config_json: vast, config_v: { N: '3' } }],
    ] as const)
      await putRaw({ ...pk(alias), sk: { S: sk }, ...more });
    const records: { alias: string; oversized?: true }[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const { status, body } = await get(world.handlers.readNames, { prefix: 'vast', ...(cursor && { cursor }) });
      expect([status, Buffer.byteLength(JSON.stringify(JSON.stringify(body))) < 6_000_000]).toEqual([200, true]);
      records.push(...(body.records as typeof records));
      cursor = body.nextCursor as string | null;
    }
    expect(records.map(({ alias, oversized }) => [alias, oversized])).toEqual([
      ['vast-1:main', undefined],
      ['vast-2:main', true],
      ['vast-3:main', undefined],
      ['vast-4:main', true],
    ]);
    const status = { state: short, v: 4, extra: {} };
    const [unborn, commit, index] = [
      { address: null, t: 0 },
      { address: short, t: 7 },
      { address: short, t: 5 },
    ];
    for (const [alias, shown] of [
      ['vast-2', { kind: 'ledger', commit, index: unborn, status, config: { v: 3, payload: null } }],
      ['vast-4', { sourceType: 'db:Bm25Index', index, dependencies: [], status, config: { v: 3, value: null } }],
    ] as const)
      expect(await get(world.handlers.readNames, { alias })).toMatchObject({
        status: 200,
        body: { oversized: true, ...shown },
      });
  });

  it.runIf(isFull)('rows of other clients are cut if a repeat or conflict shows them', async () => {
    const vast = { S: '\u0001'.repeat(390_000) };
    const short = '\u0001'.repeat(1024);
    const answered = async (name: 'publish' | 'repairNames', payload: object) => {
      const { status, body } = await post(world.handlers[name], payload);
      expect(Buffer.byteLength(JSON.stringify(JSON.stringify(body)))).toBeLessThan(6_000_000);
      return [status, body];
    };
    const index = { address: short, t: 5 };
    const status = { state: short, v: 4 };
    const ledger = { op: 'initLedger', alias: 'shown-l', requestId: 'shown-l' };
    const graph = { op: 'publishGraphSource', alias: 'shown-g', sourceType: 'x', config: {}, dependencies: [] };
    for (const [create, sk, more] of [
      [ledger, 'head', { commit_address: vast, commit_t: { N: '7' } }],
      [{ ...graph, requestId: 'shown-g' }, 'config', { config_json: vast, config_v: { N: '3' } }],
    ] as const) {
      await publish(create);
      for (const [concern, attributes] of [
        [sk, more],
        ['index', { index_address: vast, index_t: { N: '5' } }],
        ['status', { status: vast, status_v: { N: '4' } }],
      ] as const)
        await putRaw({ ...pk(create.alias), sk: { S: concern }, ...attributes });
      const repeat = [200, { repeated: true, current: { oversized: true, index, status } }];
      expect(await answered('publish', create)).toMatchObject(repeat);
    }
    await publish({ op: 'retract', alias: 'shown-l' });
    const actual = { kind: 'ledger', commit: { address: short, t: 7 }, index, config: { v: 0 } };
    // A caller cannot send a text that is as long as this one.
    const expected = { ...actual, status: { state: short.slice(0, 256), v: 4 } };
    expect(await answered('repairNames', { op: 'purge', alias: 'shown-l', expected })).toMatchObject([
      409,
      { code: 'Conflict', actual: { ...actual, status, retracted: true } },
    ]);
    expect(await lookUp('shown-l')).toMatchObject({ retracted: true, oversized: true });
  });

  it("attributes of other types in other clients' rows do not harm a lookup", async () => {
    await init('odd');
    const N1 = { N: '1' };
    await putRaw({
      ...pk('odd'),
      sk: { S: 'status' },
      status: { N: '7' },
      status_meta: {
        M: { set: { SS: ['a'] }, bytes: { B: new Uint8Array([1]) }, n: { N: '1.5' }, all: { L: [{ SS: ['a'] }, N1] } },
      },
      updated_at_ms: { S: 'yesterday' },
    });
    expect((await lookUp('odd')).status).toEqual({ state: 'ready', v: 1, extra: { n: 1.5, all: [1] } });
    await source('no config');
    await deleteRaw('no config:main', 'config');
    expect((await lookUp('no config')).config).toEqual({ v: 0, value: {} });
  });
});

describe('a publish right after a creation elsewhere', () => {
  it('a publish finds an alias that was created elsewhere during its try', async () => {
    world.intercepted.by = async (command, _, next) => {
      if (command !== 'UpdateItem') return next();
      delete world.intercepted.by;
      const lost = next();
      await lost.catch(() => {});
      await init('just-born');
      return lost;
    };
    expect(await commit('just-born')).toMatchObject({ outcome: 'updated', current: { address: 'a1', t: 1 } });
  });

  it('a publish to an unknown alias is NotFound, whatever is published', async () => {
    for (const op of ['publishCommit', 'publishIndex', 'publishGraphSourceIndex'])
      expect((await failure(publish({ op, alias: 'never-born', address: 'a', t: 1 }))).code).toBe('NotFound');
    expect(await rawItems('never-born:main')).toEqual([]);
  });
});

describe('compare-and-set', () => {
  const cas = (alias: string, ref: string, expected: object) =>
    publish({ op: 'compareAndSetRef', alias, ref, expected, next: { address: 'next', t: 9 } });

  it('a compare-and-set compares t as well as the address', async () => {
    await init('compare');
    await commit('compare', 4);
    for (const t of [3, 5]) {
      const { code, context } = await failure(cas('compare', 'commit', { address: 'a4', t }));
      expect([code, context.actual]).toEqual(['Conflict', { address: 'a4', t: 4 }]);
    }
  });

  it('a compare-and-set does not take an address at t 0 for unborn', async () => {
    await init('genesis');
    const genesis = { address: 'genesis', t: 0 };
    await publish({ op: 'publishIndex', alias: 'genesis', ...genesis, allowEqual: true });
    expect((await lookUp('genesis')).index).toEqual(genesis);
    const { code, context } = await failure(cas('genesis', 'index', { address: null, t: 0 }));
    expect([code, context.actual]).toEqual(['Conflict', genesis]);
    expect(await cas('genesis', 'index', genesis)).toMatchObject({ outcome: 'updated' });
  });
});

describe('the actual value of a conflict', () => {
  const next = { address: 'next', t: 9 };
  const state = { state: 'next', v: 9 };
  const nobody = { address: 'nobody', t: 7 };
  it.each([
    ['status', {}, { op: 'pushStatus', expected: { state: 'x', v: 7 }, next: state }, { state: 'ready', v: 1 }],
    [
      'status',
      { status: { S: 'busy' } },
      { op: 'pushStatus', expected: { state: 'x', v: 7 }, next: state },
      { state: 'busy', v: 1 },
    ],
    [
      'status',
      { status_v: { N: '4' }, status: { N: '1' } },
      { op: 'pushStatus', expected: { state: 'x', v: 7 }, next: state },
      { state: 'ready', v: 4 },
    ],
    ['config', {}, { op: 'pushConfig', expected: { v: 7 }, next: { v: 9, payload: null } }, { v: 0 }],
    [
      'config',
      { config_v: { S: 'one' } },
      { op: 'pushConfig', expected: { v: 7 }, next: { v: 9, payload: null } },
      { v: 0 },
    ],
    [
      'head',
      { commit_address: { NULL: true }, commit_t: { N: '5' } },
      { op: 'compareAndSetRef', ref: 'commit', expected: nobody, next },
      { address: null, t: 5 },
    ],
    [
      'head',
      { commit_address: { S: 'a' } },
      { op: 'compareAndSetRef', ref: 'commit', expected: nobody, next },
      { address: 'a', t: 0 },
    ],
    [
      'index',
      { index_t: { S: 'five' } },
      { op: 'compareAndSetRef', ref: 'index', expected: nobody, next },
      { address: null, t: 0 },
    ],
  ])('the actual value of a conflict can be expected: %s %j', async (sk, attributes, op, actual) => {
    const alias = 'sparse';
    await init(alias).catch(() => {});
    await putRaw({ ...pk(alias), sk: { S: sk }, schema: { N: '2' }, ...attributes });
    const conflict = await failure(publish({ alias, ...op }));
    expect([conflict.code, conflict.context.actual]).toMatchObject(['Conflict', actual]);
    // A missing attribute equals only its default, not any value.
    for (const wrong of [{ v: 2 }, { t: 2 }, { state: 'other' }])
      if ((Object.keys(wrong)[0] as string) in actual)
        expect((await failure(publish({ alias, ...op, expected: { ...actual, ...wrong } }))).code).toBe('Conflict');
    expect(await publish({ alias, ...op, expected: actual })).toMatchObject({ outcome: 'updated', repeated: false });
  });
});

describe('the same t with another address', () => {
  it('a publish of the same t with another address is stale', async () => {
    await init('twice');
    await commit('twice', 4);
    const other = await publish({ op: 'publishCommit', alias: 'twice', address: 'other', t: 4 });
    expect(other).toMatchObject({ outcome: 'stale', repeated: false, current: { address: 'a4', t: 4 } });
  });
});

describe('pointer attributes', () => {
  const CIDS = ['bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'].concat(
    'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi',
  );
  const [cid1 = '', cid2 = ''] = CIDS;

  it('pointer attributes are read under either name and written under one', async () => {
    const g2 = await nameserviceWorld({ pointerStyle: 'id', table: world.table });
    await init('both');
    const cas = (over: typeof world, expected: object, next: object) =>
      over.publish({ op: 'compareAndSetRef', alias: 'both', ref: 'commit', expected, next });
    await cas(g2, { address: null, t: 0 }, { address: cid1, t: 1 });
    expect((await lookUp('both')).commit).toEqual({ address: cid1, t: 1 });
    const wrong = await failure(cas(world, { address: cid2, t: 1 }, { address: 'fluree:s3://2', t: 2 }));
    expect(wrong).toMatchObject({ code: 'Conflict', context: { actual: { address: cid1, t: 1 } } });
    await cas(world, { address: cid1, t: 1 }, { address: 'fluree:s3://2', t: 2 });
    expect((await g2.lookUp('both')).commit).toEqual({ address: 'fluree:s3://2', t: 2 });
    const head = (await rawItems('both:main')).find(({ sk }) => sk?.S === 'head');
    expect(head).toMatchObject({ commit_address: { S: 'fluree:s3://2' }, commit_t: { N: '2' } });
    expect(head).not.toHaveProperty('commit_id');
    await g2.publish({ op: 'publishIndex', alias: 'both', address: cid2, t: 2 });
    const allowEqual = { op: 'publishIndex', alias: 'both', address: cid2, t: 2, allowEqual: true };
    expect(await publish(allowEqual)).toMatchObject({ repeated: true });
  });

  it('if both pointer attributes stand in a row, the configured name counts', async () => {
    await init('g15');
    const row = { commit_address: { S: 'by-address' }, commit_id: { S: cid1 }, commit_t: { N: '3' } };
    await putRaw({ ...pk('g15'), sk: { S: 'head' }, ...row });
    const g2 = await nameserviceWorld({ pointerStyle: 'id', table: world.table });
    expect((await lookUp('g15')).commit.address).toBe('by-address');
    expect((await g2.lookUp('g15')).commit.address).toBe(cid1);
    const cas = (address: string) =>
      publish({
        op: 'compareAndSetRef',
        alias: 'g15',
        ref: 'commit',
        expected: { address, t: 3 },
        next: { address: 'n', t: 4 },
      });
    expect((await failure(cas(cid1))).code).toBe('Conflict');
    expect(await cas('by-address')).toMatchObject({ outcome: 'updated' });
  });

  it('a ref that is held under the other name is not unborn', async () => {
    for (const t of [{ commit_t: { N: '0' } }, {}]) {
      await init('held');
      await putRaw({ ...pk('held'), sk: { S: 'head' }, commit_id: { S: cid1 }, ...t });
      const expected = { address: null, t: 0 };
      const next = { address: 'a', t: 1 };
      const op = { op: 'compareAndSetRef', alias: 'held', ref: 'commit', expected, next };
      const { code, context } = await failure(publish(op));
      expect([code, context.actual]).toEqual(['Conflict', { address: cid1, t: 0 }]);
      expect((await lookUp('held')).commit).toEqual({ address: cid1, t: 0 });
      expect(await publish({ ...op, expected: context.actual })).toMatchObject({ outcome: 'updated' });
      for (const { sk } of await rawItems('held:main')) await deleteRaw('held:main', sk?.S ?? '');
    }
  });

  it('pointer attributes of a NULL type are unborn', async () => {
    await init('nulled');
    await putRaw({ ...pk('nulled'), sk: { S: 'head' }, commit_address: { NULL: true }, commit_t: { N: '0' } });
    expect((await lookUp('nulled')).commit).toEqual({ address: null, t: 0 });
    const expected = { address: null, t: 0 };
    const next = { address: 'a', t: 1 };
    const born = await publish({ op: 'compareAndSetRef', alias: 'nulled', ref: 'commit', expected, next });
    expect(born).toMatchObject({ outcome: 'updated' });
  });

  it('pointer attributes named id hold only content identifiers', async () => {
    const g2 = await nameserviceWorld({ pointerStyle: 'id' });
    await g2.publish({ op: 'initLedger', alias: 'cids' });
    const next = { address: 'fluree:s3://1', t: 1 };
    for (const op of [
      { op: 'publishCommit', ...next },
      { op: 'publishIndex', ...next },
      { op: 'fastForwardCommit', ...next },
    ]) {
      const { code, context } = await failure(g2.publish({ alias: 'cids', ...op }));
      expect([code, context.issues]).toEqual([
        'InvalidRequest',
        [{ path: 'address', message: 'must be a CIDv1 in base32' }],
      ]);
    }
    const cas = { op: 'compareAndSetRef', alias: 'cids', ref: 'index', expected: { address: null, t: 0 }, next };
    expect((await failure(g2.publish(cas))).context.issues).toMatchObject([{ path: 'next.address' }]);
    expect((await g2.lookUp('cids')).commit).toEqual({ address: null, t: 0 });
  });

  it('a default context in attributes named id must be a content identifier', async () => {
    const g2 = await nameserviceWorld({ pointerStyle: 'id' });
    await g2.publish({ op: 'initLedger', alias: 'context' });
    const push = (defaultContextAddress?: string, v = 1) =>
      g2.publish({
        op: 'pushConfig',
        alias: 'context',
        expected: { v: v - 1 },
        next: { v, payload: { defaultContextAddress } },
      });
    const { code, context } = await failure(push('fluree:s3://context'));
    expect([code, context.issues]).toEqual([
      'InvalidRequest',
      [{ path: 'next.payload.defaultContextAddress', message: 'must be a CIDv1 in base32' }],
    ]);
    expect((await g2.lookUp('context')).config).toEqual({ v: 0, payload: null });
    expect(await push(cid1)).toMatchObject({ outcome: 'updated' });
    expect(await push(undefined, 2)).toMatchObject({ outcome: 'updated', current: { v: 2, payload: null } });
  });

  describe('a content identifier', () => {
    const digest = (length: number) => Array<number>(length).fill(0x42);
    const [version, raw, sha256, sha512] = [1, 0x55, 0x12, 0x13];
    const cid = (...bytes: number[]) => `b${base32(bytes)}`;
    const whole = cid(version, raw, sha256, 32, ...digest(32));
    // Forty bytes make exactly sixty-four letters.
    const full = cid(version, raw, sha256, 36, ...digest(36));

    it.each([
      ['of 32 bytes', whole],
      ['of 64 bytes', cid(version, raw, sha512, 64, ...digest(64))],
      ['without a bit left over', full],
      ['with a codec of zero', cid(version, 0, sha256, 32, ...digest(32))],
      ['with a hash function of zero', cid(version, raw, 0, 32, ...digest(32))],
      ['with a codec of two bytes', cid(version, 0x80 | 0x01, 0x02, sha512, 32, ...digest(32))],
      ['with a codec of 128', cid(version, 0x80, 0x01, sha512, 32, ...digest(32))],
      ['with a codec of four bytes', cid(version, 0x81, 0x81, 0x81, 0x01, sha512, 32, ...digest(32))],
    ])('a content identifier is accepted: %s', (_, text) => expect(isCid(text), text).toBe(true));

    it.each([
      ['another version', cid(2, raw, sha256, 32, ...digest(32))],
      ['a version of two bytes', cid(0x80 | version, 0, raw, sha512, 64, ...digest(64))],
      ['over 64 bytes', cid(version, raw, sha512, 65, ...digest(65))],
      ['a byte too few', cid(version, raw, sha256, 32, ...digest(31))],
      ['a byte too many', cid(version, raw, sha256, 32, ...digest(33))],
      ['no digest', cid(version, raw, 0, 0)],
      ['no length', cid(version, raw, sha256)],
      ['no hash function', cid(version, raw)],
      ['a codec with a zero at its end', cid(version, 0x80 | raw, 0, sha512, 64, ...digest(64))],
      ['a length with a zero at its end', cid(version, raw, sha512, 0x80 | 64, 0, ...digest(64))],
      ['a codec of five bytes', cid(version, 0x81, 0x81, 0x81, 0x81, 0x01, sha512, 32, ...digest(32))],
      ['a length of three bytes', cid(version, raw, sha512, 0x80, 0x80, 0x01, ...digest(8))],
      ['another letter before it', `z${whole.slice(1)}`],
      ['a sign in it', `${whole.slice(0, 30)}!${whole.slice(31)}`],
      ['a letter more, and no bit left over before', `${full}a`],
      ['bits left over that say something', `${whole.slice(0, -1)}${whole.endsWith('a') ? 'b' : 'f'}`],
    ])('a text that is not a content identifier is refused: %s', (_, text) => expect(isCid(text), text).toBe(false));
  });

  function base32(bytes: number[]): string {
    const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('');
    return bits.replace(
      /.{1,5}/g,
      (five) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(five.padEnd(5, '0'), 2)] ?? '',
    );
  }

  it('a content identifier is recognised by its structure', () => {
    for (const cid of CIDS) expect(isCid(cid)).toBe(true);
    const wrong = ['', 'b', 'bafy', cid1.slice(0, -1), `${cid1}a`, cid1.toUpperCase(), `z${cid1.slice(1)}`];
    for (const text of [...wrong, 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG', `b${'a'.repeat(58)}`, 'b1'])
      expect(isCid(text), text).toBe(false);
  });

  it('a function does not start with an unknown name for pointer attributes', () => {
    const env = { NAMESERVICE_TABLE: 'names', POINTER_ATTRIBUTES: 'cid' };
    expect(() => nameserviceFromEnvironment(env)).toThrow(/POINTER_ATTRIBUTES must be one of address, id, not 'cid'/);
    expect(() => nameserviceFromEnvironment({})).toThrow(/NAMESERVICE_TABLE is not set/);
    expect(nameserviceFromEnvironment({ NAMESERVICE_TABLE: 'names' }).pointerStyle).toBe('address');
  });
});
