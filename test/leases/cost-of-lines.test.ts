import { describe, expect, it } from 'vitest';
import { unitCounter } from '../support/emulators/aws.ts';
import { queueWorld } from '../support/worlds/line.ts';

const { acquire, release, park, grantOf, executionEnded, dynamodb, clock } = await queueWorld();
const other = await queueWorld();

/** As the README's cost table counts them. A lost condition is an exception, which reports none, and costs 1 on AWS. */
const unitsOf = unitCounter(dynamodb);
const otherUnitsOf = unitCounter(other.dynamodb);

const execution = 'arn:aws:states:eu-west-1:000000000000:execution:nightly:1';

describe('request units', () => {
  it('two write units to park, and for an execution one more', async () => {
    await acquire({ key: 'parked' });
    expect(await unitsOf(() => park({ key: 'parked' }))).toEqual([1, 1]);
    expect(await unitsOf(() => park({ key: 'parked', execution }))).toEqual([2, 1]);
  });

  it('to hand a lease on: query, transfer and ticket, after a release that loses where nobody else was in line before', async () => {
    const first = await acquire({ key: 'handed' });
    const [second] = [await park({ key: 'handed' }), await park({ key: 'handed' })];
    expect(await unitsOf(() => release(first))).toEqual([1, 1, 1]);
    clock.advance(1000);
    expect(await unitsOf(() => release(grantOf(second.task)))).toEqual([1, 1, 1]);
  });

  it('one write unit more to store an execution, and three read units for one that ends with nothing', async () => {
    expect(await unitsOf(() => acquire({ key: 'executed', execution }))).toEqual([2]);
    expect(await unitsOf(() => executionEnded(`${execution}-unknown`))).toEqual([0.5, 0.5, 0.5]); // and again 90 seconds later
  });

  it('one read unit for the schedule where nobody is parked, and for a key with somebody less than three more', async () => {
    expect(await otherUnitsOf(other.repair)).toEqual([0.5, 0.5]);
    await other.acquire({ key: 'repaired' });
    await other.park({ key: 'repaired' });
    // Anywhere in the table it starts, so in which order is left open.
    expect((await otherUnitsOf(other.repair)).toSorted()).toEqual([0.5, 0.5, 0.5, 1, 1]);
  });
});
