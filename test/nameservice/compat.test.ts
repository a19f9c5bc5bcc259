import { describe, expect, it } from 'vitest';
import { CONCERNS } from '../../shared/nameservice/items.ts';
import { itemsByConcern, recordOf } from '../../shared/nameservice/record.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

/**
 * The tests that Fluree keeps for its own nameservices, under their names. Where one of them only reads what another one here has written,
 * it is left out.
 */
const world = await nameserviceWorld();
const { publish, lookUp, list, clock } = world;

const init = (alias: string) => publish({ op: 'initLedger', alias });
const commit = (alias: string, t: number, address = `commit-${t}`) =>
  publish({ op: 'publishCommit', alias, address, t });
const index = (alias: string, t: number, address = `index-${t}`) => publish({ op: 'publishIndex', alias, address, t });
const cas = (alias: string, ref: string, expected: object | null, next: object) =>
  publish({ op: 'compareAndSetRef', alias, ref, expected, next });
const at = (t: number, address = `commit-${t}`) => ({ address, t });

describe('items to records', () => {
  const item = (sk: string, attributes: object) => ({ pk: { S: 'mydb:main' }, sk: { S: sk }, ...attributes });
  const meta = item('meta', {
    kind: { S: 'ledger' },
    name: { S: 'mydb' },
    branch: { S: 'main' },
    retracted: { BOOL: false },
  });
  const sourceMeta = item('meta', {
    kind: { S: 'graph_source' },
    name: { S: 'search' },
    branch: { S: 'main' },
    source_type: { S: 'db:Bm25Index' },
    dependencies: { L: [{ S: 'mydb:main' }] },
    retracted: { BOOL: false },
  });
  const record = (...items: object[]) => recordOf(itemsByConcern(items as never), 'address');

  it("Fluree's test_items_to_ns_record_full passes", () => {
    const full = record(
      meta,
      item('head', { commit_address: { S: 'c7' }, commit_t: { N: '7' }, updated_at_ms: { N: '1767225600123' } }),
      item('index', { index_address: { S: 'i5' }, index_t: { N: '5' } }),
      item('config', { default_context_address: { S: 'ctx' }, config_v: { N: '2' } }),
      item('status', { status: { S: 'ready' }, status_v: { N: '1' } }),
    );
    expect(full).toEqual({
      alias: 'mydb:main',
      kind: 'ledger',
      name: 'mydb',
      branch: 'main',
      retracted: false,
      commit: { address: 'c7', t: 7 },
      index: { address: 'i5', t: 5 },
      status: { state: 'ready', v: 1, extra: {} },
      config: { v: 2, payload: { defaultContextAddress: 'ctx' } },
      updatedAt: '2026-01-01T00:00:00.123Z',
    });
  });

  it("Fluree's test_items_to_ns_record_unborn_head passes", () => {
    const absent = record(meta, item('head', { commit_t: { N: '0' } }));
    const nulled = record(meta, item('head', { commit_address: { NULL: true }, commit_t: { N: '0' } }));
    for (const unborn of [absent, nulled]) expect(unborn).toMatchObject({ commit: { address: null, t: 0 } });
  });

  it("Fluree's test_items_to_ns_record_wrong_kind passes", () => {
    expect(record({ ...meta, kind: { S: 'something_else' } })).toBeUndefined();
    expect(record(sourceMeta)).not.toHaveProperty('commit');
  });

  it("Fluree's test_items_to_ns_record_no_meta passes", () => {
    expect(record(item('head', { commit_t: { N: '7' } }))).toBeUndefined();
  });

  it("Fluree's test_items_to_gs_record_full passes", () => {
    const full = record(
      sourceMeta,
      item('config', { config_json: { S: '{"k1":1.2}' }, config_v: { N: '3' } }),
      item('index', { index_address: { S: 'g9' }, index_t: { N: '9' } }),
    );
    expect(full).toMatchObject({
      kind: 'graph_source',
      sourceType: 'db:Bm25Index',
      dependencies: ['mydb:main'],
      index: { address: 'g9', t: 9 },
      config: { v: 3, value: { k1: 1.2 } },
    });
  });

  it("Fluree's test_items_to_gs_record_unborn_index passes", () => {
    const unborn = record(sourceMeta, item('index', { index_t: { N: '0' } }));
    expect(unborn).toMatchObject({ index: { address: null, t: 0 }, config: { v: 0, value: {} } });
  });
});

