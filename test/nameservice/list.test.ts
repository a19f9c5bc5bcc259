import { BatchWriteItemCommand } from '@aws-sdk/client-dynamodb';
import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_TRIES } from '../../shared/aws/dynamodb.ts';
import { encodeCursor } from '../../shared/listings/cursor.ts';
import { graphSourceItems, ledgerItems } from '../../shared/nameservice/items.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

/** Enough for pages of 700, whatever ROUNDS says. */
const ALIASES = isFull ? 5000 : 1200;
const seed = testSeed();
const world = await nameserviceWorld();
const { list, publish, intercepted, requests, table } = world;

/** Two ledgers for each graph source. */
const isSource = (i: number) => i % 3 === 2;
const names = Array.from({ length: ALIASES }, (_, i) => `team-${i % 10}/db-${String(i).padStart(4, '0')}`);

async function seedTable(): Promise<void> {
  const items = names.flatMap((name, i) => {
    const alias = { name, branch: 'main' };
    const writing = { now: 1000 + i, style: 'address' as const };
    if (!isSource(i)) return ledgerItems(alias, writing, { commit: { address: `c${i}`, t: i } });
    return graphSourceItems(alias, { sourceType: 'x', config: `{"i":${i}}`, dependencies: [] }, writing);
  });
  for (let from = 0; from < items.length; from += 25) {
    const puts = items.slice(from, from + 25).map((item) => ({ PutRequest: { Item: item } }));
    await world.dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }));
  }
}
await seedTable();

beforeEach(() => {
  delete intercepted.by;
});

/** All pages of a listing, and a retry of a page that was throttled, as a caller would. */
async function everything(query: object = {}) {
  const records = [];
  let throttled = 0;
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await list({ ...query, ...(cursor && { cursor }) }).catch((error) => {
      if (error.code !== 'Throttled' || ++throttled > 50) throw error;
    });
    if (!page) continue;
    records.push(...page.records);
    cursor = page.nextCursor;
  }
  return { records, throttled };
}

const canonical = (names: string[]) => names.map((name) => `${name}:main`).sort();

