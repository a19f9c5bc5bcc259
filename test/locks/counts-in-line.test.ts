import { afterAll, expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// With this quota, one arrival of four counts the line, whatever the record says.
const QUOTA = 128;

const timeline = new Timeline();
const quotas = { waitersPerKey: QUOTA, waitersPerNamespace: 10_000 };
const world = await permitLineWorld({ clock: timeline, quotas });
const { acquire, park, release, rows, rawItem, putRaw, putTickets, removeMark, requests, steps } = world;
afterAll(() => steps.stop());

const waiting = (key: string, holder: string) => acquire({ key, holder, limit: 1, ttlSeconds: 60, waitSeconds: 20 });
/** A call that joins the line, and exits before it polls for its grant. */
const inLine = async (key: string, holder: string) => {
  timeline.advance(1);
  return exitingAfter(3, () => waiting(key, holder));
};

/** Puts a holder and `count` calls in line, by writing the rows and the mark that they would leave. */
async function fill(key: string, count: number, more: object = {}) {
  const first = await acquire({ key, holder: 'first', limit: 1, ttlSeconds: 3600 });
  await inLine(key, 'the first row');
  const [template] = await rows(key);
  const names = Array.from({ length: count - 1 }, (_, index) => `${template?.ticket?.S}-${index}`);
  await putTickets(names.map((name) => ({ ...template, ticket: { S: name } })));
  await putRaw({ ...(await rawItem(key)), mark: { S: 'm' }, arrivals: { N: `${count}` }, ...more } as never);
  requests.sent.length = 0;
  return first;
}

it('hand-offs keep the number of waiters that have left the line', async () => {
  const key = 'hand-offs';
  const first = await fill(key, 1);
  const [second, third] = [await park({ key, holder: 'b', limit: 1 }), await park({ key, holder: 'c', limit: 1 })];
  timeline.advance(30_000); // the deadline of the next waiter has passed
  await release(first);
  // One of the three has exited, and the hand-off does not count that waiter as left.
  expect(await rawItem(key)).toMatchObject({ arrivals: { N: '3' }, line_out: { N: '1' } });
  await release({ key, leaseId: String(second.task.output?.leaseId) });
  await release({ key, leaseId: String(third.task.output?.leaseId) });
  const { mark, line_out: out } = (await rawItem(key)) ?? {};
  expect([mark, out]).toEqual([undefined, undefined]);
});

it('a call that asks again, or puts a lost mark back, counts once', async () => {
  const key = 'again';
  await fill(key, 1);
  const asked = { key, holder: 'again', requestId: 'r', limit: 1, waitSeconds: 1 };
  const [held] = await timeline.play(() => failure(acquire(asked)));
  const { ticket } = held.context.retryWith as { ticket: string };
  await timeline.play(() => failure(acquire({ ...asked, ticket })));
  expect(await rawItem(key)).toMatchObject({ arrivals: { N: '3' }, line_out: { N: '1' } });
  await removeMark(key);
  await timeline.play(() => failure(acquire({ ...asked, ticket })));
  expect(await rawItem(key)).toMatchObject({ arrivals: { N: '1' }, line_out: { N: '-1' } }); // two are in line
});
