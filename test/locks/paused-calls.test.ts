import { expect, it } from 'vitest';
import { liftFences } from '../../deployment/lift-fences.ts';
import { deleteWaiter } from '../../shared/locks/line/waiters.ts';
import { renew } from '../../shared/locks/record/continuing-grants.ts';
import { readKey } from '../../shared/locks/record/requests.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// What a call does to a key with a line if others act between its read and its write.

const world = await permitLineWorld();
const { acquire, release, breakPermit, read, park, repairLine, setRaw } = world;
const { joinLine, handOff, grantOf, rawItem, dependencies, clock, requests, steps, precededBy } = world;
resetting(world);

/** A held key with a mark, whose only waiter has gone. */
async function emptied(key: string) {
  const first = await acquire({ key });
  const { ticket } = await park({ key });
  await deleteWaiter(dependencies, { key, ticket }, call());
  requests.sent.length = 0;
  return first;
}

it('a first try that arrives after others have come and gone keeps the fence', async () => {
  const key = 'late';
  await acquire({ key });
  const [{ task }, { task: next }] = [await park({ key }), await park({ key })];
  await world.deleteRaw(key);
  let arrive = async (): Promise<unknown> => undefined;
  const delayed = async (send: () => Promise<unknown>) => {
    arrive = send;
    throw networkError('ECONNRESET', 'read');
  };
  requests.faultsOf.UpdateItem = ['none', delayed]; // the mark, and the grant
  await repairLine(key);
  await release(grantOf(task));
  await release(grantOf(next));
  const later = await acquire({ key, holder: 'later' });
  expect(later.fence).toBeGreaterThan(grantOf(next).fence);
  await release(later);
  expect(await arrive()).toMatchObject({ response: { statusCode: 400 } });
  expect(await read(key)).toMatchObject({ state: 'released', fence: later.fence });
});

it('a fence that is lifted during a release stays below the next', async () => {
  const key = 'lifted under a holder';
  const first = await acquire({ key });
  const { task } = await park({ key });
  let lifted = 0;
  const lifts = async () => {
    await liftFences(dependencies.dynamodb, dependencies.table, clock.now());
    lifted = Number((await rawItem(key))?.fence?.N);
  };
  requests.faultsOf.UpdateItem = ['none', precededBy(lifts)]; // the release loses by the mark
  expect(await release(first)).toMatchObject({ released: true });
  expect(grantOf(task).fence).toBeGreaterThan(lifted);
});

it('a fence of another type fails a task that parks, and stays', async () => {
  const key = 'fence of another type';
  await release(await acquire({ key }));
  await setRaw(key, 'fence', { S: 'text' });
  await expect(park({ key })).rejects.toMatchObject({ code: 'Unavailable' });
  expect((await rawItem(key))?.fence).toEqual({ S: 'text' });
});

it('a paused hand-off keeps the mark of a later newcomer', async () => {
  const { key, leaseId } = await emptied('free again');
  await release({ key, leaseId }, call({ timeLeftMs: () => 1999 })); // too little to read the line
  const newcomers: string[] = [];
  const restarts = precededBy(async () => {
    expect(await handOff(key)).toMatchObject({ end: 'empty' });
    expect(await rawItem(key)).not.toHaveProperty('mark');
    newcomers.push((await joinLine(key, 'newcomer')).ticket);
  });
  requests.faultsOf.UpdateItem = [restarts];
  expect(await handOff(key)).toMatchObject({ served: newcomers });
});

it('a release serves a task that parks at the same time', async () => {
  const first = await emptied('parks meanwhile');
  const comes = steps.newTask();
  requests.faultsOf.UpdateItem = ['none', precededBy(() => park({ key: first.key }, comes))];
  expect(await release(first)).toMatchObject({ released: true });
  expect(grantOf(comes).fence).toBeGreaterThan(first.fence);
});

it('a paused release keeps the mark of a newcomer to a held key', async () => {
  const first = await emptied('restarted');
  const { key } = first;
  const late = steps.newTask();
  const restarts = precededBy(async () => {
    clock.advance(60_000 + 501);
    await handOff(key);
    expect(await rawItem(key)).not.toHaveProperty('mark');
    clock.advance(-500); // by the clock of the newcomer, the margin has not passed
    await park({ key }, late);
  });
  requests.faultsOf.UpdateItem = ['none', restarts];
  expect(await release(first)).toMatchObject({ released: true });
  expect(late.output).toMatchObject({ previous: { holder: 'tester', ended: 'released' } });
});

it('a break ends the grant and removes the mark without another read', async () => {
  const { key, fence } = await emptied('broken');
  expect(await breakPermit({ key, fence })).toMatchObject({ broken: true, fence });
  expect(requests.sent).toEqual(['GetItem', 'UpdateItem', 'Query', 'UpdateItem']);
  expect(await rawItem(key)).not.toHaveProperty('mark');
});

it('a renewal that was paused does not extend the grant of the next holder', async () => {
  const key = 'renewed late';
  const first = await acquire({ key });
  const [{ task }] = [await park({ key, ttlSeconds: 3600 }), await park({ key, ttlSeconds: 3600 })];
  await release(first);
  const { entries } = await readKey(dependencies, key, call());
  await release(grantOf(task));
  clock.advance(60_000);
  const item = await rawItem(key);
  for (const entry of entries) expect(await renew(dependencies, { key, entry }, call())).toMatchObject({ won: false });
  expect(await rawItem(key)).toEqual(item);
});
