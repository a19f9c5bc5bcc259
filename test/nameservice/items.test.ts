import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { NAMESERVICE } from '../../shared/nameservice/expired.ts';
import { publishInput } from '../../shared/nameservice/inputs.ts';
import type { PointerStyle } from '../../shared/nameservice/pointers.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

/**
 * Each of golden.json was written by hand from the table's published format: calls, and the items that they leave, by `sk`. `call 2` in
 * `updated_at_ms` stands for the moment of the second call.
 */
interface Golden {
  calls: { op: string; alias: string }[];
  pointerStyle?: PointerStyle;
  items: Record<string, Record<string, object>>;
}

const golden: [string, Golden][] = Object.entries(
  JSON.parse(readFileSync(new URL('golden.json', import.meta.url), 'utf8')),
);

/** A revision is a UUID, which no golden item can name. */
const withAnyRevision = (item: object) => ('index_revision' in item ? { ...item, index_revision: { S: 'any' } } : item);

const FIRST_CALL_AT = 1_767_225_601_000;
const timeOf = (call: number) => FIRST_CALL_AT + (call - 1) * 1000;

describe('the items in the table', () => {
  it.each(golden)('the items in the table equal the golden ones: %s', async (_, { calls, pointerStyle, items }) => {
    const { publish, clock, rawItems } = await nameserviceWorld({ pointerStyle: pointerStyle ?? 'address' });
    for (const [index, call] of calls.entries()) {
      clock.set(timeOf(index + 1));
      await publish(call);
    }
    const { alias } = publishInput().parse(calls[0]);
    const pk = `${alias.name}:${alias.branch}`;
    const expected = Object.entries(items).map(([sk, item]) => ({
      ...{ pk: { S: pk }, sk: { S: sk }, schema: { N: '2' } },
      ...JSON.parse(JSON.stringify(item).replace(/"call (\d+)"/g, (_, call) => `"${timeOf(Number(call))}"`)),
    }));
    expect((await rawItems(pk)).map(withAnyRevision)).toEqual(expected);
  });

  it('every operation has a golden example of its items', () => {
    const covered = new Set(golden.map(([, { calls }]) => calls.at(-1)?.op));
    expect([...covered].sort()).toEqual(
      publishInput()
        .def.options.flatMap((option) => option.def.shape.op.def.values)
        .sort(),
    );
  });
});

const world = await nameserviceWorld();
const { publish, repair, lookUp, list, rawItems, putRaw, deleteRaw } = world;

const SOURCE = { op: 'publishGraphSource', sourceType: 'db:Bm25Index', config: {}, dependencies: [] };

/** Gives all items of an alias a schema, as a later client may. */
async function setSchema(alias: string, schema: object = { N: '3' }) {
  for (const item of await rawItems(alias)) await putRaw({ ...item, schema: schema as { N: string } });
  return rawItems(alias);
}

const refused = { code: 'Unavailable', message: expect.stringMatching(/item '\w+' of the alias with schema 3/) };

