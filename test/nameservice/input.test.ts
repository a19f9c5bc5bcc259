import { describe, expect, it } from 'vitest';
import { get, httpEvent, post, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const { handlers, publish, rawItems } = await nameserviceWorld();
await publish({ op: 'initLedger', alias: 'l' });

const alias = 'l';
const pointer = { address: 'a', t: 1 };
const VALID: Record<string, Record<string, unknown>> = {
  initLedger: { alias },
  publishCommit: { alias, ...pointer },
  publishIndex: { alias, ...pointer, allowEqual: true },
  retract: { alias },
  compareAndSetRef: { alias, ref: 'commit', expected: { address: null, t: 0 }, next: pointer },
  fastForwardCommit: { alias, ...pointer, maxRetries: 3 },
  pushStatus: { alias, expected: { state: 'ready', v: 1 }, next: { state: 'x', v: 2, extra: {} } },
  pushConfig: { alias, expected: { v: 0 }, next: { v: 1, payload: {} } },
  publishGraphSource: { alias: 'gs', sourceType: 'db:Bm25Index', config: {}, dependencies: ['l'] },
  publishGraphSourceIndex: { alias: 'gs', ...pointer },
  retractGraphSource: { alias: 'gs' },
};

/** The fields of each operation besides alias and requestId. */
const FIELDS: Record<string, string[]> = {
  publishCommit: ['address', 't'],
  publishIndex: ['address', 't', 'allowEqual'],
  compareAndSetRef: ['ref', 'expected', 'expected.address', 'expected.t', 'next', 'next.address', 'next.t'],
  fastForwardCommit: ['address', 't', 'maxRetries'],
  pushStatus: ['expected', 'expected.state', 'expected.v', 'next', 'next.state', 'next.v', 'next.extra'],
  pushConfig: [
    'expected',
    'expected.v',
    'next',
    'next.v',
    'next.payload',
    'next.payload.defaultContextAddress',
    'next.payload.extra',
  ],
  publishGraphSource: ['sourceType', 'config', 'dependencies', 'dependencies.0'],
  publishGraphSourceIndex: ['address', 't'],
};

/** Texts that are too deep, have too large a number, are too long through spaces, or are ill-formed. */
const BAD_TEXTS = [JSON.stringify(deep(32)), '{"a":1e999}', `[${' '.repeat(4095)}]`, '"\ud800"'];

const MISSING = Symbol('missing');
const BAD_NAMES = [MISSING, null, 7, '', '\ud800'];
const BAD_COUNTERS = [MISSING, null, '1', -1, 1.5, 2 ** 53];
const BAD: Record<string, unknown[]> = {
  alias: [...BAD_NAMES, ':', 'a:', ':main', 'a:b:c', 'x'.repeat(1020), `${'x'.repeat(1020)}:main`, 'é'.repeat(513)],
  address: [...BAD_NAMES, 'x'.repeat(1025)],
  t: BAD_COUNTERS,
  requestId: ['', 7, 'x'.repeat(257)],
  allowEqual: [null, 'true', 1],
  maxRetries: [null, -1, 21, 0.5],
  ref: [MISSING, 'head', null],
  expected: [MISSING, 1, 'x'],
  next: [MISSING, null, 1],
  'expected.address': [MISSING, 7, ''],
  'expected.t': BAD_COUNTERS,
  'next.address': [...BAD_NAMES, 'x'.repeat(1025)],
  'next.t': BAD_COUNTERS,
  'expected.state': [...BAD_NAMES, 'x'.repeat(257)],
  'expected.v': BAD_COUNTERS,
  'next.state': [...BAD_NAMES, 'x'.repeat(257)],
  'next.v': BAD_COUNTERS,
  'next.extra': [
    null,
    [],
    'x',
    { '': 1 },
    named('__proto__', 1),
    { a: [{ b: named('__proto__', {}) }] },
    { a: '\ud800' },
    { a: [1e126] },
    { a: 2 ** 53 },
    { a: [{ b: -(2 ** 53) }] },
    { a: 1e-131 },
    { a: 'x'.repeat(4096) },
    deep(40),
    deep(31),
  ],
  'next.payload': [MISSING, [], 'x', 7],
  'next.payload.defaultContextAddress': [null, 7, ''],
  'next.payload.extra': [
    null,
    [],
    'x',
    { a: 1e130 },
    { a: 1e21 },
    named('__proto__', {}),
    { a: [named('__proto__', 1)] },
    deep(31),
  ],
  sourceType: [...BAD_NAMES, 'x'.repeat(257)],
  config: [
    MISSING,
    'not json',
    '{"a":',
    '',
    'x'.repeat(5000),
    { a: 'x'.repeat(4096) },
    { a: [2 ** 53] },
    deep(40),
    ...BAD_TEXTS,
  ],
  dependencies: [MISSING, null, 'l', {}, Array(101).fill('l')],
  'dependencies.0': [null, 7, '', 'a:b:c', ':x'],
};

/** Makes an object with a field of any name. In a literal, `__proto__` would set the prototype. */
function named(name: string, value: unknown): object {
  return Object.fromEntries([[name, value]]);
}

function deep(levels: number): object {
  return levels === 0 ? {} : { d: deep(levels - 1) };
}

const at = (value: unknown, name: string): unknown => Reflect.get(Object(value), name);

function withField(payload: object, path: string, bad: unknown): object {
  const copy = structuredClone(payload);
  const names = path.split('.');
  const holder = names.slice(0, -1).reduce((value, name) => at(value, name), copy as unknown);
  const last = names.at(-1) ?? '';
  if (bad === MISSING) Reflect.deleteProperty(Object(holder), last);
  else Reflect.set(Object(holder), last, bad);
  return copy;
}

describe('bad input', () => {
  it.each(Object.keys(VALID))('bad input is named, and not written: %s', async (op) => {
    const before = await rawItems('l:main');
    const payload = { op, ...VALID[op] };
    handlers.publish.requests.sent.length = 0;
    for (const path of ['alias', 'requestId', ...(FIELDS[op] ?? [])])
      for (const bad of BAD[path] ?? []) {
        const tried = withField(payload, path, bad);
        const { outcome, body } = await throughTask(handlers.publish, tried);
        const label = JSON.stringify(tried).slice(0, 200);
        expect(outcome, label).toBe('InvalidRequest');
        expect(
          (body.issues as { path: string }[]).map((issue) => issue.path),
          label,
        ).toContain(path);
      }
    const { body } = await post(handlers.publish, { ...payload, surplus: 1 });
    expect(body.issues).toEqual([{ path: 'surplus', message: 'is not a known field' }]);
    expect(handlers.publish.requests.sent).toEqual([]);
    expect(await rawItems('l:main')).toEqual(before);
  });

  it('every operation accepts its valid payload', async () => {
    const world = await nameserviceWorld();
    const order = ['initLedger', 'publishGraphSource', ...Object.keys(VALID)];
    for (const op of new Set(order)) {
      const { outcome } = await throughTask(world.handlers.publish, { op, ...VALID[op] });
      expect(['ok', 'Conflict'], op).toContain(outcome);
    }
  });

  it('bad input is refused with the reason', async () => {
    const range = 'must not contain a number beyond the range of DynamoDB';
    const rounded = 'must not contain a whole number beyond 2^53 - 1, which JSON rounds: send it as a string';
    const extra = (value: object) => ({ op: 'pushStatus', ...withField(VALID.pushStatus ?? {}, 'next.extra', value) });
    const config = (value: unknown) => ({ op: 'publishGraphSource', ...VALID.publishGraphSource, config: value });
    const cases: [object, string, string][] = [
      [extra({ a: 1, b: [1e126] }), 'next.extra', range],
      [extra({ a: 1, b: -1e126 }), 'next.extra', range],
      [extra({ a: 1, b: 9e-131 }), 'next.extra', range],
      [extra({ a: 1, b: 2 ** 53 }), 'next.extra', rounded],
      [extra({ a: 1, b: 9e125 }), 'next.extra', rounded],
      [config('not json'), 'config', 'must be JSON, or a string that is JSON'],
      [config(undefined), 'config', 'is missing'],
      [config({ a: 1, b: 2 ** 53 }), 'config', `${rounded.replace('send it', 'send the config')} of JSON`],
      [{ op: 'publishCommit', alias, address: 'a' }, 't', 'is missing'],
      [{ ...VALID.compareAndSetRef, op: 'compareAndSetRef', expected: 1 }, 'expected', 'must be a JSON object or null'],
      [{ ...VALID.compareAndSetRef, op: 'compareAndSetRef', next: null }, 'next', 'must be a JSON object'],
      [{ ...VALID.pushStatus, op: 'pushStatus', next: undefined }, 'next', 'is missing'],
      [
        { ...VALID.pushStatus, op: 'pushStatus', expected: { state: 'ready', v: 1, w: 1 } },
        'expected.w',
        'is not a known field',
      ],
      [{ ...VALID.publishIndex, op: 'publishIndex', allowEqual: 1 }, 'allowEqual', 'must be true or false'],
    ];
    for (const [payload, path, message] of cases) {
      const { body } = await post(handlers.publish, payload);
      expect(body.issues, JSON.stringify(payload)).toContainEqual({ path, message });
    }
    for (const payload of [[], null, 7, 'initLedger']) {
      const { outcome, body } = await throughTask(handlers.publish, payload);
      expect([outcome, body.issues], JSON.stringify(payload)).toEqual([
        'InvalidRequest',
        [{ path: 'payload', message: 'must be a JSON object' }],
      ]);
    }
  });

  it('bad input names the operations if op is not one', async () => {
    for (const op of ['publish', null, 7, ['retract']]) {
      const { status, body } = await post(handlers.publish, { op, alias });
      expect([status, body.code]).toEqual([400, 'InvalidRequest']);
      expect(body.detail).toMatch(/^op: must be one of initLedger, publishCommit, /);
    }
    expect((await post(handlers.publish, { alias })).body.detail).toBe('op: is missing');
    expect((await post(handlers.publish, [])).status).toBe(400);
  });

  it('a value just within its bounds is accepted, and read back unchanged', async () => {
    const world = await nameserviceWorld();
    await world.publish({ op: 'initLedger', alias });
    const extra = { ...deep(30), zero: 0, small: 1e-130, whole: Number.MAX_SAFE_INTEGER, texts: ['', 'x'] };
    await world.publish({ op: 'pushStatus', ...VALID.pushStatus, next: { state: 'x', v: 2, extra } });
    await world.publish({ op: 'pushConfig', ...VALID.pushConfig, next: { v: 1, payload: { extra } } });
    expect(await world.lookUp(alias)).toMatchObject({ status: { extra }, config: { payload: { extra } } });
    // Only its own 4,096 bytes count, even though its quotes would take two bytes each in a JSON string.
    const long = `["${'","'.repeat(1364)}"]`;
    expect(Buffer.byteLength(long)).toBe(4096);
    for (const config of [long, JSON.stringify(deep(31)), deep(31), { none: null }]) {
      const { current } = await world.publish({ op: 'publishGraphSource', ...VALID.publishGraphSource, config });
      const value = typeof config === 'string' ? JSON.parse(config) : config;
      expect(current).toMatchObject({ config: { value } });
    }
  });

  it('a record with the longest possible dependencies is accepted, in any encoding', async () => {
    const escaped = (text: string) =>
      text.replace(/./g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
    const aliases = Array.from({ length: 100 }, (_, index) => `"${escaped(`${index}:`.padEnd(1024, 'x'))}"`);
    const rest = '"op":"publishGraphSource","alias":"long","sourceType":"x","config":{}';
    const body = `{${rest},"dependencies":[${aliases}]}`;
    expect(body.length).toBeGreaterThan(100 * 1024 * 6);
    const { status, body: answer } = await throughHttp(handlers.publish, httpEvent('POST', { body }));
    expect([status, answer.code]).toEqual([201, undefined]);
  });

  it('bad input of a read is named', async () => {
    const cases: [Record<string, string>, string][] = [
      [{ alias: 'a:b:c' }, 'alias'],
      [{ alias: '' }, 'alias'],
      [{ alias: 'a', kind: 'ledger' }, 'kind'],
      [{ alias: 'a', limit: '5' }, 'limit'],
      [{ kind: 'ledgers' }, 'kind'],
      [{ limit: '0' }, 'limit'],
      [{ limit: '1001' }, 'limit'],
      [{ limit: 'ten' }, 'limit'],
      [{ prefix: '' }, 'prefix'],
      [{ cursor: 'abc' }, 'cursor'],
      [{ name: 'a' }, 'name'],
    ];
    for (const [query, path] of cases) {
      const { status, body } = await get(handlers.readNames, query);
      expect([status, (body.issues as { path: string }[])[0]?.path], JSON.stringify(query)).toEqual([400, path]);
    }
    expect(handlers.readNames.requests.sent).toEqual([]);
  });
});
