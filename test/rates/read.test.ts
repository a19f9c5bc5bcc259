import { beforeEach, describe, expect, it } from 'vitest';
import { expiryWorld, newLocations } from '../support/worlds/expiry.ts';
import { failure } from '../support/worlds/leases.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const locations = await newLocations();
const expiry = await expiryWorld({ locations });
const { clock } = expiry;
const world = await rateWorld({ table: locations.leasesTable, clock });
const { reserve, readRate, readRates, forget, rawRate } = world;

const rates = [{ limit: 60, per: '1m' }];
const named = [{ name: 'requests', limit: 60, per: '1m' }];

describe('read', () => {
  it('the rates of a key are empty before the first reservation', async () => {
    expect(await readRate('none')).toEqual({
      ...{ key: 'none', kind: 'rate', paidUntil: null, rates: [], ratesBefore: [], by: null, at: null, open: 0 },
    });
  });

  it('the rates of a key show paid until, the caller and open reservations', async () => {
    await reserve({ key: 'read', rates: [{ limit: 100_000, per: '1m' }], holder: 'first' });
    const at = new Date(clock.now()).toISOString();
    await reserve({ key: 'read', rates, holder: 'second', waitSeconds: 9, settle: true });
    expect(await readRate('read')).toEqual({
      ...{ key: 'read', kind: 'rate', paidUntil: new Date(clock.now() + 1001).toISOString() },
      ...{ rates: named, ratesBefore: [{ name: 'requests', limit: 100_000, per: '1m' }], by: 'second', at, open: 1 },
    });
  });

  it('the rates of all keys are listed page by page, and by prefix', async () => {
    for (const key of ['list/a', 'list/b', 'list/c']) await reserve({ key, rates });
    await world.acquire({ key: 'list/d' });
    const keys: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await readRates({ prefix: 'list/', limit: 2, ...(cursor && { cursor }) });
      if (!('keys' in page)) throw new Error('a page');
      keys.push(...page.keys.map(({ key }) => key));
      cursor = page.nextCursor;
    }
    expect(keys.toSorted()).toEqual(['list/a', 'list/b', 'list/c']);
  });

  it('lists of leases and the report do not show the rates of a key', async () => {
    await reserve({ key: 'team-a/apart', rates, settle: true });
    clock.advance(90 * 86_400_000);
    for (const query of [{}, { prefix: 'holdfast:' }, { sort: 'key' as const }, { state: 'free' as const }]) {
      const listed = JSON.stringify(await world.read(query));
      expect(listed).not.toContain('apart');
    }
    await expiry.report();
    expect(await expiry.rows()).not.toContainEqual(
      expect.objectContaining({ key: { key: expect.stringContaining('apart') } }),
    );
    expect(await rawRate('team-a/apart')).toBeDefined();
  });
});

describe('forget', () => {
  let paidUntil: string;
  beforeEach(async () => {
    await reserve({ key: 'forget', rates: [{ limit: 1, per: '1h' }], waitSeconds: 604_800 });
    paidUntil = String((await readRate('forget')).paidUntil);
  });

  it('an operator who forgets a rate lets the next caller start at once', async () => {
    expect(await forget({ key: 'forget', paidUntil })).toEqual({ key: 'forget', forgotten: true });
    expect(await rawRate('forget')).toBeUndefined();
    expect(await reserve({ key: 'forget', rates })).toMatchObject({ waitMs: 0 });
  });

  it('an operator who forgets a rate does not forget a later reservation', async () => {
    await reserve({ key: 'forget', rates, waitSeconds: 604_800 });
    const { code, context } = await failure(forget({ key: 'forget', paidUntil }));
    expect([code, context.actual]).toEqual(['Conflict', await readRate('forget')]);
    expect(await rawRate('forget')).toBeDefined();
  });

  it('an operator who forgets a rate of an unknown key learns that', async () => {
    expect((await failure(forget({ key: 'unknown', paidUntil }))).code).toBe('NotFound');
  });

  it('an operator who forgets a rate may have done so if no answer came', async () => {
    world.requests.faultsOf.DeleteItem = ['lostReply'];
    expect((await failure(forget({ key: 'forget', paidUntil }))).code).toBe('OutcomeUnknown');
    expect((await failure(forget({ key: 'forget', paidUntil }))).code).toBe('NotFound');
  });
});
