import { afterAll, describe, expect, it } from 'vitest';

import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await queueWorld();
const pools = await poolLineWorld();
const { acquire, withdraw, joinLine, rows, requests, clock, callerRow, putTickets } = world;
afterAll(() => Promise.all([world.steps.stop(), pools.steps.stop()]));

/** A long line, in which a call of `caller` is the last one. @returns its withdrawal, as the caller sends it */
async function lastInLine(key: string) {
  await acquire({ key, holder: 'first', ttlSeconds: 600 });
  await putTickets(Array.from({ length: 150 }, (_, at) => callerRow(key, `before-${at}`)));
  clock.advance(1);
  await joinLine(key, 'r');
  const ticket = (await rows(key)).at(-1)?.ticket?.S ?? '';
  return { key, holder: 'caller', requestId: 'r', ticket };
}
const flagged = async (key: string) =>
  (await rows(key)).filter(({ cancelled_at: at }) => at !== undefined).map(({ ticket }) => ticket?.S);

describe('a withdrawal that names the ticket of its call', () => {
  it('costs a write and a read, however long the line is', async () => {
    const asked = await lastInLine('long');
    requests.sent.length = 0;
    expect(await withdraw(asked)).toEqual({ key: 'long', requestId: 'r', cancelled: true });
    expect(requests.sent).toEqual(['UpdateItem', 'GetItem']);
    expect(await flagged('long')).toEqual([asked.ticket]);
  });

  it('withdraws a call that waits for a permit, and those behind it come in', async () => {
    const key = 'pool';
    await pools.acquire({ key, holder: 'first', limit: 2 });
    const refused = await failure(
      pools.acquire({ key, holder: 'heavy', requestId: 'r', limit: 2, weight: 2, waitSeconds: 1 }),
    );
    const { ticket } = refused.context.retryWith as { ticket: string };
    const row = (await pools.rows(key))[0] ?? {};
    const now = pools.clock.now();
    const times = { deadline: { N: String(now + 60_000) }, keep_until: { N: String(now + 65_000) } };
    await pools.putTicket({ ...row, ...times }); // it has asked again
    const { task } = await pools.park({ key, holder: 'light', limit: 2 });
    expect(task.state).toBe('waiting');
    const asked = { key, holder: 'heavy', requestId: 'r', ticket };
    expect(await pools.withdraw(asked)).toMatchObject({ cancelled: true });
    expect(task.state).toBe('succeeded');
  });
});
