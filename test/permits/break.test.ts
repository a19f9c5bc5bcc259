import { afterAll, beforeEach, expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

// What only a permit has of test/line/breaks.ts.

const world = await poolLineWorld();
const { acquire, release, breakPermit, precededBy, rawItem, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

it('a repeated break does not name the holder of a permit that has ended', async () => {
  const { key, fence } = await acquire({ key: 'at once', limit: 2, holder: 'worker' });
  expect(await breakPermit({ key, fence })).toMatchObject({ holder: 'worker', ended: true });
  const terms = { holder: null, ended: true, holderUntil: null, lastHeartbeatAt: null };
  expect(await breakPermit({ key, fence })).toMatchObject(terms);
});

it('a break that waits has an unknown outcome if its answer is lost and the holder releases the permit before the next try', async () => {
  const permit = await acquire({ key: 'lost', limit: 1 });
  requests.faultsOf.UpdateItem = ['lostReply', precededBy(() => release(permit))];
  const late = breakPermit({ key: permit.key, fence: permit.fence, wait: true });
  expect(await failure(late)).toMatchObject({ code: 'OutcomeUnknown' });
});

it('a break that waits reports a part of the entry that a third-party client wrote with another type', async () => {
  const { key, fence } = await acquire({ key: 'odd', limit: 1 });
  const [name, value] = Object.entries((await rawItem(key)) ?? {}).find(([one]) => one.startsWith('h')) ?? [];
  await world.setRaw(key, name ?? '', { M: { ...value?.M, c: { S: 'odd' } } });
  expect(await failure(breakPermit({ key, fence, wait: true }))).toMatchObject({ code: 'Unavailable' });
});
