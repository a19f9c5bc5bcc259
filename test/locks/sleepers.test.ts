import { expect, it } from 'vitest';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { DEFAULT_QUOTAS } from '../../shared/locks/dependencies.ts';
import { call } from '../support/emulators/aws.ts';
import { before, stepped } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
/** No call is held, so that each caller sleeps. */
const quotas = { ...DEFAULT_QUOTAS, maxHeldCalls: 0 };
const world = await lineWorld({ clock: timeline, quotas });
stepped(world.dependencies.dynamodb);
const { release, read, rows, requests, rawItem, cancel, withdraw, deleteRaw, executionEnded, repairKey, steps } = world;
const acquire = (input: object, dependencies = world.dependencies) =>
  acquireGrant(dependencies)(acquireInput().parse(input), call());
/** A held key with sleepers, in a deployment that holds calls. */
const acquireHeld = (input: object) =>
  acquire(input, { ...world.dependencies, quotas: { ...quotas, maxHeldCalls: 40 } });

let keys = 0;
/** A held key, and callers that sleep in its line. */
async function line(...holders: string[]) {
  const key = `asleep ${keys++}`;
  const first = await acquire({ key, holder: 'first', ttlSeconds: 3600 });
  const sleepers = [];
  for (const holder of holders) {
    timeline.advance(10);
    sleepers.push(await goToSleep({ key, holder }));
  }
  return { key, first, sleepers };
}
type Sleeper = Awaited<ReturnType<typeof goToSleep>>;

async function goToSleep(input: { key: string; holder: string } & Record<string, unknown>) {
  const asked = { requestId: input.holder, ttlSeconds: 60, waitSeconds: 20, sleepMs: 300_000, ...input };
  const { code, context } = await failure(acquire(asked));
  expect(code).toBe('LeaseHeld');
  const answer = context as {
    comeBackMs: number;
    keptMs: number;
    place: number;
    waiting: number;
    retryWith: { ticket: string };
  };
  return { ...answer, asked: { ...asked, ...answer.retryWith } };
}
const back = async ({ asked }: Sleeper, more: object = {}) => {
  const [outcome] = await timeline.play(() => acquire({ ...asked, ...more }).catch((error) => error));
  return outcome;
};
const places = async (key: string) => (await rows(key)).map(({ ticket }) => ticket?.S?.[0] === 'p');

it('a caller that can sleep learns when to come back, and keeps its place', async () => {
  const { key, sleepers } = await line('a', 'b', 'c');
  expect(sleepers.map(({ place }) => place)).toEqual([1, 2, 3]);
  for (const { comeBackMs, keptMs } of sleepers) {
    expect(comeBackMs).toBeGreaterThan(0);
    expect(keptMs).toBe(comeBackMs + 60_000);
  }
  expect(await places(key)).toEqual([true, true, true]);
  const listed = (await read({ key, waiters: true })) as { waiters: Record<'holder' | 'dueAt' | 'deadline', string>[] };
  expect(listed.waiters.map(({ holder }) => holder)).toEqual(['a', 'b', 'c']);
  expect(listed.waiters.map(({ dueAt }) => Date.parse(String(dueAt)) > timeline.now())).toEqual([true, true, true]);
  for (const { dueAt, deadline } of listed.waiters) expect(Date.parse(deadline)).toBe(Date.parse(dueAt) + 60_000);
});

it('a sleeper never stays away for longer than it said', async () => {
  const { key } = await line('a', 'b');
  timeline.advance(1_000_000);
  expect((await goToSleep({ key, holder: 'c', sleepMs: 700 })).comeBackMs).toBeLessThanOrEqual(700);
});

it('after a release, the first sleeper that comes back takes the key', async () => {
  const { key, first, sleepers } = await line('a', 'b');
  requests.sent.length = 0;
  await release(first);
  expect(await rawItem(key)).toMatchObject({ next_ticket: { S: sleepers[0]?.asked.ticket } });
  expect(await back(sleepers[0] as Sleeper)).toMatchObject({ holder: 'a', repeated: false });
  expect(await places(key)).toEqual([true]);
});

it('a quick release leaves the key to sleepers with three requests', async () => {
  const { key, first, sleepers } = await line('a', 'b', 'c');
  await release(first);
  const granted = await back(sleepers[0] as Sleeper);
  requests.sent.length = 0;
  expect(await release(granted)).toMatchObject({ released: true });
  expect(requests.sent).toEqual(['Query', 'UpdateItem', 'Query']);
  expect(await rawItem(key)).toMatchObject({ next_ticket: { S: sleepers[1]?.asked.ticket } });
});

