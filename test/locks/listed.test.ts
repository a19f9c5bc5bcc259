import { afterAll, describe, expect, it } from 'vitest';
import { acquire as acquireKey } from '../../shared/locks/acquire.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import type { KeyPage } from '../../shared/locks/listed-keys.ts';
import { lookUp, type ReadInput } from '../../shared/locks/read.ts';
import { release as giveBack } from '../../shared/locks/release.ts';
import { call } from '../support/emulators/aws.ts';
import { documented } from '../support/stack/contract.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
afterAll(() => world.steps.stop());
const { dependencies, clock, steps } = world;
const taken = documented('acquire', acquireKey(dependencies));
const released = documented('release', giveBack(dependencies));
const lookedUp = documented('readLeases', lookUp(dependencies));

const input = acquireInput();
const acquire = async (asked: object) => {
  clock.advance(1);
  const answer = await taken(input.parse({ holder: 'tester', ...asked }), call());
  return answer as Extract<typeof answer, { leaseId: string }>;
};
const park = (asked: object) => acquire({ holder: 'waits', taskToken: steps.newTask().token, ...asked });
const list = async (query: ReadInput) => (await lookedUp(query, call())) as KeyPage;

/** The rows of all pages. */
async function rowsOf(query: ReadInput) {
  const rows: KeyPage['leases'] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await list({ ...query, ...(cursor && { cursor }) });
    rows.push(...page.leases);
    cursor = page.nextCursor;
  }
  return rows;
}
const keysOf = async (query: ReadInput) => (await rowsOf(query)).map(({ key }) => key);

await acquire({ key: 'b lease', holder: 'x', ttlSeconds: 10 });
for (const holder of ['p', 'q']) await acquire({ key: 'a pool', holder, limit: 2, ttlSeconds: 60 });
await park({ key: 'a pool', limit: 2 });
await acquire({ key: 'c pool', holder: 'p', limit: 5, ttlSeconds: 5 });

describe('the list of keys', () => {
  it('the list of keys shows each key once with its kind, its holders, used of limit and the length of its line', async () => {
    expect(await list({ sort: 'key' })).toMatchObject({
      leases: [
        { key: 'a pool', kind: 'pool', state: 'held', holder: 'p', used: 2, limit: 2, holders: 2, waiting: 1 },
        { key: 'b lease', kind: 'lease', state: 'held', holder: 'x', waiting: 0 },
        { key: 'c pool', kind: 'pool', state: 'held', holder: 'p', used: 1, limit: 5, holders: 1, waiting: 0 },
      ],
      nextCursor: null,
    });
    expect(await keysOf({ sort: 'expiry', limit: 1 })).toEqual(['c pool', 'b lease', 'a pool']);
    expect(await keysOf({ sort: 'key', limit: 2 })).toEqual(['a pool', 'b lease', 'c pool']);
    expect(await keysOf({ kind: 'lease' })).toEqual(['b lease']);
    expect((await keysOf({ kind: 'pool', limit: 1 })).toSorted()).toEqual(['a pool', 'c pool']);
    expect((await keysOf({ holder: 'p' })).toSorted()).toEqual(['a pool', 'c pool']);
    clock.advance(5001);
    expect(await keysOf({ state: 'expired' })).toEqual(['c pool']);
  });

  it('the list of keys can be sorted by who has held a key for the longest time, and by the longest line, page by page', async () => {
    const prefix = 'sorted/';
    const first = await acquire({ key: 'sorted/pool', holder: 'old', limit: 3, ttlSeconds: 600 });
    await acquire({ key: 'sorted/lease', ttlSeconds: 600 });
    await acquire({ key: 'sorted/pool', holder: 'ends first', limit: 3, ttlSeconds: 60 });
    const gone = await acquire({ key: 'sorted/released' });
    await released({ key: gone.key, leaseId: gone.leaseId }, call());
    for (let count = 0; count < 2; count++) await park({ key: 'sorted/lease' });
    await park({ key: 'sorted/pool', limit: 3, weight: 2 });
    for (const limit of [1, 10]) {
      expect(await keysOf({ prefix, sort: 'held', limit })).toEqual(['sorted/pool', 'sorted/lease', 'sorted/released']);
      expect(await keysOf({ prefix, sort: 'waiting', limit })).toEqual([
        'sorted/lease',
        'sorted/pool',
        'sorted/released',
      ]);
    }
    const [oldest] = await rowsOf({ prefix, sort: 'held' });
    expect(oldest).toMatchObject({ holder: 'old', acquiredAt: first.acquiredAt, holders: 2 });
    const [endsFirst] = await rowsOf({ prefix, kind: 'pool', sort: 'key' });
    expect(endsFirst).toMatchObject({ holder: 'ends first' });
  });

  it('the list of keys can be limited to the keys that have a holder, expired or not, or a line', async () => {
    const prefix = 'active/';
    await acquire({ key: 'active/held' });
    await acquire({ key: 'active/expired', ttlSeconds: 2 });
    await acquire({ key: 'active/expired permit', limit: 2, ttlSeconds: 2 });
    for (const terms of [{}, { limit: 2 }]) {
      const grant = await acquire({ key: `active/released ${JSON.stringify(terms)}`, ...terms });
      await released({ key: grant.key, leaseId: grant.leaseId }, call());
    }
    clock.advance(10_000);
    expect((await keysOf({ prefix })).toSorted()).toHaveLength(5);
    const active = ['active/expired', 'active/expired permit', 'active/held'];
    expect(await keysOf({ prefix, state: 'active', sort: 'key' })).toEqual(active);
    expect((await keysOf({ prefix, state: 'active', limit: 1 })).toSorted()).toEqual(active);
    expect(await keysOf({ prefix, state: 'active', kind: 'pool' })).toEqual(['active/expired permit']);
  });
});