describe('an alias with an unknown schema', () => {
  const at1 = { address: 'a', t: 1 };
  const at2 = { address: 'b', t: 2 };
  const unborn = { address: null, t: 0 };

  it.each([
    { op: 'publishCommit', ...at2 },
    { op: 'publishIndex', ...at2 },
    { op: 'publishIndex', address: 'c', t: 1, allowEqual: true },
    { op: 'fastForwardCommit', ...at2 },
    { op: 'compareAndSetRef', ref: 'commit', expected: at1, next: at2 },
    { op: 'compareAndSetRef', ref: 'index', expected: at1, next: at2 },
    { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: 'busy', v: 2 } },
    { op: 'pushConfig', expected: { v: 0 }, next: { v: 1, payload: null } },
    { op: 'retract' },
  ])('an alias with an unknown schema refuses $op, and stays readable', async (operation) => {
    const alias = `ledger-${JSON.stringify(operation).replaceAll(/\W/g, '')}`;
    await publish({ op: 'initLedger', alias });
    await publish({ op: 'publishCommit', alias, ...at1 });
    await publish({ op: 'publishIndex', alias, ...at1 });
    const before = await setSchema(`${alias}:main`);
    expect(await failure(publish({ ...operation, alias }))).toMatchObject(refused);
    expect(await rawItems(`${alias}:main`)).toEqual(before);
    expect(await lookUp(alias)).toMatchObject({ commit: at1, status: { state: 'ready', v: 1 } });
    expect((await list({ prefix: alias })).records).toMatchObject([{ alias: `${alias}:main` }]);
  });

  it.each([
    { op: 'resetRef', ref: 'commit', expected: at1, next: unborn },
    { op: 'resetStatus', expected: { state: 'ready', v: 1 }, next: { state: 'new', v: 0 } },
    { op: 'resetConfig', expected: { v: 0 }, next: { v: 0, payload: null } },
    { op: 'unretract', expected: { kind: 'ledger' } },
    {
      op: 'purge',
      expected: { kind: 'ledger', commit: at1, index: unborn, status: { state: 'ready', v: 1 }, config: { v: 0 } },
    },
  ])('an alias with an unknown schema refuses the repair $op', async (operation) => {
    const alias = `repaired-${operation.op}`;
    await publish({ op: 'initLedger', alias });
    await publish({ op: 'publishCommit', alias, ...at1 });
    await publish({ op: 'retract', alias });
    const before = await setSchema(`${alias}:main`);
    expect(await failure(repair({ ...operation, alias }))).toMatchObject(refused);
    expect(await rawItems(`${alias}:main`)).toEqual(before);
  });

  it('a graph source with one item of an unknown schema refuses a definition', async () => {
    for (const sk of ['meta', 'config', 'index', 'status']) {
      const alias = `source-${sk}`;
      await publish({ ...SOURCE, alias });
      const item = (await rawItems(`${alias}:main`)).find((one) => one.sk?.S === sk);
      await putRaw({ ...item, schema: { N: '3' } });
      const before = await rawItems(`${alias}:main`);
      expect(await failure(publish({ ...SOURCE, alias, config: { k: 1 } }))).toMatchObject(refused);
      expect(await rawItems(`${alias}:main`)).toEqual(before);
    }
  });

  it('an alias with an unknown schema is not restored if an item is missing', async () => {
    await publish({ op: 'initLedger', alias: 'headless' });
    await deleteRaw('headless:main', 'head');
    const before = await setSchema('headless:main');
    expect(await failure(publish({ op: 'publishCommit', alias: 'headless', ...at1 }))).toMatchObject(refused);
    expect(await rawItems('headless:main')).toEqual(before);
  });

  it('an alias with an unknown schema and without a kind is not created again', async () => {
    const stub = { pk: { S: 'stub:main' }, sk: { S: 'meta' }, schema: { N: '3' } };
    await putRaw(stub);
    expect((await failure(publish({ op: 'initLedger', alias: 'stub' }))).code).toBe('AlreadyExists');
    expect(await failure(repair({ op: 'purge', alias: 'stub', expected: null }))).toMatchObject(refused);
    expect(await rawItems('stub:main')).toEqual([stub]);
  });
});

it('an alias with an earlier schema, or a non-numeric one, accepts writes', async () => {
  for (const schema of [{ N: '1' }, { S: '3' }]) {
    const alias = `schema-${Object.values(schema)}`;
    await publish({ op: 'initLedger', alias });
    await setSchema(`${alias}:main`, schema);
    expect(await publish({ op: 'publishCommit', alias, address: 'a', t: 1 })).toMatchObject({ outcome: 'updated' });
  }
});

const NOW = Date.parse('2026-01-01T00:00:00Z');
const MARGINS = { clockSkewMs: 500, fenceRetentionSeconds: 60, maxClockSkewRate: 3 };

it.each([
  ['commit#7', { N: '1767225000' }, 'the row of a commit of the ledger is past its ttl'],
  ['head', { N: '1767225000' }, "the part 'head' of the record is past its ttl"],
  [
    'commit#7',
    { S: 'soon' },
    'it is the row of a commit of the ledger; its TTL is not a number, so DynamoDB never deletes it',
  ],
  ['head', { S: 'soon' }, "it is the part 'head' of the record; its TTL is not a number, so DynamoDB never deletes it"],
])('the report explains the row %s with the ttl %o', (sk, ttl, reason) => {
  const row = NAMESERVICE.row({ pk: { S: 'ledger' }, sk: { S: sk }, ttl }, NOW, MARGINS);
  expect(row).toMatchObject({ kind: 'nameserviceRow', key: { pk: 'ledger', sk }, holder: null, reason });
});