it('a call that does not wait leaves a free key to sleepers at first', async () => {
  const { key, first, sleepers } = await line('a', 'b');
  await release(first);
  expect(await failure(acquire({ key, holder: 'hasty' }))).toMatchObject({ code: 'LeaseHeld' });
  timeline.advance(21); // a free key is left to each sleeper for ten milliseconds
  expect((await timeline.play(() => acquire({ key, holder: 'patient' })))[0]).toMatchObject({ holder: 'patient' });
  expect((await rows(key)).map(({ ticket }) => ticket?.S?.slice(1))).toEqual(sleepers.map(({ asked }) => asked.ticket));
});

it('a sleeper that takes the free key notes how long the previous turn lasted', async () => {
  const { key, first, sleepers } = await line('a', 'b');
  timeline.advance(30_000);
  await release(first);
  expect(await back(sleepers[0] as Sleeper)).toMatchObject({ holder: 'a' });
  const turn = { N: expect.stringMatching(/^300\d\d$/) };
  expect(await rawItem(key)).toMatchObject({ usual_ms: turn, mean_ms: turn });
});

it('a sleeper behind another comes back at once if the key is free again', async () => {
  const rehearsal = await line('a');
  requests.sent.length = 0;
  await goToSleep({ key: rehearsal.key, holder: 'b' });
  const { key, first } = await line('a');
  const toPut = requests.sent.indexOf('PutItem');
  let behind: Sleeper | undefined;
  const sleeps = async () => {
    behind = await goToSleep({ key, holder: 'b' });
  };
  expect(await before(toPut, () => release(first), sleeps)).toBe(true);
  expect(behind).toMatchObject({ place: 2, comeBackMs: 0 });
});

it('readers do not take room while a writer that came first sleeps', async () => {
  const key = `asleep ${keys++}`;
  const reader = { mode: 'shared', ttlSeconds: 3600 };
  const first = await acquire({ key, holder: 'first', ...reader });
  const writer = await goToSleep({ key, holder: 'writer' });
  timeline.advance(5000);
  expect(await failure(acquire({ key, holder: 'hasty', ...reader }))).toMatchObject({ code: 'LeaseHeld' });
  const behind = await goToSleep({ key, holder: 'behind', ...reader });
  expect(behind).toMatchObject({ place: 2, comeBackMs: expect.toSatisfy((ms) => ms > 0) });
  await release(first);
  expect(await back(writer)).toMatchObject({ holder: 'writer' });
});

it('a sleeper ten seconds overdue does not keep a free key from others', async () => {
  const { key, first, sleepers } = await line('a');
  timeline.advance(Number(sleepers[0]?.comeBackMs) + 10_000);
  await release(first);
  expect((await timeline.play(() => acquire({ key, holder: 'other' })))[0]).toMatchObject({ holder: 'other' });
});

it('the mark goes with the last place, and any caller may take the key', async () => {
  const { key, first, sleepers } = await line('a');
  await release(first);
  timeline.advance(Number(sleepers[0]?.keptMs) + 400); // a clock that is behind may still extend the place
  await repairKey(key);
  expect(await rawItem(key)).toHaveProperty('mark');
  timeline.advance(101);
  await repairKey(key);
  expect(await rawItem(key)).not.toHaveProperty('mark');
  expect(await acquire({ key, holder: 'other' })).toMatchObject({ holder: 'other' });
});

it('a sleeper that comes back too late has a place behind all others', async () => {
  const { key, sleepers } = await line('a');
  const [late] = sleepers as [Sleeper];
  timeline.advance(late.keptMs + 600);
  const other = await goToSleep({ key, holder: 'b' });
  timeline.advance(1);
  const again = await goToSleep(late.asked as never);
  expect(again.place).toBe(2);
  expect(again.asked.ticket > other.asked.ticket).toBe(true);
});

it('an early return keeps the ticket and the position', async () => {
  const { key, sleepers } = await line('a', 'b');
  const again = await goToSleep(sleepers[1]?.asked as never);
  expect([again.place, again.asked.ticket]).toEqual([2, sleepers[1]?.asked.ticket]);
  expect(await places(key)).toEqual([true, true]);
});

