import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { expect, it } from 'vitest';
import type { Fault } from '../support/emulators/aws.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { rustClient } from '../support/worlds/rust-lease.ts';

const world = await leaseWorld();
const { acquire, breakLease, release, clock, dynamodb, table, rawItem } = world;

/** The ways in which a grant may end before the next one. */
const endings: Record<string, (grant: { key: string; leaseId: string; fence: number }) => Promise<unknown>> = {
  release,
  'expiry, by take-over': async () => clock.advance(2501),
  break: breakLease,
  'TTL deletion of the released record': async (grant) => {
    await release(grant);
    await dynamodb.send(new DeleteItemCommand({ TableName: table, Key: { key: { S: grant.key } } }));
    clock.advance(1); // no deletion by TTL lands in the same millisecond
  },
  'TTL deletion of the expired record': async ({ key }) => {
    clock.advance(2501);
    await dynamodb.send(new DeleteItemCommand({ TableName: table, Key: { key: { S: key } } }));
  },
  'a Rust client that took it over and dropped our attributes': async ({ key }) => {
    clock.advance(4000);
    const rust = rustClient(dynamodb, table, clock);
    const version = await rust.tryAcquire(key, 2);
    expect(version).toBeDefined();
    expect(await rawItem(key)).not.toHaveProperty('fence');
    await rust.release(key, version ?? '');
  },
  'release, and a clock that steps back a minute': async (grant) => {
    await release(grant);
    clock.advance(-60_000);
  },
  'break, and a clock that steps back a minute': async (grant) => {
    await breakLease(grant);
    clock.advance(-60_000);
  },
};

const kinds = Object.entries({ lease: {}, permit: { limit: 1 } });
const cases = kinds.flatMap(([kind, terms]) => Object.keys(endings).map((ending) => ({ ending, kind, terms })));
// The crate does not take a key whose holders are or were shared.
it.each(cases.filter(({ ending, kind }) => kind === 'lease' || !ending.includes('Rust')))(
  'fencing tokens rise across $ending, of a $kind',
  async ({ ending, kind, terms }) => {
    const key = `fence of a ${kind}: ${ending}`;
    let previous = 0;
    for (let round = 0; round < 5; round++) {
      const grant = await acquire({ key, ttlSeconds: 2, ...terms });
      expect(grant.fence).toBeGreaterThan(previous);
      previous = grant.fence;
      await endings[ending]?.(grant);
    }
  },
);

it('a call gives up after five fences that came before its tries', async () => {
  const key = 'overtaken';
  const ahead = (by: number) => world.putRaw({ key: { S: key }, fence: { N: String(clock.now() + by) } });
  const overtaken = (tries: number) =>
    Array.from(
      { length: tries },
      (_, index): Fault =>
        async (send) => {
          await ahead(1000 * (index + 1));
          return send();
        },
    );
  world.requests.faultsOf.UpdateItem = overtaken(4);
  expect((await acquire({ key })).fence).toBe(clock.now() + 4001);
  world.requests.faultsOf.UpdateItem = overtaken(5);
  const { code, context } = await failure(acquire({ key, holder: 'other' }));
  expect([code, context]).toMatchObject(['LeaseHeld', { holder: null, retryAfterMs: 1000 }]);
  expect((await acquire({ key })).fence).toBe(clock.now() + 5001);
});
