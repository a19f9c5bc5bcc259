import { describe, expect, it } from 'vitest';
import { unitCounter } from '../support/emulators/aws.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, read, clock } = world;

/** As the README's cost table counts them. */
const unitsOf = unitCounter(world.dynamodb);

describe('request units', () => {
  it('one write unit for each of acquire, heartbeat, release and break', async () => {
    const names = { key: 'reports/2026/nightly', holder: 'arn:aws:lambda:eu-west-1:123456789012:function:nightly' };
    expect(await unitsOf(() => acquire(names))).toEqual([1]);
    const grant = await acquire({ ...names, key: 'other' });
    clock.advance(10);
    expect(await unitsOf(() => heartbeat(grant))).toEqual([1]);
    expect(await unitsOf(() => release(grant))).toEqual([1]);
    clock.advance(10);
    const { fence } = await acquire({ ...names, key: 'other' });
    expect(await unitsOf(() => breakLease({ key: 'other', fence }))).toEqual([1]);
  });

  it('at most seven for the largest record there can be', async () => {
    const largest = {
      key: 'k'.repeat(1024),
      holder: 'h'.repeat(256),
      requestId: 'r'.repeat(256),
      data: 'd'.repeat(4094),
    };
    const [consumed = 0] = await unitsOf(() => acquire(largest));
    expect(consumed).toBeGreaterThan(5);
    expect(consumed).toBeLessThanOrEqual(7);
  });

  it('one read unit for a read, half a unit for each look while racing', async () => {
    const grant = await acquire({ key: 'looked-at' });
    expect(await unitsOf(() => read({ key: 'looked-at' }))).toEqual([1]);
    const waiting = () => failure(acquire({ key: 'looked-at', requestId: 'another', waitSeconds: 1, fair: false }));
    const units = await unitsOf(waiting);
    // The first try loses with an exception, which reports no units.
    expect(units.length).toBeGreaterThan(3);
    expect(new Set(units)).toEqual(new Set([0.5]));
    await release(grant);
  });
});