it('a caller that was not held takes the free key under its own ticket', async () => {
  const { key, first, sleepers } = await line('a');
  const plain = await goToSleep({ key, holder: 'plain', sleepMs: 0 });
  await release(first);
  timeline.advance(21);
  requests.sent.length = 0;
  expect(await back(plain)).toMatchObject({ holder: 'plain', leaseId: expect.stringContaining(plain.asked.ticket) });
  expect((await rows(key)).map(({ ticket }) => ticket?.S)).toEqual([`p${sleepers[0]?.asked.ticket}`]);
});

it('a sleeper whose return is sent twice has one grant', async () => {
  const { first, sleepers } = await line('a');
  await release(first);
  const [asleep] = sleepers as [Sleeper];
  const both = await timeline.play(
    () => acquire(asleep.asked),
    () => acquire(asleep.asked),
  );
  expect(new Set(both.map(({ fence }) => fence)).size).toBe(1);
  expect(both.map(({ repeated }) => repeated).toSorted()).toEqual([false, true]);
});

it('a cancelled or withdrawn sleeper is refused, and does not keep others out', async () => {
  const ends = [
    ({ asked }: Sleeper) => cancel(asked.key, asked.ticket),
    ({ asked: { key, requestId, holder, ticket } }: Sleeper) => withdraw({ key, requestId, holder, ticket } as never),
    ({ asked: { key, requestId, holder } }: Sleeper) => withdraw({ key, requestId, holder } as never),
  ];
  for (const end of ends) {
    const { key, first, sleepers } = await line('a');
    const [asleep] = sleepers as [Sleeper];
    expect(await end(asleep)).toMatchObject({ cancelled: true });
    await release(first);
    expect(await acquire({ key, holder: 'other' })).toMatchObject({ holder: 'other' });
    expect(await back(asleep)).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
  }
});

it('a return puts back the mark that another client has removed', async () => {
  const { key, sleepers } = await line('a', 'b');
  await deleteRaw(key);
  await acquire({ key, holder: 'second', ttlSeconds: 3600 });
  await back(sleepers[1] as Sleeper);
  expect(await rawItem(key)).toHaveProperty('mark');
});

it('the end of an execution takes its places out of the line', async () => {
  const { key } = await line();
  const execution = steps.newExecution();
  await goToSleep({ key, holder: 'a', execution });
  expect(await places(key)).toEqual([true]);
  steps.end(execution);
  await executionEnded(execution);
  expect(await places(key)).toEqual([]);
});

it('a sleeper takes the key after the grant of a dead holder has expired', async () => {
  const key = `asleep ${keys++}`;
  await acquire({ key, holder: 'dead', ttlSeconds: 2 });
  const asleep = await goToSleep({ key, holder: 'a' });
  timeline.advance(3000);
  expect(await back(asleep)).toMatchObject({ holder: 'a', previous: { holder: 'dead', ended: 'expired' } });
});

it('a caller that was held for longer than its place lasts keeps its position', async () => {
  const { key, sleepers } = await line('a', 'b');
  const [first] = sleepers as [Sleeper, Sleeper];
  const from = timeline.now();
  while (timeline.now() < from + first.keptMs) {
    await timeline.play(() => failure(acquireHeld({ ...first.asked, waitSeconds: 1 })));
    timeline.advance(5000); // a row is kept for this long between two calls
  }
  for (let sleeps = 0; sleeps < 2; sleeps++) {
    expect(await goToSleep(first.asked as never)).toMatchObject({ place: 1, asked: { ticket: first.asked.ticket } });
    expect((await rows(key)).map(({ ticket }) => ticket?.S)).toContain(`p${first.asked.ticket}`);
  }
});

it('a place is found again if DynamoDB leaves the rows out of its answer', async () => {
  const { sleepers } = await line('a', 'b');
  const { result } = await world.leavingOut(world.dependencies.waitersTable, () =>
    goToSleep(sleepers[1]?.asked as never),
  );
  expect([result.place, result.asked.ticket]).toEqual([2, sleepers[1]?.asked.ticket]);
});

it('a reader that can sleep is not held while a writer sleeps before it', async () => {
  const key = `asleep ${keys++}`;
  const first = await acquire({ key, holder: 'reader', mode: 'shared', ttlSeconds: 3600 });
  const writer = await goToSleep({ key, holder: 'writer' });
  timeline.advance(10);
  const reader = { key, holder: 'second', mode: 'shared', waitSeconds: 5, sleepMs: 300_000 };
  const [refused] = await timeline.play(() => failure(acquireHeld(reader)));
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { place: 2 } });
  expect(Number(refused.context.comeBackMs)).toBeGreaterThan(0);
  await release(first);
  expect(await back(writer)).toMatchObject({ holder: 'writer' });
});

