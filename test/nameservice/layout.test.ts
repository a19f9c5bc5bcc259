import { describe, expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const world = await nameserviceWorld();
const { publish, repair, lookUp, list, rawItems, putRaw, deleteRaw } = world;

const SOURCE = { op: 'publishGraphSource', sourceType: 'db:Bm25Index', config: {}, dependencies: [] };

/** Gives all items of an alias a schema, as a later client may. */
async function setSchema(alias: string, schema: object = { N: '3' }) {
  for (const item of await rawItems(alias)) await putRaw({ ...item, schema: schema as { N: string } });
  return rawItems(alias);
}

const refused = { code: 'Unavailable', message: expect.stringMatching(/item '\w+' of the alias with schema 3/) };

describe('an alias whose items have a schema that Holdfast does not know', () => {
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
  ])(
    'an alias with an unknown schema refuses $op, names the schema, and stays as it is and readable',
    async (operation) => {
      const alias = `ledger-${JSON.stringify(operation).replaceAll(/\W/g, '')}`;
      await publish({ op: 'initLedger', alias });
      await publish({ op: 'publishCommit', alias, ...at1 });
      await publish({ op: 'publishIndex', alias, ...at1 });
      const before = await setSchema(`${alias}:main`);
      expect(await failure(publish({ ...operation, alias }))).toMatchObject(refused);
      expect(await rawItems(`${alias}:main`)).toEqual(before);
      expect(await lookUp(alias)).toMatchObject({ commit: at1, status: { state: 'ready', v: 1 } });
      expect((await list({ prefix: alias })).records).toMatchObject([{ alias: `${alias}:main` }]);
    },
  );

  it.each([
    { op: 'resetRef', ref: 'commit', expected: at1, next: unborn },
    { op: 'resetStatus', expected: { state: 'ready', v: 1 }, next: { state: 'new', v: 0 } },
    { op: 'resetConfig', expected: { v: 0 }, next: { v: 0, payload: null } },
    { op: 'unretract', expected: { kind: 'ledger' } },
    {
      op: 'purge',
      expected: { kind: 'ledger', commit: at1, index: unborn, status: { state: 'ready', v: 1 }, config: { v: 0 } },
    },
  ])('an alias with an unknown schema refuses the repair $op, and stays as it is', async (operation) => {
    const alias = `repaired-${operation.op}`;
    await publish({ op: 'initLedger', alias });
    await publish({ op: 'publishCommit', alias, ...at1 });
    await publish({ op: 'retract', alias });
    const before = await setSchema(`${alias}:main`);
    expect(await failure(repair({ ...operation, alias }))).toMatchObject(refused);
    expect(await rawItems(`${alias}:main`)).toEqual(before);
  });

  it('an alias of a graph source refuses a new definition, also if one of its items alone has an unknown schema', async () => {
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

  it('an alias with an unknown schema is not restored if one of its items is missing', async () => {
    await publish({ op: 'initLedger', alias: 'headless' });
    await deleteRaw('headless:main', 'head');
    const before = await setSchema('headless:main');
    expect(await failure(publish({ op: 'publishCommit', alias: 'headless', ...at1 }))).toMatchObject(refused);
    expect(await rawItems('headless:main')).toEqual(before);
  });

  it('an alias with an unknown schema is not created again if it has no kind', async () => {
    const stub = { pk: { S: 'stub:main' }, sk: { S: 'meta' }, schema: { N: '3' } };
    await putRaw(stub);
    expect((await failure(publish({ op: 'initLedger', alias: 'stub' }))).code).toBe('AlreadyExists');
    expect(await failure(repair({ op: 'purge', alias: 'stub', expected: null }))).toMatchObject(refused);
    expect(await rawItems('stub:main')).toEqual([stub]);
  });
});

it('an alias with an earlier schema, or with a schema that is no number, takes writes', async () => {
  for (const schema of [{ N: '1' }, { S: '3' }]) {
    const alias = `schema-${Object.values(schema)}`;
    await publish({ op: 'initLedger', alias });
    await setSchema(`${alias}:main`, schema);
    expect(await publish({ op: 'publishCommit', alias, address: 'a', t: 1 })).toMatchObject({ outcome: 'updated' });
  }
});
