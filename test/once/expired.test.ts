import { expect, it } from 'vitest';
import { expiryWorld, newLocations } from '../support/worlds/expiry.ts';
import { onceWorld } from '../support/worlds/once.ts';

const locations = await newLocations();
const expiry = await expiryWorld({ locations });
const { clock } = expiry;
const world = await onceWorld({ table: locations.leasesTable, clock });
const { begin, complete, rawRow } = world;

const run = (input: object) => world.run({ slot: '1', ttlSeconds: 60, ...input });

/** Reports, and cleans up whatever the report has. */
async function clean() {
  const { reportId } = await expiry.report();
  const rows = await expiry.rows();
  const cleaned = await expiry.clean({ reportId, dryRun: false });
  return { rows, cleaned };
}

it('the clean-up deletes the record of a dead worker that remembers nothing', async () => {
  await run({ key: 'team-a/dead', holder: 'host-1' });
  clock.advance(3_700_000);
  const { rows } = await clean();
  expect(rows).toMatchObject([{ kind: 'abandonedRun', key: { key: 'team-a/dead' }, holder: 'host-1' }]);
  expect(await rawRow('team-a/dead')).toBeUndefined();
});

it('the clean-up spares an abandoned run while its record remembers a slot', async () => {
  const { leaseId } = await run({ key: 'kept', keepSeconds: 86_400 });
  await complete({ key: 'kept', leaseId, result: 1 });
  await run({ key: 'kept', slot: '2' });
  clock.advance(7_200_000);
  const { rows, cleaned } = await clean();
  expect(rows).toMatchObject([{ kind: 'abandonedRun', key: { key: 'kept' } }]);
  expect(JSON.stringify(cleaned)).toContain('tooYoung');
  expect(await begin({ key: 'kept', slot: '1' })).toMatchObject({ outcome: 'done', result: 1 });
});

it('the clean-up deletes a result that is not kept, only past the retention', async () => {
  const { leaseId } = await run({ key: 'old', keepSeconds: 60 });
  await complete({ key: 'old', leaseId });
  clock.advance(60_000 + 3_600_000);
  await expiry.report();
  expect((await expiry.rows()).filter(({ key }) => key.key === 'old')).toEqual([]);
  clock.advance(3_600_000 + 2000);
  const { rows } = await clean();
  expect(rows.find(({ key }) => key.key === 'old')).toMatchObject({ kind: 'endedRun' });
  expect(await rawRow('old')).toBeUndefined();
});

it('the clean-up spares a record whose slot another caller has begun since', async () => {
  await run({ key: 'begun since' });
  clock.advance(7_200_000);
  const { reportId } = await expiry.report();
  const { leaseId } = await run({ key: 'begun since' });
  await expiry.clean({ reportId, dryRun: false });
  expect(leaseId).toContain((await rawRow('begun since'))?.h?.M?.i?.S);
});

it('the report counts a run that works as a lease of its namespace', async () => {
  await run({ key: 'team-b/works' });
  expect((await expiry.report()).heldByNamespace).toEqual([{ namespace: 'team-b', leases: 1 }]);
});
