import { rustClient } from '../../../test/support/worlds/rust-lease.ts';
import { fencesRise, LEASE_CALLS } from '../capabilities/leases.ts';
import type { Script } from '../faults.ts';
import type { Course, Stage } from './course.ts';

const LEASE = 'w0-k0';

/** A client of the Rust crate takes the key, and releases it after a while, which deletes the record. */
async function rust(stage: Stage, ms = 0): Promise<void> {
  const { service, foreignClock } = stage.world;
  const client = rustClient(service.dynamodb, service.leases, foreignClock);
  const caller = stage.caller('rust leases');
  const taken = await caller.foreign('rustAcquire', { key: LEASE, lease: 'rust' }, async () => ({
    version: (await client.tryAcquire(LEASE, 60)) ?? '',
  }));
  const version = String(taken?.version);
  await stage.sleep(ms);
  const input = { key: LEASE, lease: 'rust', version };
  await caller.foreign('rustRelease', input, async () => ({ released: await client.release(LEASE, version) }));
}

/** Another holder has the key, and then the Rust client. */
async function others(stage: Stage): Promise<void> {
  await stage.release(LEASE, await stage.acquire(LEASE, 'others'));
  await rust(stage);
}

const course = (name: string, play: Course['play']): Course => ({
  name,
  play,
  check: (history, facts) =>
    fencesRise(
      history.filter(({ call }) => LEASE_CALLS.has(call)),
      facts,
      history,
    ),
});

export const LATE_COURSES: Course[] = [
  course('a grant is written late, after another grant whose record a Rust client has deleted', async (stage) => {
    stage.meanwhile(() => stage.acquire(LEASE, 'late', {}, { UpdateItem: [{ beforeMs: 1000 }] }));
    await stage.sleep(100);
    await others(stage);
  }),
  course(
    'a caller in line writes its grant late, after another grant whose record a Rust client has deleted',
    async (stage) => {
      const script: Script = {};
      stage.meanwhile(() => rust(stage, 3000));
      await stage.sleep(100);
      stage.meanwhile(() => stage.acquire(LEASE, 'late', { waitSeconds: 20 }, script));
      await stage.sleep(2500);
      script.UpdateItem = [{ beforeMs: 2000 }];
      await stage.sleep(1500);
      await others(stage);
    },
  ),
];
