import { expect, it } from 'vitest';
import { worldIds } from '../support/chance/seed.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { isFull } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// Rules of a call in line by weight (docs/protocols/queue.md#wait). All other rules are in test/line/rules.ts.

const timeline = new Timeline();
const world = await permitLineWorld({ clock: timeline, ids: { ...worldIds(), random: () => 0 } });
const { acquire, park, sent, requests } = world;
resetting(world);

const waits = (key: string, more: object = {}) => acquire({ key, limit: 4, waitSeconds: 20, ...more });

const heavyFirst = async (key: string) => {
  for (const holder of ['a', 'b', 'c']) await acquire({ key, holder, limit: 4, ttlSeconds: 600 });
  await park({ key, holder: 'heavy', limit: 4, weight: 2 });
  timeline.advance(1); // so that the next ticket is later
  requests.sent.length = 0;
};

it.runIf(isFull)('a light call behind a heavy waiter reads once a second', async () => {
  await heavyFirst('light');
  const [refused] = await timeline.play(() => failure(waits('light')));
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { place: 2 } });
  expect(sent('Query')).toBeLessThan(25);
});

it.runIf(isFull)('a racing call tries once a second while a heavy waiter is next', async () => {
  await heavyFirst('racer');
  const [refused] = await timeline.play(() => failure(waits('racer', { fair: false })));
  expect(refused).toMatchObject({ code: 'LeaseHeld' });
  expect([sent('UpdateItem') < 25, sent('Query') < 25]).toEqual([true, true]);
});

it('a light call is served soon after a heavy call has exited', async () => {
  const key = 'heavy dies';
  for (const holder of ['a', 'b', 'c']) await acquire({ key, holder, limit: 4, ttlSeconds: 600 });
  const beganAt = timeline.now();
  const [, light] = await timeline.play(
    () => exitingAfter(3, () => waits(key, { holder: 'heavy', weight: 2, waitSeconds: 5 })),
    () => timeline.later(100, () => waits(key)),
  );
  expect(light).toMatchObject({ used: 4 });
  expect(timeline.now() - beganAt).toBeLessThan(7000);
});
