import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { extendGrant } from '../../shared/locks/calls/heartbeat.ts';
import { releaseGrant } from '../../shared/locks/calls/release.ts';
import { LOCKS } from '../../shared/locks/expired.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { expiryWorld } from '../support/worlds/expiry.ts';
import { permitsWorld } from '../support/worlds/permits.ts';

const ROUNDS = rounds(300, 8);
const permits = await permitsWorld();
const { table: leasesTable } = permits.dependencies;
const expiry = await expiryWorld({ clock: permits.clock });
const reader = { ...expiry.dependencies, locations: { ...expiry.locations, leasesTable } };
const dynamodb = testClient();
let interleaver: Interleaver;
// All rounds share a client, whose gate uses the interleaver of the current round.
new Interleaver(Math.random).gate.call({ turn: () => interleaver.turn() } as Interleaver, dynamodb);

const base = testSeed();

it(`clean-ups among holders free each expired permit only once (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { cleaned: 0, changed: 0, gone: 0, extended: 0, lost: 0, granted: 0, released: 0 };
  for (let round = 0; goesOn(round, ROUNDS, happened); round++) await play(base + round, happened);
  expectAllHappened(happened, ROUNDS / 50);
}, 240_000);

/** The rows of the report about a key, which may be on any page. */
async function reported(key: string) {
  const own: Awaited<ReturnType<typeof LOCKS.page>>['rows'] = [];
  for (let after: Parameters<typeof LOCKS.page>[1]['after']; ; ) {
    const page = await LOCKS.page(reader, { segment: 0, of: 1, after }, call());
    own.push(...page.rows.filter((row) => row.key.key === key));
    after = page.after;
    if (after === undefined) return own;
  }
}

async function play(seed: number, happened: Record<string, number>): Promise<void> {
  const random = seededRandom(seed);
  const key = `cleaned-${seed}`;
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };
  const asked = (holder: string) => ({ key, holder, requestId: holder, ttlSeconds: 60, waitSeconds: 0, limit: 5 });
  const dead = [
    await permits.acquire({ ...asked('a'), weight: 2 }),
    await permits.acquire({ ...asked('b'), weight: 3 }),
  ];
  permits.clock.advance(7_200_000);
  const own = await reported(key);
  expect(own).toHaveLength(2);

  interleaver = new Interleaver(random);
  // The ids of the world: no version may come twice.
  const dependencies = { ...permits.dependencies, dynamodb };
  /** Who must still be in at the end, by fence. */
  const held = new Set<number>();
  const tolerate = (what: string) => (error: unknown) => {
    if (!(error instanceof HoldfastError && ['LeaseLost', 'LeaseHeld'].includes(error.code))) throw error;
    count(what);
  };
  const cleanUp = async () => {
    for (const row of own) count((await LOCKS.remove({ ...reader, dynamodb }, row, call())) ?? 'cleaned');
  };
  const extend = (nth: number) => async () => {
    const permit = dead[nth];
    if (!permit) return;
    await extendGrant(dependencies)(permit, call());
    count('extended');
    held.add(permit.fence);
    if (random() < 0.3) {
      held.delete(permit.fence);
      await releaseGrant(dependencies)(permit, call());
      count('released');
    }
  };
  const enter = async () => {
    const { fence } = await acquireGrant(dependencies)({ ...asked('c'), weight: 3 }, call());
    held.add(fence);
    count('granted');
  };
  const actors = [cleanUp, cleanUp, () => extend(0)().catch(tolerate('lost')), () => enter().catch(tolerate('lost'))];
  if (random() < 0.5) actors.push(() => extend(1)().catch(tolerate('lost')));
  await interleaver.run(actors);

  const { used, holders } = await permits.read(key);
  expect(used, `seed ${seed}`).toBe(holders.reduce((sum, { weight }) => sum + weight, 0));
  expect(new Set(holders.map(({ fence }) => fence)), `seed ${seed}`).toEqual(
    new Set([...holders.map(({ fence }) => fence), ...held]),
  );
}
