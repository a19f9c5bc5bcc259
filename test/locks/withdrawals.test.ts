import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { leave, refuse } from '../../shared/line/leave.ts';
import { Lock } from '../../shared/line/lock.ts';
import { flagCancelled } from '../../shared/line/waiting-calls.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { acquirePermit, permitRequest } from '../../shared/permits/acquire.ts';
import { readPool } from '../../shared/permits/read.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { post } from '../support/stack/adapters.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const { now, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, withdraw, park, grantOf, read, rows, requests, steps, as, handlers } = world;
const { breakPermit, precededBy, untold } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  steps.faults = {};
});

const owner = as('arn:aws:iam::1:user/owner');
let keys = 0;
const newKey = () => `withdraw ${keys++}`;
const cancelled = { code: 'LeaseLost', context: { reason: 'cancelled' } };
/** A call of the owner whose function dies once it is in line. */
const dieInLine = async (asked: object) => {
  await timeline.play(() => dyingAfter(4, () => acquire({ holder: 'b', limit: 1, waitSeconds: 20, ...asked }, owner)));
  timeline.advance(1); // a later ticket
};

/** A permit that a call of the owner has claimed in line, before a task. */
const claimed = async (requestId: string) => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', limit: 1 });
  await dieInLine({ key, requestId });
  await release(first);
  const grant = await acquire({ key, holder: 'b', requestId, limit: 1 }, owner);
  const { task } = await park({ key, holder: 'task', limit: 1 });
  expect([task.state, await rows(key)]).toMatchObject(['waiting', [{}]]);
  return { key, grant, task };
};

describe('a withdrawal of a request', () => {
  it("a withdrawal of a task's request is done if its permit is broken before the task ends", async () => {
    const key = newKey();
    const { task } = await untold(await acquire({ key, limit: 1 }), { limit: 1, requestId: 'w10' });
    const fence = Number((await read(key)).fence);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => breakPermit({ key, fence }))];
    expect(await withdraw({ key, requestId: 'w10', holder: 'untold' })).toMatchObject({ cancelled: true });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { key, reason: 'cancelled' } });
    expect([(await read(key)).used, await rows(key)]).toEqual([0, []]);
  });

  it.each([
    ['its holder gives the permit back first', []],
    ['an operator breaks the permit first, though a try got no answer', ['error500']],
  ] as [string, 'error500'[]][])('a withdrawal of a request has no grant to end if %s', async (_, faults) => {
    const { key, grant, task } = await claimed('w13');
    const ends = () => (faults.length > 0 ? breakPermit({ key, fence: grant.fence }) : release(grant, owner));
    requests.faultsOf.UpdateItem = ['none', ...faults, precededBy(ends)];
    expect(await withdraw({ key, requestId: 'w13', holder: 'b' }, owner)).toMatchObject({ cancelled: false });
    expect(grantOf(task)).toMatchObject({ holder: 'task', used: 1 });
  });

  it('a withdrawal is OutcomeUnknown if its write got no answer, and eight other permits have ended since, and not NotFound', async () => {
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

  it("a withdrawal of a dead call's request serves the waiters behind the call at once", async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', limit: 2 });
    await dieInLine({ key, requestId: 'w15', limit: 2, weight: 2 });
    const { task } = await park({ key, holder: 'task', limit: 2 });
    expect(task.state).toBe('waiting');
    expect(await withdraw({ key, requestId: 'w15', holder: 'b' }, owner)).toMatchObject({ cancelled: true });
    expect(grantOf(task)).toMatchObject({ holder: 'task', used: 2 });
    await release(first);
  });

  describe('whose call came in line, and was granted its permit, while the withdrawal began', () => {
    /** The withdrawal, which begins between its look at the line and its look at the record. */
    async function begun(requestId: string) {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', limit: 1, ttlSeconds: 60 });
      const asked = { key, requestId, holder: 'b' };
      const comes = precededBy(async () => {
        await dieInLine(asked);
        await release(first);
      });
      requests.faultsOf.GetItem = [comes];
      return asked;
    }

    it('a call that received its permit while the withdrawal began is answered that it was withdrawn', async () => {
      const asked = await begun('w17');
      expect(await withdraw(asked, owner)).toMatchObject({ cancelled: true });
      const [row] = await rows(asked.key);
      expect(row).toHaveProperty('cancelled_at');
      const again = acquire({ ...asked, limit: 1, waitSeconds: 1, ticket: row?.ticket?.S }, owner);
      expect(await failure(again)).toMatchObject({ code: 'LeaseLost' });
    });

    it('a withdrawal reports the end if the call releases its permit in that moment, by the flag', async () => {
      const asked = await begun('w19');
      const calls: object[] = [];
      const gives = precededBy(async () => calls.push(await failure(acquire({ ...asked, limit: 1 }, owner))));
      requests.faultsOf.UpdateItem = ['none', gives]; // the flag, and the end of the permit
      expect(await withdraw(asked, owner)).toMatchObject({ cancelled: true });
      expect(calls).toMatchObject([cancelled]);
    });
  });

  it('a call that sees only the flag of the withdrawal, and has its permit, gives it to the next waiter at once', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', limit: 1, ttlSeconds: 60 });
    timeline.advance(1000);
    const withShortestPauses = acquirePermit({
      ...world.dependencies,
      ids: { ...world.dependencies.ids, random: () => 0 },
    });
    const asked = acquireInput().parse({ key, holder: 'b', requestId: 'w18', limit: 1, waitSeconds: 20 });
    const [refused, { task }] = await timeline.play(
      async () => ({ ...(await failure(withShortestPauses(asked, call()))), at: now() }),
      () => later(10, () => park({ key, holder: 'task', limit: 1 })),
      // The next look is the one at the ticket.
      () =>
        later(990, async () => {
          await release(first);
          const name = { key: key, ticket: (await rows(key))[0]?.ticket?.S ?? '' };
          expect(await flagCancelled(world.dependencies, { name }, call())).toMatchObject(name);
        }),
    );
    expect(refused).toMatchObject(cancelled);
    expect(grantOf(task)).toMatchObject({ holder: 'task', used: 1 });
  });

  it('a withdrawal of an unknown request looks at the line and the record', async () => {
    requests.sent.length = 0;
    const unknown = { cancelled: false, reason: 'unknown' };
    expect(await withdraw({ key: newKey(), requestId: 'none', holder: 'b' }, owner)).toMatchObject(unknown);
    expect(requests.sent).toEqual(['Query', 'GetItem']);
  });
});