describe(`listing ${ALIASES} aliases (SEED=${seed})`, () => {
  it('a listing shows every alias once, ledgers first, each kind by name', async () => {
    const { records } = await everything({ limit: 700 });
    expect(records.map(({ alias }) => alias)).toEqual([
      ...canonical(names.filter((_, i) => !isSource(i))),
      ...canonical(names.filter((_, i) => isSource(i))),
    ]);
    for (const record of records) {
      const i = Number(record.alias.slice(-9, -5));
      if (record.kind === 'ledger') expect(record.commit).toEqual({ address: `c${i}`, t: i });
      else expect(record.config).toEqual({ v: 1, value: { i } });
    }
  });

  it('a listing shows every alias once even if keys stay unprocessed', async () => {
    const random = seededRandom(seed);
    let unprocessed = 0;
    intercepted.by = async (command, input: { RequestItems: Record<string, { Keys: object[] }> }, next) => {
      if (command !== 'BatchGetItem' || random() < 0.5) return next();
      const { Keys: keys = [], ...rest } = input.RequestItems[table] ?? {};
      const split = Math.floor(random() * keys.length);
      unprocessed += keys.length - split;
      const left = { [table]: { Keys: keys.slice(split), ...rest } };
      if (split === 0) return { Responses: {}, UnprocessedKeys: left };
      const output = await next({ RequestItems: { [table]: { Keys: keys.slice(0, split), ...rest } } });
      return { ...output, UnprocessedKeys: left };
    };
    requests.faults = Array.from({ length: ALIASES * 0.06 }, () => (random() < 0.1 ? 'throttle' : 'none'));
    // Long enough to use up the tries of one of four requests that run at once.
    requests.faults.splice(40, 0, ...Array(4 * MAX_TRIES).fill('throttle'));
    const { records, throttled } = await everything({ limit: 500 });
    expect(throttled).toBeGreaterThan(0);
    expect(unprocessed).toBeGreaterThan(ALIASES / 5);
    expect(requests.faults).toEqual([]);
    expect(records.map(({ alias }) => alias).sort()).toEqual(canonical(names));
    for (const record of records) expect(record).not.toHaveProperty('missing');
  });

  it('a listing is Throttled rather than incomplete if keys stay unprocessed', async () => {
    intercepted.by = async (command, input: { RequestItems: object }, next) =>
      command === 'BatchGetItem' ? { Responses: {}, UnprocessedKeys: input.RequestItems } : next();
    const before = world.clock.now();
    const { code, context } = await failure(list({ limit: 5 }));
    expect([code, context.retryAfterMs]).toEqual(['Throttled', 1000]);
    expect(world.clock.now() - before).toBeGreaterThan((50 + 100 + 200 + 400 + 800) / 2);
  });

  it('a listing stops all of its requests once one has failed', async () => {
    let running = 0;
    let sent = 0;
    const slow = async (send: () => Promise<unknown>) => {
      sent++;
      running++;
      return send().finally(() => running--);
    };
    requests.faultsOf.BatchGetItem = [slow, { name: 'AccessDeniedException', status: 400 }, ...Array(50).fill(slow)];
    const { code } = await failure(list({ limit: 1000 }));
    expect([code, running, sent]).toEqual(['Unavailable', 0, 3]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toBe(3);
    delete requests.faultsOf.BatchGetItem;
  });

  it('a listing does not wait for an unanswered request after another has failed', async () => {
    requests.faultsOf.BatchGetItem = ['hang', { name: 'AccessDeniedException', status: 400 }];
    expect((await failure(list({ limit: 40 }))).code).toBe('Unavailable');
    expect(requests.faultsOf.BatchGetItem).toEqual([]);
  });

  it('a listing takes one query, and a request for each 20 aliases', async () => {
    requests.sent.length = 0;
    await list({ kind: 'ledger', limit: 100 });
    expect(requests.sent.toSorted()).toEqual([...Array(5).fill('BatchGetItem'), 'Query']);
  });

  it('a listing by kind and prefix has pages that end with a kind', async () => {
    const mine = names.filter((name) => name.startsWith('team-7/'));
    const kinds = Map.groupBy(mine, (name) => (isSource(names.indexOf(name)) ? 'graph_source' : 'ledger'));
    const ledgers = canonical(kinds.get('ledger') ?? []);
    const sources = canonical(kinds.get('graph_source') ?? []);
    const prefix = 'team-7/';
    for (const limit of [ledgers.length - 1, ledgers.length, ledgers.length + 1, 1000]) {
      const { records } = await everything({ prefix, limit });
      expect(records.map(({ alias }) => alias)).toEqual([...ledgers, ...sources]);
    }
    const { records } = await everything({ prefix, kind: 'graph_source', limit: 50 });
    expect(records.map(({ alias }) => alias)).toEqual(sources);
    expect(await list({ prefix: 'nobody' })).toEqual({ records: [], nextCursor: null });
  });

  it('a listing goes on with the next kind after a full last page', async () => {
    const mine = names.filter((name) => name.startsWith('team-1/'));
    const limit = mine.filter((name) => !isSource(names.indexOf(name))).length;
    // DynamoDB mostly names a last key when it has reached the limit, but need not where nothing comes after it.
    intercepted.by = async (command, input: { Limit?: number }, next) => {
      const output = (await next()) as { Items: object[]; LastEvaluatedKey?: object };
      if (command === 'Query' && output.Items.length === input.Limit) delete output.LastEvaluatedKey;
      return output;
    };
    const first = await list({ prefix: 'team-1/', limit });
    expect(new Set(first.records.map(({ kind }) => kind))).toEqual(new Set(['ledger']));
    const second = await list({ prefix: 'team-1/', limit: 1000, cursor: first.nextCursor });
    expect(new Set(second.records.map(({ kind }) => kind))).toEqual(new Set(['graph_source']));
    expect([...first.records, ...second.records].map(({ name }) => name).sort()).toEqual(mine.toSorted());
    expect(second.nextCursor).toBeNull();
  });

  it('a listing accepts only its own cursors', async () => {
    const { nextCursor } = await list({ kind: 'ledger', prefix: 'team-3/', limit: 1 });
    const cursor = nextCursor ?? '';
    for (const query of [
      { kind: 'graph_source', cursor },
      { prefix: 'team-4/', cursor },
      { cursor: encodeCursor(`ledger>${'x'.repeat(1025)}`) },
      { cursor: encodeCursor('other>a:main') },
      { cursor: encodeCursor('ledger') },
    ])
      expect((await failure(list(query))).context.issues).toMatchObject([{ path: 'cursor' }]);
    expect((await list({ prefix: 'team-3/', cursor, limit: 1 })).records).toHaveLength(1);
    const longest = encodeCursor(`ledger>${'x'.repeat(1024)}`);
    expect(await list({ kind: 'ledger', cursor: longest })).toEqual({ records: [], nextCursor: null });
  });
});

describe('a listing', () => {
  it("a listing ignores other clients' rows, and reads past a stale index", async () => {
    const prefix = 'zz-foreign';
    for (const name of ['a', 'b']) await publish({ op: 'initLedger', alias: `${prefix}-${name}` });
    for (const sk of ['aaa', 'zzz'])
      await world.putRaw({ pk: { S: `${prefix}-a:main` }, sk: { S: sk }, kind: { S: 'ledger' } });
    for (const limit of [1, 2, 10]) {
      const { records } = await everything({ prefix, limit });
      expect(records.map(({ name }) => name)).toEqual([`${prefix}-a`, `${prefix}-b`]);
    }
    intercepted.by = async (command, _, next) => {
      if (command === 'BatchGetItem') await world.deleteRaw(`${prefix}-a:main`, 'meta');
      return next();
    };
    expect((await list({ prefix })).records.map(({ name }) => name)).toEqual([`${prefix}-b`]);
  });

  it('a listing of one kind leaves out aliases that have changed their kind', async () => {
    const prefix = 'zz-turned';
    await publish({ op: 'initLedger', alias: prefix });
    intercepted.by = async (command, _, next) => {
      if (command !== 'BatchGetItem') return next();
      delete intercepted.by;
      const key = `${prefix}:main`;
      for (const { sk } of await world.rawItems(key)) await world.deleteRaw(key, sk?.S ?? '');
      await publish({ op: 'publishGraphSource', alias: prefix, sourceType: 'x', config: {}, dependencies: [] });
      return next();
    };
    expect(await list({ prefix, kind: 'ledger' })).toEqual({ records: [], nextCursor: null });
    expect((await list({ prefix })).records).toMatchObject([{ name: prefix, kind: 'graph_source' }]);
  });

  it('a listing pauses only while time is left', async () => {
    intercepted.by = async (command, input: { RequestItems: object }, next) =>
      command === 'BatchGetItem' ? { Responses: {}, UnprocessedKeys: input.RequestItems } : next();
    const before = world.clock.now();
    expect((await failure(list({ prefix: 'team-1/', limit: 5 }, call({ timeLeftMs: () => 10 })))).code).toBe(
      'Throttled',
    );
    expect(world.clock.now() - before).toBe(5 * 10);
  });

  it('a listing ends a page before it is too large for an answer', async () => {
    // A function answers with JSON in JSON, where a control character takes seven bytes.
    const note = '\u0001'.repeat(15_000);
    const prefix = 'zz-heavy';
    const heavy = Array.from({ length: 40 }, (_, i) => `${prefix}-${String(i).padStart(3, '0')}`);
    for (const name of heavy) {
      const [meta, head, index, status, config] = ledgerItems({ name, branch: 'main' }, { now: 1, style: 'address' });
      const map = { M: { note: { S: note } } };
      const items = [meta, head, index, { ...status, status_meta: map }, { ...config, config_meta: map }];
      const puts = items.map((item) => ({ PutRequest: { Item: item } }));
      await world.dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }));
    }
    const first = await list({ prefix, limit: 1000 });
    expect(Buffer.byteLength(JSON.stringify(JSON.stringify(first)))).toBeLessThan(6_291_556 - 1000);
    expect(first.nextCursor).not.toBeNull();
    const { records } = await everything({ prefix, limit: 1000 });
    expect(records.map(({ name }) => name)).toEqual(heavy);
  });
});

it('a page that goes on with graph sources keeps to its limit', async () => {
  const own = await nameserviceWorld();
  for (const alias of ['a', 'b']) await own.publish({ op: 'initLedger', alias });
  for (const alias of ['c', 'd', 'e'])
    await own.publish({ op: 'publishGraphSource', alias, sourceType: 'x', config: {}, dependencies: [] });
  const { records, nextCursor } = await own.list({ limit: 3 });
  expect(records.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  const rest = await own.list({ limit: 3, cursor: nextCursor });
  expect(rest.records.map(({ name }) => name)).toEqual(['d', 'e']);
});
