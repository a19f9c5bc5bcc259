import { afterAll, expect, it } from 'vitest';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());
const [a, b, all] = [world.of('team-a'), world.of('team-b'), world.of()];
const asked = { holder: 'worker', rates: [{ limit: 1, per: '1m' }], waitSeconds: 60, settle: true };
const reserve = (from: typeof a, key: string, more: object = {}) =>
  from.post('rates/reserve', { ...asked, key, ...more });

it('rates in a namespace are separate from those of other namespaces', async () => {
  const first = [await reserve(a, 'vendor'), await reserve(b, 'vendor'), await reserve(all, 'vendor')];
  expect(first.map(({ body }) => [body.key, body.waitMs])).toEqual(Array(3).fill(['vendor', 0]));
  const { reservation } = first[0]?.body ?? {};
  const cancel = { key: 'vendor', reservation, cancel: true };
  expect((await b.post('rates/settle', cancel)).body).toEqual({ key: 'vendor', cancelled: false });
  expect((await a.post('rates/settle', cancel)).body).toEqual({ key: 'vendor', cancelled: true });
  expect((await a.get('rates', { key: 'vendor' })).body).toMatchObject({ key: 'vendor', open: 0 });
  expect((await all.get('rates', { key: 'team-a/vendor' })).body).toMatchObject({ key: 'team-a/vendor', open: 0 });
});

it('rates in a namespace name the key of the caller in every refusal', async () => {
  await reserve(a, 'errors');
  const refused = (await reserve(a, 'errors', { waitSeconds: 0 })).body;
  expect(refused).toMatchObject({ code: 'RateExceeded', key: 'errors' });
  const forget = { key: 'errors', paidUntil: '2026-01-01T00:00:00Z' };
  const conflict = (await a.post('rates/forget', forget)).body;
  expect(conflict).toMatchObject({ code: 'Conflict', key: 'errors', actual: { key: 'errors' } });
  const unknown = (await b.post('rates/forget', forget)).body;
  expect(unknown).toMatchObject({ code: 'NotFound', key: 'errors' });
  for (const body of [refused, conflict, unknown]) expect(JSON.stringify(body)).not.toContain('team-');
});

it('rates in a namespace are listed only there, page by page', async () => {
  for (const from of [a, b, all]) for (const key of ['list/1', 'list/2', 'other']) await reserve(from, key);
  const first = (await a.get('rates', { prefix: 'list/', limit: '1' })).body;
  const keys = [...first.keys];
  for (let cursor = first.nextCursor; cursor; ) {
    const page = (await a.get('rates', { prefix: 'list/', limit: '1', cursor })).body;
    keys.push(...page.keys);
    cursor = page.nextCursor;
  }
  expect(keys.map(({ key }) => key).toSorted()).toEqual(['list/1', 'list/2']);
  expect((await b.get('rates', { cursor: first.nextCursor })).body).toMatchObject({ code: 'InvalidRequest' });
});

it('rates in a namespace count its name for the limit of a key', async () => {
  const longest = 'k'.repeat(1010 - 'team-a/'.length);
  expect((await reserve(a, longest)).status).toBe(201);
  expect((await reserve(a, `${longest}k`)).body.issues).toEqual([
    { path: 'key', message: 'must be at most 1,010 bytes of UTF-8' },
  ]);
  expect((await reserve(all, 'holdfast:rate:x')).body.code).toBe('InvalidRequest');
});
