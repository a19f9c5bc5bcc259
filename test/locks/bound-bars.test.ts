import { afterAll, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { rounds } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { queueWorld } from '../support/worlds/line.ts';

// What bound leases cost. The rules are in test/line/bound.ts.

const timeline = new Timeline();
const { acquire, park, executionEnded, steps, repairWith } = await queueWorld({ clock: timeline });
afterAll(() => steps.stop());
const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;

const IDLE = rounds(1000, 50);

it(`${IDLE} bound leases that no caller wants cost no question in an hour of the schedule`, async () => {
  const hold = (n: number) => park({ key: `idle ${n}`, execution: steps.newExecution('RUNNING'), bound: true });
  for (let first = 0; first < IDLE; first += 10)
    await Promise.all(Array.from({ length: 10 }, (_, n) => hold(first + n)));
  for (let minute = 0; minute < 60; minute++) {
    timeline.advance(60_000);
    await repairWith(call());
  }
  expect(asked()).toBe(0);
}, 60_000);

it('the event of the end frees a bound lease in less than two seconds', async () => {
  const execution = steps.newExecution('RUNNING');
  await park({ key: 'event', execution, bound: true });
  timeline.advance(1000);
  const event = steps.end(execution, 'SUCCEEDED');
  expect(await executionEnded(execution, false, event)).toMatchObject({ freed: 1 });
  expect(await acquire({ key: 'event', holder: 'next' })).toMatchObject({ holder: 'next' });
  expect(timeline.now() - event.stopDate).toBeLessThan(2000);
});
