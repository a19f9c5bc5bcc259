import { expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const world = await permitLineWorld({ clock: timeline });
const { acquire, release, withdraw, park, grantOf, rows, requests, as } = world;
const { breakPermit, precededBy } = world;
resetting(world);

const owner = as('arn:aws:iam::1:user/owner');
let keys = 0;
const newKey = () => `withdraw ${keys++}`;
const cancelled = { code: 'LeaseLost', context: { reason: 'cancelled' } };
/** A call of the owner whose function exits once it is in line. */
const exitInLine = async (asked: object) => {
  await timeline.play(() =>
    exitingAfter(4, () => acquire({ holder: 'b', limit: 1, waitSeconds: 20, ...asked }, owner)),
  );
  timeline.advance(1); // so that the next ticket is later
};

/** A permit that a call of the owner has claimed in line, before a task. */
const claimed = async (requestId: string) => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', limit: 1 });
  await exitInLine({ key, requestId });
  await release(first);
  const grant = await acquire({ key, holder: 'b', requestId, limit: 1 }, owner);
  const { task } = await park({ key, holder: 'task', limit: 1 });
  expect([task.state, await rows(key)]).toMatchObject(['waiting', [{}]]);
  return { key, grant, task };
};

it.each([
  ['its holder releases the permit first', []],
  ['an operator breaks the permit first, though a try got no answer', ['error500']],
] as [string, 'error500'[]][])('a withdrawal of a request does not find a grant to end if %s', async (_, faults) => {
  const { key, grant, task } = await claimed('w13');
  const ends = () => (faults.length > 0 ? breakPermit({ key, fence: grant.fence }) : release(grant, owner));
  requests.faultsOf.UpdateItem = ['none', ...faults, precededBy(ends)];
  expect(await withdraw({ key, requestId: 'w13', holder: 'b' }, owner)).toMatchObject({ cancelled: false });
  expect(grantOf(task)).toMatchObject({ holder: 'task', used: 1 });
});

it('a withdrawal without an answer is OutcomeUnknown after eight other ends', async () => {
  const key = newKey();
  await acquire({ key, holder: 'b', requestId: 'w16', limit: 20 }, owner);
  const others: Awaited<ReturnType<typeof acquire>>[] = [];
  for (let nth = 0; nth < 8; nth++) others.push(await acquire({ key, holder: `other ${nth}`, limit: 20 }));
  const allEnd = async () => {
    for (const other of others) await release(other);
  };
  requests.faultsOf.UpdateItem = ['lostReply', precededBy(allEnd)];
  expect(await failure(withdraw({ key, requestId: 'w16', holder: 'b' }, owner))).toMatchObject({
    code: 'OutcomeUnknown',
    context: { key },
  });
  expect(await withdraw({ key, requestId: 'w16', holder: 'b' }, owner)).toMatchObject({ cancelled: false });
});

/** A withdrawal that has read the line and not yet the record. */
async function begun(requestId: string) {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', limit: 1, ttlSeconds: 60 });
  const asked = { key, requestId, holder: 'b' };
  const comes = precededBy(async () => {
    await exitInLine(asked);
    await release(first);
  });
  requests.faultsOf.GetItem = [comes];
  return asked;
}

it('a call that receives its permit during its withdrawal is withdrawn too', async () => {
  const asked = await begun('w17');
  expect(await withdraw(asked, owner)).toMatchObject({ cancelled: true });
  const [row] = await rows(asked.key);
  expect(row).toHaveProperty('cancelled_at');
  const again = acquire({ ...asked, limit: 1, waitSeconds: 1, ticket: row?.ticket?.S }, owner);
  expect(await failure(again)).toMatchObject({ code: 'LeaseLost' });
});

it('a withdrawal succeeds even if its call gives up the permit first', async () => {
  const asked = await begun('w19');
  const calls: object[] = [];
  const gives = precededBy(async () => calls.push(await failure(acquire({ ...asked, limit: 1 }, owner))));
  requests.faultsOf.UpdateItem = ['none', gives]; // the flag, and the end of the permit
  expect(await withdraw(asked, owner)).toMatchObject({ cancelled: true });
  expect(calls).toMatchObject([cancelled]);
});

it('a withdrawal of an unknown request reads the line and the record', async () => {
  requests.sent.length = 0;
  const unknown = { cancelled: false, reason: 'unknown' };
  expect(await withdraw({ key: newKey(), requestId: 'none', holder: 'b' }, owner)).toMatchObject(unknown);
  expect(requests.sent).toEqual(['Query', 'GetItem']);
});

it('a withdrawal by ticket costs three requests, however long the line is', async () => {
  const key = newKey();
  await acquire({ key, holder: 'first', ttlSeconds: 600 });
  await world.putTickets(Array.from({ length: 150 }, (_, at) => world.callerRow(key, `before-${at}`)));
  timeline.advance(1);
  const { ticket } = await world.joinLine(key, 'r');
  requests.sent.length = 0;
  expect(await withdraw({ key, holder: 'caller', requestId: 'r', ticket })).toMatchObject({ cancelled: true });
  expect(requests.sent).toEqual(['UpdateItem', 'GetItem', 'Query']);
  const flagged = (await rows(key)).filter(({ cancelled_at: at }) => at !== undefined);
  expect(flagged.map((row) => row.ticket?.S)).toEqual([ticket]);
});
