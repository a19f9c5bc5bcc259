import { describe, expect, it } from 'vitest';
import { CONCERNS } from '../../shared/nameservice/items.ts';
import { recordOf, rowsOf } from '../../shared/nameservice/record.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

/**
 * The tests that Fluree keeps for its own nameservices, one for one and under their names. Where this service answers
 * another way on purpose, the name says so.
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
  const record = (...items: object[]) => recordOf(rowsOf(items as never), 'address');

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
  it("Fluree's test_ref_cas_create_new passes", async () => {
    expect(await cas('m-new', 'commit', null, at(1))).toMatchObject({ created: true, current: at(1) });
  });

  it("Fluree's test_ref_cas_conflict_already_exists passes", async () => {
    await cas('m-exists', 'commit', null, at(1));
    const { code, context } = await failure(cas('m-exists', 'commit', null, at(2)));
    expect([code, context.actual]).toEqual(['Conflict', at(1)]);
  });

  it("Fluree's test_ref_cas_conflict_id_mismatch passes", async () => {
    await cas('m-mismatch', 'commit', null, at(1));
    const { code, context } = await failure(cas('m-mismatch', 'commit', at(1, 'another'), at(2)));
    expect([code, context.actual]).toEqual(['Conflict', at(1)]);
    expect((await lookUp('m-mismatch')).commit).toEqual(at(1));
  });

  it("Fluree's test_ref_cas_success_id_matches passes", async () => {
    await cas('m-match', 'commit', null, at(1));
    expect(await cas('m-match', 'commit', at(1), at(2))).toMatchObject({ outcome: 'updated', current: at(2) });
  });

  it("Fluree's test_ref_cas_commit_strict_monotonic passes", async () => {
    await cas('m-strict', 'commit', null, at(5));
    for (const t of [5, 4]) {
      const { code, context } = await failure(cas('m-strict', 'commit', at(5), at(t, 'other')));
      expect([code, context.actual]).toEqual(['Conflict', at(5)]);
    }
  });

  it("Fluree's test_ref_cas_index_allows_equal_t passes", async () => {
    await cas('m-equal', 'index', null, at(5));
    expect(await cas('m-equal', 'index', at(5), at(5, 'rebuilt'))).toMatchObject({ current: at(5, 'rebuilt') });
    expect((await failure(cas('m-equal', 'index', at(5, 'rebuilt'), at(4)))).code).toBe('Conflict');
  });

  it("Fluree's test_ref_cas_expected_some_but_missing passes", async () => {
    const { code, context } = await failure(cas('m-missing', 'commit', at(1), at(2)));
    expect([code, context.actual]).toEqual(['Conflict', null]);
    expect(await world.rawItems('m-missing:main')).toEqual([]);
  });

  it("Fluree's test_ref_fast_forward_commit_success passes", async () => {
    await cas('m-ff', 'commit', null, at(1));
    const forward = await publish({ op: 'fastForwardCommit', alias: 'm-ff', ...at(9) });
    expect(forward).toMatchObject({ outcome: 'updated', current: at(9) });
    const fresh = await publish({ op: 'fastForwardCommit', alias: 'm-ff-new', ...at(3) });
    expect(fresh).toMatchObject({ created: true, current: at(3) });
  });

  it("Fluree's test_ref_fast_forward_commit_rejected_stale passes", async () => {
    await cas('m-ff-stale', 'commit', null, at(5));
    const { code, context } = await failure(publish({ op: 'fastForwardCommit', alias: 'm-ff-stale', ...at(4) }));
    expect([code, context.actual]).toEqual(['Conflict', at(5)]);
  });

  const status = (alias: string, expected: object, next: object) =>
    publish({ op: 'pushStatus', alias, expected, next });

  it("Fluree's test_status_get_nonexistent passes", async () => {
    expect((await failure(lookUp('m-status-none'))).code).toBe('NotFound');
    const { code, context } = await failure(status('m-status-none', { state: 'ready', v: 1 }, { state: 'x', v: 2 }));
    expect([code, context.actual]).toEqual(['Conflict', null]);
  });

  it("Fluree's test_status_get_initial passes", async () => {
    await init('m-status');
    expect((await lookUp('m-status')).status).toEqual({ state: 'ready', v: 1, extra: {} });
  });

  it("Fluree's test_status_push_update passes", async () => {
    await init('m-status-update');
    await status('m-status-update', { state: 'ready', v: 1 }, { state: 'indexing', v: 2 });
    expect((await lookUp('m-status-update')).status).toEqual({ state: 'indexing', v: 2, extra: {} });
  });

  it("Fluree's test_status_push_conflict_wrong_expected passes", async () => {
    await init('m-status-wrong');
    for (const expected of [
      { state: 'indexing', v: 1 },
      { state: 'ready', v: 2 },
    ]) {
      const { code, context } = await failure(status('m-status-wrong', expected, { state: 'x', v: 9 }));
      expect([code, context.actual]).toEqual(['Conflict', { state: 'ready', v: 1, extra: {} }]);
    }
  });

  it("Fluree's test_status_push_conflict_non_monotonic passes", async () => {
    await init('m-status-mono');
    const { code, context } = await failure(status('m-status-mono', { state: 'ready', v: 1 }, { state: 'x', v: 1 }));
    expect([code, context.actual]).toEqual(['Conflict', { state: 'ready', v: 1, extra: {} }]);
  });

  it("Fluree's test_status_push_with_extra_metadata passes", async () => {
    await init('m-status-extra');
    const next = { state: 'indexing', v: 2, extra: { progress: 0.5, by: 'indexer-1' } };
    await status('m-status-extra', { state: 'ready', v: 1 }, next);
    expect((await lookUp('m-status-extra')).status).toEqual(next);
  });

  const config = (alias: string, v: number, next: object) =>
    publish({ op: 'pushConfig', alias, expected: { v }, next });
  const context1 = { defaultContextAddress: 'ctx' };

  it("Fluree's test_config_get_nonexistent passes", async () => {
    expect((await failure(lookUp('m-config-none'))).code).toBe('NotFound');
  });

  it("Fluree's test_config_get_unborn passes", async () => {
    await init('m-config');
    expect(await lookUp('m-config')).toMatchObject({ config: { v: 0, payload: null } });
  });

  it("Fluree's test_config_push_from_unborn passes", async () => {
    await init('m-config-first');
    const first = await config('m-config-first', 0, { v: 1, payload: context1 });
    expect(first).toMatchObject({ outcome: 'updated', current: { v: 1, payload: context1 } });
  });

  it("Fluree's test_config_push_update passes", async () => {
    await init('m-config-update');
    await config('m-config-update', 0, { v: 1, payload: context1 });
    await config('m-config-update', 1, { v: 2, payload: { extra: { a: 1 } } });
    expect(await lookUp('m-config-update')).toMatchObject({ config: { v: 2, payload: { extra: { a: 1 } } } });
    expect((await lookUp('m-config-update')).config).not.toHaveProperty('payload.defaultContextAddress');
  });

  it("Fluree's test_config_push_conflict_wrong_expected passes", async () => {
    await init('m-config-wrong');
    await config('m-config-wrong', 0, { v: 3, payload: context1 });
    const { code, context } = await failure(config('m-config-wrong', 2, { v: 4, payload: null }));
    expect([code, context.actual]).toEqual(['Conflict', { v: 3, payload: context1 }]);
  });

  it("Fluree's test_config_push_conflict_non_monotonic passes", async () => {
    await init('m-config-mono');
    await config('m-config-mono', 0, { v: 3, payload: context1 });
    const { code, context } = await failure(config('m-config-mono', 3, { v: 3, payload: null }));
    expect([code, context.actual]).toEqual(['Conflict', { v: 3, payload: context1 }]);
  });

  it("Fluree's test_config_push_no_record passes", async () => {
    const { code, context } = await failure(config('m-config-no', 0, { v: 1, payload: context1 }));
    expect([code, context.actual]).toEqual(['Conflict', null]);
  });
});
