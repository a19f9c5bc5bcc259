import { afterAll, describe, expect, it } from 'vitest';

import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await queueWorld();
const pools = await poolLineWorld();
const { acquire, release, withdraw, park, joinLine, rows, rawItem, requests, as, clock, callerRow, putTickets } = world;
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

  it('ends the grant that the call was handed in the meantime', async () => {
    const first = await acquire({ key: 'handed' });
    await joinLine('handed', 'r');
    const ticket = (await rows('handed'))[0]?.ticket?.S ?? '';
    await release(first);
    const asked = { key: 'handed', holder: 'caller', requestId: 'r', ticket };
    expect(await withdraw(asked)).toMatchObject({ cancelled: true });
    expect(await rawItem('handed')).not.toHaveProperty('lease_version');
  });

  it.each(['holder', 'requestId'] as const)("leaves a ticket alone that is not of the caller's %s", async (field) => {
    const asked = await lastInLine(`foreign ${field}`);
    expect(await withdraw({ ...asked, [field]: 'another' })).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect(await flagged(asked.key)).toEqual([]);
  });

  it('leaves the ticket of another principal alone, and that of a task', async () => {
    const asked = await lastInLine('principal');
    expect(await withdraw(asked, as('arn:aws:iam::1:user/other'))).toMatchObject({ cancelled: false });
    expect(await flagged('principal')).toEqual([]);
    const { ticket, task } = await park({ key: 'principal', holder: 'task', requestId: 't' });
    const ofTask = { key: 'principal', holder: 'task', requestId: 't', ticket };
    expect(await withdraw(ofTask)).toMatchObject({ cancelled: false });
    expect(task.state).toBe('waiting');
  });

  it('finds the place that the call has taken since the ticket was gone', async () => {
    const { ticket, ...asked } = await lastInLine('gone');
    const gone = `${ticket.slice(0, -4)}gone`;
    expect(await withdraw({ ...asked, ticket: gone })).toMatchObject({ cancelled: true });
    expect(await flagged('gone')).toEqual([ticket]);
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

describe('a free lease whose holder had no time to look at the line', () => {
  const late = call({ timeLeftMs: () => 1000 });

  it('goes to the task behind a call that withdraws', async () => {
    const key = 'free, withdrawn';
    const first = await acquire({ key });
    await joinLine(key, 'r');
    const { task } = await park({ key, holder: 'task' });
    await release(first, late);
    expect(task.state).toBe('waiting');
    expect(await withdraw({ key, holder: 'caller', requestId: 'r' })).toMatchObject({ cancelled: true });
    expect(world.grantOf(task)).toMatchObject({ holder: 'task' });
  });

  it.each(['task', 'call'])('goes to the task behind a %s that an operator cancels', async (kind) => {
    const key = `free, cancelled ${kind}`;
    const first = await acquire({ key });
    if (kind === 'call') await joinLine(key, 'r');
    else await park({ key, holder: 'cancelled' });
    const [row] = await rows(key);
    const { task } = await park({ key, holder: 'task' });
    await release(first, late);
    expect(await world.cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: true });
    expect(world.grantOf(task)).toMatchObject({ holder: 'task' });
  });

  it('loses its mark if the only call in line withdraws', async () => {
    const key = 'free, alone';
    const first = await acquire({ key });
    await joinLine(key, 'r');
    await release(first, late);
    expect(await rawItem(key)).toHaveProperty('waiters');
    await withdraw({ key, holder: 'caller', requestId: 'r' });
    expect(await rawItem(key)).not.toHaveProperty('waiters');
    expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain' });
  });
});
