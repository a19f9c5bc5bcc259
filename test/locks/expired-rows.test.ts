import { afterAll, beforeEach, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { lineWorld } from '../support/worlds/line.ts';

const world = await lineWorld();
const { acquire, repair, repairKey, repairWith } = world;
const { putTickets, callerRow, rawItem, rows, clock, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
  requests.faultsOf = {};
});

/** Rows of callers that left, which have expired. */
const over = (key: string, count: number) =>
  Array.from({ length: count }, (_, index) =>
    callerRow(key, `over ${String(index).padStart(5, '0')}`, {
      deadline: { N: '1' },
      keep_until: { N: String(clock.now()) },
    }),
  );

/** The row of a caller behind all others. */
const last = (key: string) => callerRow(key, 'last', { ticket: { S: '999999999999999-last' } });

it('a message deletes about a hundred expired rows, because other keys wait behind it', async () => {
  const key = 'by a message';
  await acquire({ key, ttlSeconds: 600 });
  await putTickets(over(key, 150));
  await repairKey(key);
  expect(await rows(key)).toHaveLength(40);
});

it.each([
  ['with 20000 of 40,000 ms left', 20_000, 0],
  ['with 19999 of 40,000 ms left', 19_999, 3],
])('a run cleans up a line for half of its time: %s', async (_, leftMs, rest) => {
  const key = `beside tasks ${leftMs}`;
  await acquire({ key, ttlSeconds: 600 });
  const { keep_until: _keepUntil, ...task } = callerRow(key, 'task', { deadline: { N: '1' } });
  const tasks = Array.from({ length: 3 }, (_row, index) => ({
    ...task,
    ticket: { S: `000000000000001-over 00050-${index}` }, // sorts among the expired rows
    task_token: { S: `token-none-${index}` },
    request_id: { S: `task ${index}` },
  }));
  await putTickets([...tasks, ...over(key, 110)]);
  let checks = 0;
  await repairWith(call({ timeLeftMs: () => (checks++ < 2 ? 40_000 : leftMs) }));
  expect(await rows(key)).toHaveLength(rest);
  await repair();
  expect(await rows(key)).toEqual([]);
});

it('the repair puts back a lost mark before many expired rows', async () => {
  const key = 'unmarked';
  await acquire({ key, ttlSeconds: 600 });
  await putTickets([...over(key, 450), last(key)]);
  expect(await rawItem(key)).not.toHaveProperty('mark');
  await repairKey(key);
  expect(await rawItem(key)).toHaveProperty('mark');
});
