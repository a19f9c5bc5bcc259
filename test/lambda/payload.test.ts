import { describe, expect, it } from 'vitest';
import { addNamespace } from '../../shared/lambda/stored-names.ts';
import { Page } from '../../shared/listings/pages.ts';
import { LEASE_LIST_FIELDS } from '../../shared/locks/calls/inputs.ts';
import { httpEvent, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const { handlers } = await leaseWorld();
const names = await nameserviceWorld();

const MAX_BYTES = 65_536;
const MAX_VALUES = 5000;

/** JSON that means the same, and is as long as it can be. */
const escaped = (value: unknown) =>
  JSON.stringify(value).replaceAll(/"((?:[^"\\]|\\.)*)"/g, (text) => {
    const units = Array.from({ length: JSON.parse(text).length }, (_, at) => JSON.parse(text).charCodeAt(at));
    return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
  });

const longestAcquire = {
  key: 'k'.repeat(1024),
  holder: 'h'.repeat(256),
  requestId: 'r'.repeat(256),
  data: Array.from({ length: 2046 }, () => 0),
  execution: `arn:aws:states:us-east-1:000000000000:execution:${'m'.repeat(121)}:${'e'.repeat(80)}`,
  target: `arn:aws:states:us-east-1:000000000000:execution:${'m'.repeat(121)}:${'t'.repeat(80)}`,
};

describe('a request', () => {
  const padded = (bytes: number) => `{"key":"k","leaseId":"l"${' '.repeat(bytes - 25)}}`;

  it('a request is read up to its maximum of bytes, and refused beyond', async () => {
    for (const [body, base64] of [
      [padded(MAX_BYTES), false],
      [Buffer.from(padded(MAX_BYTES)).toString('base64'), true],
    ] as const)
      expect((await throughHttp(handlers.release, httpEvent('POST', { body, base64 }))).outcome).toBe('ok');
    const over = padded(MAX_BYTES + 1);
    for (const [body, base64] of [
      [over, false],
      [Buffer.from(over).toString('base64'), true],
    ] as const)
      expect(await throughHttp(handlers.release, httpEvent('POST', { body, base64 }))).toMatchObject({
        status: 413,
        outcome: 'PayloadTooLarge',
        body: { limitBytes: MAX_BYTES, detail: 'the request has more than 65536 bytes' },
      });
  });

  it('a request is counted in bytes and not in characters', async () => {
    const body = `{"key":"${'€'.repeat(MAX_BYTES / 3)}","leaseId":"l"}`;
    expect((await throughHttp(handlers.release, httpEvent('POST', { body }))).outcome).toBe('PayloadTooLarge');
    expect((await throughTask(handlers.release, JSON.parse(body))).outcome).toBe('PayloadTooLarge');
  });

  it('a request of a task has the same bounds', async () => {
    expect((await throughTask(handlers.release, { key: 'k', leaseId: 'l'.repeat(MAX_BYTES) })).body).toMatchObject({
      code: 'PayloadTooLarge',
      status: 413,
      limitBytes: MAX_BYTES,
    });
    const names = Object.fromEntries(Array.from({ length: 700 }, (_, at) => [`${at}`.padEnd(100), 0]));
    expect((await throughTask(handlers.release, names)).body).toMatchObject({ limitBytes: MAX_BYTES });
  });

  it('a request may hold a limited number of values, whatever its strings contain', async () => {
    const of = (values: number) => ({ data: Array.from({ length: values - 2 }, () => 0), key: '[{,"\\'.repeat(3000) });
    for (const [payload, outcome] of [
      [of(MAX_VALUES - 1), 'InvalidRequest'],
      [of(MAX_VALUES + 1), 'PayloadTooLarge'],
    ] as const) {
      const http = await throughHttp(handlers.acquire, httpEvent('POST', { body: JSON.stringify(payload) }));
      const task = await throughTask(handlers.acquire, payload);
      expect([http.outcome, task.outcome]).toEqual([outcome, outcome]);
      if (outcome === 'PayloadTooLarge')
        for (const { body } of [http, task]) expect(body).toMatchObject({ limitValues: MAX_VALUES });
    }
  });

  it('a query has the same bounds as a body', async () => {
    const query = `key=${'k'.repeat(MAX_BYTES)}`;
    expect(await throughHttp(handlers.readLeases, httpEvent('GET', { query }))).toMatchObject({ status: 413 });
  });

  it('a request may have all its fields at their longest, each character escaped', async () => {
    const acquired = await throughHttp(handlers.acquire, httpEvent('POST', { body: escaped(longestAcquire) }));
    expect(acquired).toMatchObject({ status: 201, body: { key: longestAcquire.key, data: longestAcquire.data } });
    const dependencies = Array.from({ length: 100 }, (_, at) => `${'d'.repeat(1017)}${100 + at}:x`);
    const source = { op: 'publishGraphSource', alias: 'longest', sourceType: 's', config: 'null', dependencies };
    const published = await throughHttp(names.handlers.publish, httpEvent('POST', { body: escaped(source) }));
    expect(published).toMatchObject({ status: 201, body: { current: { dependencies } } });
  });
});