it('requests for one place and for several are withdrawn through the function', async () => {
  const { acquire: ask, withdraw: function_ } = handlers;
  await post(ask, { key: 'several', holder: 'h', requestId: 'own', limit: 1 });
  await post(ask, { key: 'one', holder: 'h', requestId: 'own' });
  for (const key of ['several', 'one', 'one'])
    expect(await post(function_, { key, holder: 'h', requestId: 'own' })).toMatchObject({ outcome: 'ok' });
  for (const key of ['several', 'one']) expect(await read(key)).toMatchObject({ holders: [] });
});

it('a withdrawal that names the ticket of its call costs three requests, however long the line is', async () => {
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

describe('a call that leaves the line of a free key', () => {
  /** With so little time left, a release leaves the line to others: the key is free, and keeps its mark. */
  const late = call({ timeLeftMs: () => 1999 });
  const asking = (key: string) => {
    const asked = { key, holder: 'caller', requestId: 'own', ttlSeconds: 10, waitSeconds: 20 };
    const { dependencies } = world;
    return { dependencies, lock: new Lock(dependencies, permitRequest(asked, call()), call()), call: call() };
  };

  it('a call that leaves hands off once: behind rows that one hand-off does not pass, it receives LeaseHeld', async () => {
    const key = newKey();
    const first = await acquire({ key });
    const { ticket } = await world.joinLine(key, 'own');
    await release(first, late);
    const over = { deadline: { N: '1' }, keep_until: { N: String(now()) } };
    await world.putTickets(Array.from({ length: 850 }, (_, index) => world.callerRow(key, `over ${index}`, over)));
    const { code, context } = await failure(leave(asking(key), ticket));
    expect([code, context.retryWith]).toEqual(['LeaseHeld', { requestId: 'own', ticket }]);
    expect(await rows(key)).toHaveLength(841);
  });

  it('a call that leaves a key without a mark reads no line', async () => {
    const key = newKey();
    await release(await acquire({ key }));
    const record = await readPool(world.dependencies, key, call());
    requests.sent.length = 0;
    const refusing = { record, ticket: 'gone', reason: 'released' as const };
    expect(await failure(refuse(asking(key), refusing))).toMatchObject({ code: 'LeaseLost' });
    expect(requests.sent).toEqual(['DeleteItem']);
  });
});
