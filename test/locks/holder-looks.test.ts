import { afterAll, beforeEach, expect, it } from 'vitest';
import { lookAtKey } from '../../shared/locks/executions/look.ts';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await permitLineWorld();
const { acquire, park, read, repairWith, steps, clock, requests, dependencies } = world;
afterAll(() => steps.stop());

const LOOK_MS = 30_000;
/** How many callers ask for the key in a minute. */
const TRIES = 10;
let keys = 0;
let key = '';
beforeEach(() => {
  key = `looked at ${keys++}`;
});

/** Bound permits, one for each of the executions. */
async function hold(executions: string[], limit: number) {
  for (const [nth, execution] of executions.entries())
    await park({ key, limit, holder: `worker-${nth}`, requestId: `r${nth}`, execution, bound: true });
  clock.advance(LOOK_MS + 1);
  steps.described.length = 0;
  requests.sent.length = 0;
}
const running = (count: number) => Array.from({ length: count }, () => steps.newExecution('RUNNING'));
const refused = (limit: number) => failure(acquire({ key, limit, holder: 'other' }));

it('the refused callers of a minute ask ten questions by two writes at most', async () => {
  await hold(running(11), 11);
  for (let tries = 0; tries < TRIES; tries++) {
    await refused(11);
    clock.advance(60_000 / TRIES);
  }
  expect(steps.described).toHaveLength(10);
  expect(requests.sent.filter((name) => name === 'UpdateItem')).toHaveLength(TRIES + 2);
  expect(requests.sent).not.toContain('GetItem');
});

it('a look asks once about the several permits of an execution', async () => {
  const [execution = ''] = running(1);
  await hold([execution, execution, execution], 3);
  steps.end(execution); // and the event is lost
  expect(await acquire({ key, limit: 3, holder: 'other' })).toMatchObject({ holder: 'other' });
  expect(steps.described).toEqual([execution]);
  expect(await read(key)).toMatchObject({ used: 1 });
});

it('looks ask about each of many executions in turn', async () => {
  const executions = running(12);
  await hold(executions, 12);
  for (let looks = 0; looks < 3; looks++) {
    await refused(12);
    clock.advance(LOOK_MS + 1);
  }
  expect(steps.described.slice(0, 12)).toEqual(executions);
  expect(steps.described).toHaveLength(15);
});

it('a look asks what its run has left, and the next goes on', async () => {
  const executions = running(5);
  await hold(executions, 5);
  await lookAtKey(dependencies, { key, maxQuestions: 2 }, call());
  expect(steps.described).toEqual(executions.slice(0, 2));
  clock.advance(LOOK_MS + 1);
  await lookAtKey(dependencies, { key, maxQuestions: 3 }, call());
  expect(steps.described).toEqual(executions);
});

it('the schedule asks about five executions, and a caller about the next five', async () => {
  const executions = running(10);
  await hold(executions, 10);
  await park({ key, limit: 10 });
  await repairWith(call());
  clock.advance(LOOK_MS + 1);
  await refused(10);
  expect(steps.described).toEqual(executions);
});