/** A call that is held, whose turn then moves away because the holder goes on for longer than usual. */
async function farCall() {
  const { key } = await line();
  for (let nth = 0; nth < 9; nth++) await world.park({ key, holder: `task ${nth}` });
  timeline.advance(3000);
  const asked = { key, holder: 'far', requestId: 'far', waitSeconds: 20, sleepMs: 300_000 };
  const own = async () => (await rows(key)).flatMap(({ holder, ticket }) => (holder?.S === 'far' ? [ticket?.S] : []));
  return { key, asked, own };
}

it('a held call whose turn moves away ends, and its position stays', async () => {
  const { asked, own } = await farCall();
  const from = timeline.now();
  const [{ code, context }] = await timeline.play(() => failure(acquireHeld(asked)));
  expect(code).toBe('LeaseHeld');
  expect(context).toMatchObject({ place: 10, comeBackMs: expect.toSatisfy((ms) => ms > 0) });
  expect(timeline.now() - from).toBeLessThan(19_000);
  const { ticket } = context.retryWith as { ticket: string };
  expect(await own()).toEqual([`p${ticket}`]);
  expect(await goToSleep({ ...asked, ticket })).toMatchObject({ place: 10, retryWith: { ticket } });
});

it('a held call that is cancelled while it goes to sleep leaves no place', async () => {
  const { key, asked, own } = await farCall();
  const cancels = world.precededBy(async () => cancel(key, String((await own())[0])));
  requests.faultsOf.PutItem = ['none', cancels]; // the first PutItem writes its row, the second one its place
  const [refused] = await timeline.play(() => failure(acquireHeld(asked)));
  expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
  expect([requests.faultsOf.PutItem, await own()]).toEqual([[], []]);
});

it('a sleeper that was held leaves no place beside its grant', async () => {
  const { key, first, sleepers } = await line('a');
  const [granted] = await timeline.play(
    () => acquireHeld(sleepers[0]?.asked as object),
    async () => {
      await timeline.sleep(1000);
      expect((await rows(key)).length).toBe(2);
      expect(await read({ key, waiters: true })).toMatchObject({ waiting: 1, waiters: [{ holder: 'a', dueAt: null }] });
      expect(await goToSleep({ key, holder: 'b' })).toMatchObject({ place: 2, waiting: 1 });
      await release(first);
    },
  );
  expect(granted).toMatchObject({ holder: 'a' });
  expect((await rows(key)).map(({ holder }) => holder?.S)).toEqual(['b']);
});

it('a last call without a wait leaves no place beside its grant', async () => {
  const { key, first, sleepers } = await line('a');
  await release(first);
  expect(await back(sleepers[0] as Sleeper, { waitSeconds: 0, sleepMs: 0 })).toMatchObject({ holder: 'a' });
  expect(await rows(key)).toEqual([]);
});

it('a caller that cannot sleep leaves a free key to sleepers at first', async () => {
  const { key, first, sleepers } = await line('a');
  timeline.advance(40_000);
  await goToSleep({ key, holder: 'b' });
  await release(first);
  await release(await back(sleepers[0] as Sleeper));
  const freeAt = timeline.now(); // the usual turn lasts 40 seconds, and each sleeper has an eighth
  const [granted] = await timeline.play(() => acquireHeld({ key, holder: 'plain', waitSeconds: 20 }));
  expect(granted).toMatchObject({ holder: 'plain' });
  expect(timeline.now() - freeAt).toBeGreaterThanOrEqual(5000);
});

it('a call that ended receives the key while its caller asks again', async () => {
  const { key, first, sleepers } = await line('a');
  const asked = { ...sleepers[0]?.asked, waitSeconds: 1 };
  const [{ context }] = await timeline.play(() => failure(acquireHeld(asked)));
  expect(context).toMatchObject({ comeBackMs: 0, keptMs: 5000 });
  timeline.advance(100);
  await release(first);
  expect(await read({ key })).toMatchObject({ holder: 'a' });
  expect(await back(sleepers[0] as Sleeper)).toMatchObject({ holder: 'a', repeated: false });
});

