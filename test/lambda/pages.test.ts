import { describe, expect, it } from 'vitest';
import { namesIn } from '../../shared/lambda/stored-names.ts';
import { Page } from '../../shared/listings/pages.ts';
import { LEASE_LISTS } from '../../shared/locks/names.ts';

/** What Lambda takes for an answer. */
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

/** As the gateway is answered. */
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
  ])('a page of rows of %s fits an answer, and is not much smaller than one', (_, unit) => {
    const page = pageOfRows();
    let key = 0;
    while (page.add({ key: `${key}`, data: unit.repeat(5000) })) key++;
    expect(page.rows).toHaveLength(key);
    const bytes = answerBytes(page.rows);
    expect(bytes).toBeLessThan(MAX_ANSWER_BYTES);
    expect(bytes).toBeGreaterThan(MAX_ANSWER_BYTES / 2);
  });

  it('a page abridges a row that is nested too deep for JSON, and keeps its neighbours', () => {
    const page = pageOfRows();
    for (const [key, data] of Object.entries({ a: 1, b: nested(150_000), c: 3 })) page.add({ key, data });
    expect(page.rows).toEqual([
      { key: 'a', data: 1 },
      { key: 'b', data: null },
      { key: 'c', data: 3 },
    ]);
  });

  it('a page abridges a row that is larger than a page, and keeps its neighbours', () => {
    const page = pageOfRows();
    const large = '\u0001'.repeat(1_000_000);
    for (const [key, data] of Object.entries({ a: 1, b: large, c: 3 })) expect(page.add({ key, data })).toBe(true);
    expect(page.rows.map(({ data }) => data)).toEqual([1, null, 3]);
  });

  it('a page does not hide a failure that is no matter of depth', () => {
    expect(() => pageOfRows().add({ key: 'a', data: 1n })).toThrow(TypeError);
  });
});

it.each<[string, object, object]>([
  ['a list', {}, { prefix: 'team-a/' }],
  ['a list by prefix', { prefix: 'x' }, { prefix: 'team-a/x' }],
  ['one record', { key: 'x' }, { key: 'team-a/x' }],
  ['one record beside a prefix', { key: 'x', prefix: 'team-b/' }, { key: 'team-a/x', prefix: 'team-a/team-b/' }],
  ['a key that is undefined', { key: undefined }, { key: undefined, prefix: 'team-a/' }],
  ['a key that is no text', { key: null, prefix: 'team-b/' }, { key: null, prefix: 'team-a/team-b/' }],
  ['a key that is a list', { key: ['x'] }, { key: ['x'], prefix: 'team-a/' }],
])('a request of a namespace for %s sees that namespace alone', (_, payload, expected) => {
  expect(namesIn(payload, LEASE_LISTS, 'team-a')).toEqual(expected);
});