/** The largest answer that Lambda accepts. */
const MAX_ANSWER_BYTES = 6_291_556;

interface Row {
  key: string;
  data: unknown;
}
const pageOfRows = () => new Page<Row>(({ key }) => ({ key, data: null }));

function nested(levels: number): unknown {
  let value: unknown = 0;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

/** The size of the answer to the gateway. */
const answerBytes = (rows: Row[]) =>
  Buffer.byteLength(JSON.stringify({ statusCode: 200, body: JSON.stringify({ rows, nextCursor: 'c' }) }));

describe('a page', () => {
  it.each([
    ['control characters', '\u0001'],
    ['quotes', '"'],
    ['backslashes', '\\'],
    ['lone surrogates', '\ud800'],
    ['letters', 'a'],
    ['emoji', '🔒'],
  ])('a page of rows of %s fits an answer, and is nearly full', (_, unit) => {
    const page = pageOfRows();
    let key = 0;
    while (page.add({ key: `${key}`, data: unit.repeat(5000) })) key++;
    expect(page.rows).toHaveLength(key);
    const bytes = answerBytes(page.rows);
    expect(bytes).toBeLessThan(MAX_ANSWER_BYTES);
    expect(bytes).toBeGreaterThan(MAX_ANSWER_BYTES / 2);
  });

  it('a page shortens a row that is nested too deep for JSON', () => {
    const page = pageOfRows();
    for (const [key, data] of Object.entries({ a: 1, b: nested(150_000), c: 3 })) page.add({ key, data });
    expect(page.rows).toEqual([
      { key: 'a', data: 1 },
      { key: 'b', data: null },
      { key: 'c', data: 3 },
    ]);
  });

  it('a page shortens a row that is larger than a page', () => {
    const page = pageOfRows();
    const large = '\u0001'.repeat(1_000_000);
    for (const [key, data] of Object.entries({ a: 1, b: large, c: 3 })) expect(page.add({ key, data })).toBe(true);
    expect(page.rows.map(({ data }) => data)).toEqual([1, null, 3]);
  });

  it('a page does not hide a failure that has another reason than depth', () => {
    expect(() => pageOfRows().add({ key: 'a', data: 1n })).toThrow(TypeError);
  });
});

it.each<[string, object, object]>([
  ['a list', {}, { prefix: 'team-a/' }],
  ['a list by prefix', { prefix: 'x' }, { prefix: 'team-a/x' }],
  ['one record', { key: 'x' }, { key: 'team-a/x' }],
  ['one record beside a prefix', { key: 'x', prefix: 'team-b/' }, { key: 'team-a/x', prefix: 'team-a/team-b/' }],
  ['a key that is undefined', { key: undefined }, { key: undefined, prefix: 'team-a/' }],
  ['a key that is not a string', { key: null, prefix: 'team-b/' }, { key: null, prefix: 'team-a/team-b/' }],
  ['a key that is a list', { key: ['x'] }, { key: ['x'], prefix: 'team-a/' }],
])('a request of a namespace for %s sees only that namespace', (_, payload, expected) => {
  expect(addNamespace(payload, LEASE_LIST_FIELDS, 'team-a')).toEqual(expected);
});