it('a sleeper that missed a grant keeps its place', async () => {
  const { key, first, sleepers } = await line('a');
  await timeline.play(() => failure(acquireHeld({ ...sleepers[0]?.asked, waitSeconds: 1 })));
  await release(first);
  timeline.advance(3000);
  await repairKey(key);
  expect(await rawItem(key)).toHaveProperty('mark');
  expect(await places(key)).toEqual([true]);
  expect(await back(sleepers[0] as Sleeper)).toMatchObject({ holder: 'a', repeated: false });
});

it('a call that is cancelled while it is held leaves a withdrawn place', async () => {
  const { key, sleepers } = await line('a');
  const [asleep] = sleepers as [Sleeper];
  const [refused] = await timeline.play(
    () => failure(acquireHeld(asleep.asked)),
    async () => {
      await timeline.sleep(1000);
      await cancel(key, asleep.asked.ticket);
    },
  );
  expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
  expect(await rows(key)).toMatchObject([
    { ticket: { S: `p${asleep.asked.ticket}` }, cancelled_at: expect.anything() },
  ]);
});

it.each([true, false])(
  'a caller is not served after its cancellation, whenever that comes (held key: %s)',
  async (isHeld) => {
    for (let at = 0; ; at++) {
      const { key, first, sleepers } = await line('a');
      const [asleep] = sleepers as [Sleeper];
      if (!isHeld) await release(first);
      let isCancelled: unknown;
      let outcome: { code?: string } = {};
      const cancels = async () => {
        isCancelled = (await cancel(key, asleep.asked.ticket)).cancelled;
      };
      const returns = async () => {
        outcome = await back(asleep);
      };
      if (!(await before(at, cancels, returns))) return expect(at).toBeGreaterThan(2);
      if (!isCancelled) continue;
      expect(['LeaseLost', 'LeaseHeld']).toContain(outcome.code);
      expect(await back(asleep)).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    }
  },
);

it('a release names the first sleeper that is still in line', async () => {
  const { key, first, sleepers } = await line('a', 'b');
  await cancel(key, sleepers[0]?.asked.ticket ?? '');
  await release(first);
  expect(await rawItem(key)).toMatchObject({ next_ticket: { S: sleepers[1]?.asked.ticket } });
});

it('a quick release still counts the sleepers that it passes over', async () => {
  const { key, first, sleepers } = await line('a');
  const comes = async (holder: string, afterMs: number) => {
    await timeline.sleep(afterMs);
    return acquireHeld({ key, holder, requestId: holder, waitSeconds: 20, ttlSeconds: 60 });
  };
  const [, granted] = await timeline.play(
    async () => release(await comes('b', 10)),
    () => comes('c', 20),
    async () => {
      await timeline.sleep(1000);
      await release(first);
    },
  );
  expect(granted).toMatchObject({ holder: 'c' });
  // Three callers have arrived (a, b, c). b and c have received the key, so two have left the line.
  expect(await rawItem(key)).toMatchObject({ arrivals: { N: '3' }, line_out: { N: '2' } });
  expect(await rawItem(key)).toMatchObject({ next_ticket: { S: sleepers[0]?.asked.ticket } });
});

it('a sleeper beyond the quota of its key is refused, and leaves no place', async () => {
  const { key } = await line('a', 'b');
  const few = { ...world.dependencies, quotas: { ...quotas, waitersPerKey: 2 } };
  const asked = { key, holder: 'c', waitSeconds: 20, sleepMs: 300_000 };
  expect(await failure(acquire(asked, few))).toMatchObject({ code: 'QueueFull' });
  expect((await rows(key)).length).toBe(2);
});

it('far from the front, a return seldom writes the place', async () => {
  const { sleepers } = await line(...Array.from({ length: 23 }, (_, nth) => `${nth}`));
  const [near, far] = [sleepers[0], sleepers.at(-1)] as [Sleeper, Sleeper];
  const sentBy = async ({ asked }: Sleeper) => {
    requests.sent.length = 0;
    await goToSleep(asked as never);
    return requests.sent;
  };
  timeline.advance(50);
  expect(await sentBy(far)).toEqual(['BatchGetItem']);
  expect(await sentBy(near)).toEqual(['BatchGetItem', 'Query', 'UpdateItem']);
  timeline.advance(200_000);
  expect(await sentBy(far)).toEqual(['BatchGetItem', 'UpdateItem']);
});