describe('names and times', () => {
  it("Fluree's test_now_epoch_ms passes", async () => {
    await init('epoch');
    for (const { updated_at_ms } of await world.rawItems('epoch:main'))
      expect(updated_at_ms).toEqual({ N: String(clock.now()) });
  });

  it("Fluree's test_normalize passes", async () => {
    await init('normal');
    expect(await lookUp('normal')).toEqual(await lookUp('normal:main'));
    await init('normal:dev');
    expect(await lookUp('normal:dev')).toMatchObject({ alias: 'normal:dev', name: 'normal', branch: 'dev' });
    expect((await failure(lookUp('Normal'))).code).toBe('NotFound');
  });
});

describe('on a table', () => {
  it("Fluree's localstack_s3_and_dynamodb_smoke passes", async () => {
    expect(await init('smoke')).toMatchObject({ created: true, current: { alias: 'smoke:main' } });
    await commit('smoke', 1);
    expect(await lookUp('smoke')).toMatchObject({ commit: at(1), index: { address: null, t: 0 } });
  });

  it("Fluree's nameservice_ledger_lifecycle passes", async () => {
    expect((await failure(lookUp('life'))).code).toBe('NotFound');
    expect((await failure(commit('life', 1))).code).toBe('NotFound');
    expect((await failure(index('life', 1))).code).toBe('NotFound');
    expect(await world.rawItems('life:main')).toEqual([]);

    await init('life');
    expect((await failure(init('life'))).code).toBe('AlreadyExists');
    expect(await commit('life', 5)).toMatchObject({ outcome: 'updated', current: at(5) });
    expect(await commit('life', 3)).toMatchObject({ outcome: 'stale', current: at(5) });
    expect(await index('life', 4)).toMatchObject({ outcome: 'updated', current: { address: 'index-4', t: 4 } });
    expect(await index('life', 2)).toMatchObject({ outcome: 'stale', current: { address: 'index-4', t: 4 } });
    expect(await index('life', 4, 'other')).toMatchObject({ outcome: 'stale', current: { address: 'index-4', t: 4 } });

    const listed = async () => (await list({ prefix: 'life' })).records;
    expect(await listed()).toEqual([await lookUp('life')]);
    await publish({ op: 'retract', alias: 'life' });
    expect(await lookUp('life')).toMatchObject({ retracted: true, commit: at(5), status: { state: 'ready', v: 1 } });
    expect(await listed()).toMatchObject([{ alias: 'life:main', retracted: true }]);
    expect((await failure(init('life'))).code).toBe('AlreadyExists');
    expect(await commit('life', 6)).toMatchObject({ outcome: 'updated' });
  });

  it("Fluree's nameservice_admin_publisher passes", async () => {
    await init('admin');
    await index('admin', 10);
    const admin = (t: number, address: string) =>
      publish({ op: 'publishIndex', alias: 'admin', address, t, allowEqual: true });
    expect(await admin(10, 'rebuilt')).toMatchObject({
      outcome: 'updated',
      repeated: false,
      current: { address: 'rebuilt', t: 10 },
    });
    expect(await admin(9, 'older')).toMatchObject({ outcome: 'stale', current: { address: 'rebuilt', t: 10 } });
    expect(await admin(11, 'newer')).toMatchObject({ outcome: 'updated' });
    expect((await lookUp('admin')).index).toEqual({ address: 'newer', t: 11 });
  });

  it("Fluree's publish_index_without_preexisting_index_item passes", async () => {
    await init('indexless');
    await world.deleteRaw('indexless:main', 'index');
    expect(await index('indexless', 3)).toMatchObject({ outcome: 'updated' });
    expect((await lookUp('indexless')).index).toEqual({ address: 'index-3', t: 3 });
  });

  it("Fluree's nameservice_ref_publisher passes", async () => {
    expect((await failure(cas('refs', 'commit', at(1), at(2)))).context).toEqual({ alias: 'refs:main', actual: null });
    await init('refs');
    const unborn = { address: null, t: 0 };
    expect((await lookUp('refs')).commit).toEqual(unborn);
    expect(await cas('refs', 'commit', unborn, at(1))).toMatchObject({ current: at(1), created: false });
    expect(await cas('refs', 'commit', at(1), at(2))).toMatchObject({ current: at(2) });
    expect(await failure(cas('refs', 'commit', at(1), at(3)))).toMatchObject({
      code: 'Conflict',
      context: { actual: at(2) },
    });
    expect(await cas('refs', 'index', unborn, at(2, 'i2'))).toMatchObject({ current: at(2, 'i2') });

    expect(await cas('refs-new', 'commit', null, at(1))).toMatchObject({ created: true, current: at(1) });
    expect(await lookUp('refs-new')).toMatchObject({ commit: at(1), index: unborn, status: { state: 'ready', v: 1 } });
    const again = await failure(cas('refs-new', 'commit', null, at(7)));
    expect(again).toMatchObject({ code: 'Conflict', context: { actual: at(1) } });
    const existing = await failure(cas('refs-new', 'index', null, at(7)));
    expect(existing).toMatchObject({ code: 'Conflict', context: { actual: unborn } });
  });

  it("Fluree's nameservice_status_publisher passes", async () => {
    await init('status');
    expect((await lookUp('status')).status).toEqual({ state: 'ready', v: 1, extra: {} });
    const push = (expected: object, next: object) => publish({ op: 'pushStatus', alias: 'status', expected, next });
    const extra = { queued: 3, note: 'großer Import', parts: [1, { done: true }, null] };
    const indexing = { state: 'indexing', v: 2, extra };
    expect(await push({ state: 'ready', v: 1 }, indexing)).toMatchObject({ outcome: 'updated', current: indexing });
    expect((await lookUp('status')).status).toEqual(indexing);
    const stale = await failure(push({ state: 'ready', v: 1 }, { state: 'error', v: 3 }));
    expect(stale).toMatchObject({ code: 'Conflict', context: { actual: indexing } });
    await push({ state: 'indexing', v: 2 }, { state: 'ready', v: 3 });
    expect((await lookUp('status')).status).toEqual({ state: 'ready', v: 3, extra: {} });
  });

  it("Fluree's nameservice_config_publisher passes", async () => {
    await init('config');
    const push = (alias: string, v: number, next: object) =>
      publish({ op: 'pushConfig', alias, expected: { v }, next });
    const payload = { defaultContextAddress: 'ctx-1', extra: { cache: { mb: 512 } } };
    expect(await push('config', 0, { v: 1, payload })).toMatchObject({ current: { v: 1, payload } });
    expect(await lookUp('config')).toMatchObject({ config: { v: 1, payload } });
    const stale = await failure(push('config', 0, { v: 1, payload: null }));
    expect(stale).toMatchObject({ code: 'Conflict', context: { actual: { v: 1, payload } } });
    await push('config', 1, { v: 2, payload: null });
    expect(await lookUp('config')).toMatchObject({ config: { v: 2, payload: null } });

    await publish({ op: 'publishGraphSource', alias: 'config-gs', sourceType: 'x', config: {}, dependencies: [] });
    for (const v of [0, 1]) {
      const refused = await failure(push('config-gs', v, { v: v + 1, payload }));
      expect(refused).toMatchObject({ code: 'Conflict', context: { actual: null } });
    }
    expect(await lookUp('config-gs')).toMatchObject({ config: { v: 1, value: {} } });
  });

  it("Fluree's nameservice_graph_source_publisher passes", async () => {
    const source = { sourceType: 'db:Bm25Index', config: { k1: 1.2 }, dependencies: ['life'] };
    const republish = (config: unknown) => publish({ op: 'publishGraphSource', alias: 'gs', ...source, config });
    const sourceIndex = (t: number) =>
      publish({ op: 'publishGraphSourceIndex', alias: 'gs', address: `index-${t}`, t });

    expect((await failure(sourceIndex(1))).code).toBe('NotFound');
    expect(await republish({ k1: 1.2 })).toMatchObject({ created: true, current: { config: { v: 1 } } });
    expect(await sourceIndex(4)).toMatchObject({ outcome: 'updated' });
    expect(await sourceIndex(3)).toMatchObject({ outcome: 'stale', current: { address: 'index-4', t: 4 } });

    await init('gs-ledger');
    expect(await lookUp('gs')).toMatchObject({ kind: 'graph_source', dependencies: ['life:main'] });
    expect(await lookUp('gs-ledger')).toMatchObject({ kind: 'ledger' });
    expect((await failure(lookUp('gs-unknown'))).code).toBe('NotFound');
    const kinds = async (kind: string) => (await list({ kind, prefix: 'gs' })).records.map(({ alias }) => alias);
    expect(await kinds('graph_source')).toEqual(['gs:main']);
    expect(await kinds('ledger')).toEqual(['gs-ledger:main']);

    await publish({ op: 'retractGraphSource', alias: 'gs' });
    expect(await lookUp('gs')).toMatchObject({ retracted: true });
    expect(await republish({ k1: 2 })).toMatchObject({
      created: false,
      current: { retracted: true, index: { t: 4 }, config: { v: 2, value: { k1: 2 } } },
    });
  });

  it("Fluree's s3_testcontainers_hard_drop_clears_ledger passes", async () => {
    await init('dropped');
    for (const concern of CONCERNS) await world.deleteRaw('dropped:main', concern);
    expect((await failure(lookUp('dropped'))).code).toBe('NotFound');
    expect(await init('dropped')).toMatchObject({ created: true });
  });
});

