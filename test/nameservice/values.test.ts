import { describe, expect, it } from 'vitest';
import { exactNumber } from '../../shared/nameservice/values.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const world = await nameserviceWorld();
const { publish, lookUp, rawItems, putRaw } = world;

const init = (alias: string) => publish({ op: 'initLedger', alias });
const source = (alias: string) =>
  publish({ op: 'publishGraphSource', alias, sourceType: 'db:Bm25Index', config: {}, dependencies: [] });
const pk = (alias: string) => ({ pk: { S: `${alias}:main` } });

describe('numbers that a double cannot hold', () => {
  it('large numbers that other clients wrote come back to the digit', async () => {
    await init('numbers');
    const numbers = [
      '9007199254740993',
      '-9223372036854775808',
      '0.1234567890123456789012345678901234567',
      '1.5',
      '1E2',
      '1E21',
      '0.0000001',
      '-0.0000001',
    ];
    await putRaw({
      ...pk('numbers'),
      sk: { S: 'status' },
      status_meta: { M: { all: { L: numbers.map((N) => ({ N })) } } },
    });
    expect(JSON.stringify((await lookUp('numbers')).status.extra)).toBe(
      '{"all":[9007199254740993,-9223372036854775808,0.1234567890123456789012345678901234567,1.5,100,1e+21,1e-7,-1e-7]}',
    );
    const config = '{"seed":9007199254740993,"k1":1.20,"none":0.0,"nested":[18446744073709551615]}';
    await publish({ op: 'publishGraphSource', alias: 'exact', sourceType: 'x', config, dependencies: [] });
    expect(JSON.stringify((await lookUp('exact')).config)).toBe(
      '{"v":1,"value":{"seed":9007199254740993,"k1":1.2,"none":0,"nested":[18446744073709551615]}}',
    );
  });

  it('numbers with a hundred thousand zeros come back to the digit', {
    timeout: 30_000,
  }, async () => {
    const number = (zeros: number) => `0.1${'0'.repeat(zeros)}1`;
    const config = `[${number(4085)}]`; // as large as a config may be
    await publish({ op: 'publishGraphSource', alias: 'zeros-own', sourceType: 'x', config, dependencies: [] });
    const foreign = `[${number(390_000)}]`;
    await source('zeros-vast');
    await putRaw({ ...pk('zeros-vast'), sk: { S: 'config' }, config_v: { N: '1' }, config_json: { S: foreign } });
    for (const [alias, value] of [
      ['zeros-own', config],
      ['zeros-vast', foreign],
    ] as const)
      expect(JSON.stringify((await lookUp(alias)).config) === `{"v":1,"value":${value}}`).toBe(true);
    const { records } = await world.list({ kind: 'graph_source', prefix: 'zeros-' });
    const shown = [config, foreign].map((value) => `{"v":1,"value":${value}}`);
    expect(records.map((record) => JSON.stringify(record.config))).toEqual(shown);
  });

  it('numbers that a double cannot hold equal themselves in a repeat', async () => {
    await init('tiny');
    const next = { state: 'x', v: 2, extra: { small: 1e-7, sum: 0.1 + 0.2, large: 2 ** 53 - 1 } };
    const op = { op: 'pushStatus', alias: 'tiny', expected: { state: 'ready', v: 1 }, next };
    await publish(op);
    expect(await publish(op)).toMatchObject({ repeated: true });
    expect((await lookUp('tiny')).status.extra).toEqual(next.extra);
  });
});

describe('a number in a text', () => {
  it.each([
    '12345678901234567890.5',
    '-1.2345678901234567891e30',
    '1.2345678901234567891e+30',
    '1.2345678901234567891E-30',
    '1e400',
  ])('a number in a text keeps digits that a double cannot hold: %s', (number) => {
    expect(JSON.stringify(exactNumber(number))).toBe(number);
  });

  it.each(['100', '1e2', '1e30', '1E+30', '-0.10', '1.0e-7'])(
    'a number in a text is a number if a double holds it: %s',
    (number) => {
      expect(exactNumber(number)).toBe(Number(number));
    },
  );

  it.each(['+12345678901234567891', '12345678901234567891.'])(
    'a number in a text is rounded if it is not JSON: %s',
    (number) => {
      expect(exactNumber(number)).toBe(Number(number));
    },
  );
});

describe('a config of another client', () => {
  const shown = async (config: string) => {
    await source('nested');
    await putRaw({ ...pk('nested'), sk: { S: 'config' }, config_v: { N: '1' }, config_json: { S: config } });
    return (await lookUp('nested')).config;
  };
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

  it.each([
    ['a hundred and one deep', nested(101)],
    ['of objects, texts and nulls', '{"a":[null,"text",[1]],"b":null}'],
  ])('a config of another client is shown as its value: %s', async (_, config) => {
    expect(await shown(config)).toEqual({ v: 1, value: JSON.parse(config) });
  });

  it.each([
    ['a hundred and two deep', nested(102)],
    ['as deep beside others', `[null,"text",${nested(101)}]`],
  ])('a config of another client is shown as text: %s', async (_, config) => {
    expect(await shown(config)).toEqual({ v: 1, value: config });
  });
});

describe('what JSON or a record lacks', () => {
  it('a repeat is recognised even if another client has added a set', async () => {
    await init('sets');
    const next = { state: 'x', v: 2, extra: { kept: 1 } };
    const op = { op: 'pushStatus', alias: 'sets', expected: { state: 'ready', v: 1 }, next };
    await publish(op);
    const status = (await rawItems('sets:main')).find(({ sk }) => sk?.S === 'status');
    await putRaw({ ...status, status_meta: { M: { ...status?.status_meta?.M, tags: { SS: ['a'] } } } });
    expect((await lookUp('sets')).status).toStrictEqual(next);
    expect(await publish(op)).toMatchObject({ repeated: true });
  });

  it('a config without a text is an empty one', async () => {
    await source('textless');
    await putRaw({ ...pk('textless'), sk: { S: 'config' }, config_v: { N: '3' } });
    expect(await lookUp('textless')).toMatchObject({ config: { v: 3, value: {} } });
  });

  it('a dependency that is not a text is left out', async () => {
    const dependencies = { L: [{ N: '1' }, { S: 'books:main' }] };
    await putRaw({ ...pk('numbered'), sk: { S: 'meta' }, kind: { S: 'graph_source' }, dependencies });
    expect(await lookUp('numbered')).toMatchObject({ dependencies: ['books:main'] });
  });

  it('a graph source that has only its kind is shown with empty values', async () => {
    await putRaw({ ...pk('bare'), sk: { S: 'meta' }, kind: { S: 'graph_source' } });
    expect(await lookUp('bare')).toMatchObject({
      alias: 'bare:main',
      name: 'bare:main',
      branch: '',
      retracted: false,
      missing: ['config', 'index', 'status'],
      sourceType: '',
      dependencies: [],
      config: { v: 0, value: {} },
    });
  });
});