describe('as the memory backend', () => {
  const born = { op: 'initLedger' };
  const ready = { state: 'ready', v: 1 };
  const ctx = { defaultContextAddress: 'ctx' };
  const forward = (t: number) => ({ op: 'fastForwardCommit', ...at(t) });
  const set = (expected: object | null, next: object, ref = 'commit') => ({
    ...{ op: 'compareAndSetRef', ref, expected, next },
  });
  const status = (expected: object, next: object) => ({ op: 'pushStatus', expected, next });
  const config = (v: number, next: object) => ({ op: 'pushConfig', expected: { v }, next });
  const conflict = (actual: object | null) => ({ code: 'Conflict', context: { actual } });

  it.each<[test: string, before: object[], operation: object, answer: object]>([
    ['test_ref_cas_create_new', [], set(null, at(1)), { created: true, current: at(1) }],
    ['test_ref_cas_conflict_already_exists', [set(null, at(1))], set(null, at(2)), conflict(at(1))],
    ['test_ref_cas_conflict_id_mismatch', [set(null, at(1))], set(at(1, 'another'), at(2)), conflict(at(1))],
    ['test_ref_cas_success_id_matches', [set(null, at(1))], set(at(1), at(2)), { outcome: 'updated', current: at(2) }],
    ['test_ref_cas_commit_strict_monotonic', [set(null, at(5))], set(at(5), at(5, 'other')), conflict(at(5))],
    ['test_ref_cas_commit_strict_monotonic', [set(null, at(5))], set(at(5), at(4, 'other')), conflict(at(5))],
    [
      'test_ref_cas_index_allows_equal_t',
      [set(null, at(5), 'index')],
      set(at(5), at(5, 'rebuilt'), 'index'),
      { current: at(5, 'rebuilt') },
    ],
    ['test_ref_cas_index_allows_equal_t', [set(null, at(5), 'index')], set(at(5), at(4), 'index'), conflict(at(5))],
    ['test_ref_cas_expected_some_but_missing', [], set(at(1), at(2)), conflict(null)],
    ['test_ref_fast_forward_commit_success', [set(null, at(1))], forward(9), { outcome: 'updated', current: at(9) }],
    ['test_ref_fast_forward_commit_success', [], forward(3), { created: true, current: at(3) }],
    ['test_ref_fast_forward_commit_rejected_stale', [set(null, at(5))], forward(4), conflict(at(5))],
    ['test_status_get_nonexistent', [], status(ready, { state: 'x', v: 2 }), conflict(null)],
    [
      'test_status_push_conflict_wrong_expected',
      [born],
      status({ state: 'indexing', v: 1 }, { state: 'x', v: 9 }),
      conflict(ready),
    ],
    [
      'test_status_push_conflict_wrong_expected',
      [born],
      status({ state: 'ready', v: 2 }, { state: 'x', v: 9 }),
      conflict(ready),
    ],
    ['test_status_push_conflict_non_monotonic', [born], status(ready, { state: 'x', v: 1 }), conflict(ready)],
    ['test_config_push_from_unborn', [born], config(0, { v: 1, payload: ctx }), { current: { v: 1, payload: ctx } }],
    [
      'test_config_push_update',
      [born, config(0, { v: 1, payload: ctx })],
      config(1, { v: 2, payload: { extra: { a: 1 } } }),
      { current: { v: 2, payload: { extra: { a: 1 } } } },
    ],
    [
      'test_config_push_conflict_wrong_expected',
      [born, config(0, { v: 3, payload: ctx })],
      config(2, { v: 4, payload: null }),
      conflict({ v: 3, payload: ctx }),
    ],
    [
      'test_config_push_conflict_non_monotonic',
      [born, config(0, { v: 3, payload: ctx })],
      config(3, { v: 3, payload: null }),
      conflict({ v: 3, payload: ctx }),
    ],
    ['test_config_push_no_record', [], config(0, { v: 1, payload: ctx }), conflict(null)],
  ])("Fluree's %s passes", async (test, before, operation, answer) => {
    const alias = `${test}-${JSON.stringify(operation).replaceAll(/\W/g, '')}`;
    for (const op of before) await publish({ alias, ...op });
    expect(await publish({ alias, ...operation }).catch((error) => error)).toMatchObject(answer);
  });
});
