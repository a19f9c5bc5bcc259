import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_QUOTAS } from '../../shared/line/limits/quotas.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { acquireOrParkPermit, acquirePermit } from '../../shared/permits/acquire.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

// Calls that meet another call of their request, a withdrawal, or the next holder of a key. See also test/line/requests.ts.

const timeline = new Timeline();
const { now, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, heartbeat, breakPermit, withdraw, park, grantOf, read, repair, repairLine } = world;
const { rows, rawItem, putRaw, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

type Grant = Awaited<ReturnType<typeof acquire>>;
type Send = () => Promise<unknown>;

const own = { holder: 'R', requestId: 'r', limit: 1, ttlSeconds: 10 };

/** A call that joins the line, and then exits. */
const dieInLine = async (key: string, more: object = {}) => {
  await timeline.play(() => dyingAfter(3, () => acquire({ key, holder: 'dead', limit: 1, waitSeconds: 20, ...more })));
  timeline.advance(1); // a later ticket
};
const expectRepeated = (answer: Grant, duplicates: Grant[]) => {
  const [{ leaseId, fence } = {}] = duplicates;
  expect([answer, duplicates]).toMatchObject([{ leaseId, fence, repeated: true }, [{ repeated: false }]]);
};

/** A heartbeat, which writes a new version. */
const beat = ({ key, leaseId }: Grant) => {
  timeline.advance(1);
  return heartbeat({ key, leaseId });
};

describe('a call whose duplicate call receives a permit meanwhile', () => {
  it('a call that looks at the line receives the permit of a duplicate call, though another joins', async () => {
    const key = 'looking';
    await acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 3 });
    await park({ key, holder: 'overdue', limit: 1, parkSeconds: 5 });
    timeline.advance(8000);
    const duplicates: Grant[] = [];
    requests.faultsOf.Query = [
      precededBy(async () => {
        duplicates.push(await acquire({ key, ...own }));
        await park({ key, holder: 'behind', limit: 1 });
      }),
    ];
    const answer = await acquire({ key, ...own });
    expectRepeated(answer, duplicates);
    expect(await read(key)).toMatchObject({ used: 1, waiting: 1, holders: [{ holder: 'R' }] });
  });

  it.each(['empty', 'full'])(
    'a call before its claim receives the permit of a duplicate call, with a line behind that is %s',
    async (line) => {
      const key = `claim ${line}`;
      const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
      await dieInLine(key, own);
      if (line === 'full') await park({ key, holder: 'behind', limit: 1 });
      else await repairLine(key); // puts the mark back
      await release(first);
      const duplicates: Grant[] = [];
      requests.faultsOf.UpdateItem = ['none', precededBy(async () => duplicates.push(await acquire({ key, ...own })))];
      const answer = await acquire({ key, ...own });
      expectRepeated(answer, duplicates);
      expect(await rows(key)).toHaveLength(line === 'full' ? 1 : 0);
    },
  );

  it.each([1, 12])(
    'a call whose deadline has come receives the permit of a duplicate call that has changed it %i times',
    async (changes) => {
      const key = `leaves ${changes}`;
      const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
      const deadline = now() + 1000;
      const duplicates: Grant[] = [];
      const lastLook = async (send: Send) => {
        const answer = await send();
        if (now() < deadline - 500) return answer;
        await release(first); // gives the permit to the call in line
        timeline.advance(500);
        const claims = precededBy(async () => duplicates.push(await acquire({ key, ...own })));
        const beats = precededBy(() => Promise.all(duplicates.map(beat)));
        requests.faultsOf = { UpdateItem: [claims, ...Array(changes - 1).fill(beats)] };
        return answer;
      };
      requests.faultsOf.GetItem = Array(1000).fill(lastLook);
      const [answer] = await timeline.play(() => acquire({ key, ...own, waitSeconds: 1 }));
      expectRepeated(answer, duplicates);
      expect(await rows(key)).toEqual([]);
    },
  );
});

it.each([
  ['twelve', 12, 'repeated', 26],
  ['a hundred', 100, 'LeaseHeld', 40], // it gives up after twenty tries
])(
  'a call whose permit others change %s times before its claim receives the permit or LeaseHeld',
  async (_, changes, outcome, writes) => {
    const key = `changed ${changes}`;
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    await dieInLine(key, own);
    await park({ key, holder: 'behind', limit: 1 });
    await release(first);
    const duplicate = await acquire({ key, ...own });
    const beats = precededBy(() => beat(duplicate));
    // Each second write is that of a claim.
    let written = 0;
    const counted = (send: Send) => (written++ < 2 * changes ? beats(send) : send());
    requests.faultsOf.UpdateItem = Array(1000).fill(counted);
    const answer = await acquire({ key, ...own }).then(
      ({ leaseId, repeated }) => leaseId === duplicate.leaseId && repeated && 'repeated',
      ({ code }) => code,
    );
    expect([answer, written]).toEqual([outcome, writes]);
  },
);

it('a call whose permit was changed five times, and has then expired, receives another permit', async () => {
  const key = 'changed, then over';
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  await dieInLine(key, own);
  await repairLine(key); // puts the mark back
  await release(first); // gives the permit to the place, and takes the mark off
  const duplicate = await acquire({ key, ...own });
  const beats = precededBy(() => beat(duplicate));
  const ends = precededBy(async () => {
    await beat(duplicate);
    timeline.advance(10_501);
  });
  // Each second write is that of a claim.
  requests.faultsOf.UpdateItem = [...Array(5).fill(beats), ends].flatMap((claim) => ['none', claim]);
  const again = await acquire({ key, ...own });
  expect(again).toMatchObject({ repeated: false, previous: { fence: duplicate.fence, ended: 'expired' } });
});

it('a call that does not wait receives LeaseLost if its old waiter receives a permit and releases it in between', async () => {
  const key = 'given back';
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  await dieInLine(key, own);
  await repairLine(key); // puts the mark back
  await release(first, call({ timeLeftMs: () => 1999 })); // too little to look at the line
  timeline.advance(100); // the call that released has exited
  requests.faultsOf.UpdateItem = ['none', precededBy(async () => release(await acquire({ key, ...own })))];
  const refused = await failure(acquire({ key, ...own }));
  expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
});

it('a call in line whose permit others change before each of its claims leaves at its deadline', async () => {
  const key = 'changed in line';
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  const duplicates: Grant[] = [];
  let claims = 0;
  let isOwn = true;
  // Each write but those of the hooks themselves is that of a claim.
  const changes = async (send: Send) => {
    if (!isOwn) return send();
    isOwn = false;
    claims++;
    if (duplicates.length === 0) duplicates.push(await acquire({ key, ...own }));
    else if (claims <= 100) await Promise.all(duplicates.map(beat));
    isOwn = true;
    return send();
  };
  const stands = async (send: Send) => {
    await release(first); // gives the permit to the call in line
    const answer = await send();
    timeline.advance(1000);
    requests.faultsOf = { UpdateItem: Array(1000).fill(changes) };
    return answer;
  };
  requests.faultsOf.GetItem = [stands];
  const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 1 })));
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holders: [{ holder: 'R' }] } });
  expect(claims).toBe(40); // twenty tries, and twenty more when it leaves
});

it('a call in line whose request receives a permit of another weight is refused, and leaves no place behind', async () => {
  const key = 'another weight';
  const first = await acquire({ key, holder: 'x', limit: 3, weight: 3, ttlSeconds: 60 });
  const asked = { key, ...own, limit: 3, waitSeconds: 10 };
  const [granted, refused] = await timeline.play(
    () => acquire(asked),
    () => later(10, () => failure(acquire({ ...asked, weight: 2 }))),
    () => later(500, () => release(first)),
  );
  expect(granted).toMatchObject({ weight: 1, used: 1 });
  expect(refused).toMatchObject({ code: 'InvalidRequest', context: { issues: [{ path: 'requestId' }] } });
  expect(await rows(key)).toEqual([]);
});

const asks = (input: object) => acquireInput().parse({ limit: 1, ttlSeconds: 60, waitSeconds: 1, ...input });
describe('where as many as the quota allows wait for a permit', () => {
  const QUOTA = 2;
  const withQuota = acquirePermit({
    ...world.dependencies,
    quotas: { ...DEFAULT_QUOTAS, waitersPerKey: QUOTA },
  });

  it('a call whose request is granted a permit before it is in line itself has that', async () => {
    const key = 'granted before';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    await dieInLine(key, { holder: 'b', requestId: 'r' });
    for (let more = 0; more < QUOTA; more++) await park({ key, holder: `t${more}`, limit: 1 });
    requests.faultsOf.UpdateItem = ['none', precededBy(() => release(first))];
    const [granted] = await timeline.play(() => withQuota(asks({ key, holder: 'b', requestId: 'r' }), call()));
    expect(granted).toMatchObject({ holder: 'b', repeated: false, used: 1 });
    expect(await rows(key)).toHaveLength(QUOTA);
  });
});

let keys = 0;
const newKey = () => `own key ${keys++}`;
const first = () => acquire({ key: newKey(), holder: 'first' });
const ofB = (key: string) => ({ key, holder: 'b', requestId: 'r' });
const lost = (reason: string) => ({ code: 'LeaseLost', context: { reason } });

/** Its holder releases it, and another takes it. A third-party client has dropped the mark, so the release looks at no line. */
async function passedOn(key: string) {
  const { mark: _, ...unmarked } = (await rawItem(key)) ?? {};
  await putRaw(unmarked);
  const { m, i } = unmarked.h?.M ?? {};
  await release({ key, leaseId: `e.${m?.S}.${i?.S}` });
  return acquire({ key, holder: 'next' });
}

describe('a withdrawal', () => {
  it('a withdrawal ends a grant that is extended in that moment', async () => {
    const { key, leaseId } = await acquire(ofB(newKey()));
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = [precededBy(() => heartbeat({ key, leaseId }))];
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true });
    expect(await read(key)).toMatchObject({ state: 'released' });
  });

  it('a withdrawal hands off a lease that is extended in that moment', async () => {
    const { key, leaseId } = await acquire(ofB(newKey()));
    const { task } = await park({ key, holder: 'task' });
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => heartbeat({ key, leaseId }))]; // it meets the mark
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true });
    expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'b', ended: 'released' } });
  });

  it('a withdrawal has no effect if the grant is released, and another grant has come and gone since', async () => {
    const grant = await acquire(ofB(newKey()));
    const { key } = grant;
    const others = precededBy(async () => {
      await release(grant);
      await release(await acquire({ key, holder: 'other' }));
    });
    requests.faultsOf.UpdateItem = [others];
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect(await read(key)).toMatchObject({ state: 'released', holder: 'other' });
  });

  it('a retry releases the lease of a call that exited after its claim, if a withdrawal exited after its flag', async () => {
    const held = await first();
    const { key } = held;
    await timeline.play(
      () => later(10, () => release(held)),
      () => dyingAfter(5, () => acquire({ ...ofB(key), waitSeconds: 20 })),
    );
    const ticket = (await rows(key))[0]?.ticket?.S ?? '';
    expect(await read(key)).toMatchObject({ state: 'held', holder: 'b' });
    const { sent } = await dyingAfter(2, () => withdraw(ofB(key)));
    expect(sent).toEqual(['Query', 'UpdateItem']);
    expect(await failure(acquire({ ...ofB(key), ticket }))).toMatchObject(lost('cancelled'));
    expect(await read(key)).toMatchObject({ state: 'released' });
  });

  it('a withdrawal of a call without a grant is not remembered: a later try is a new acquisition', async () => {
    const held = await first();
    const { key } = held;
    const [refused] = await timeline.play(
      () => failure(acquire({ ...ofB(key), waitSeconds: 20 })),
      () => later(500, () => withdraw(ofB(key))),
    );
    expect(refused).toMatchObject(lost('cancelled'));
    await release(held);
    expect(await acquire(ofB(key))).toMatchObject({ holder: 'b', repeated: false });
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true }); // a grant is remembered
    expect((await failure(acquire(ofB(key)))).code).toBe('LeaseLost');
  });
});

describe('a call in line for the request of a task', () => {
  /** A task of the request waits behind a holder. */
  async function withTask(more: object = {}) {
    const held = await first();
    const { task } = await park({ ...ofB(held.key), ...more });
    return { key: held.key, held, task };
  }

  it('a call shares the grant of the task, which the schedule notifies', async () => {
    const { key, held, task } = await withTask();
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    const [, grant] = await timeline.play(
      () => later(300, () => release(held)),
      () => later(10, () => acquire({ ...ofB(key), waitSeconds: 20 })),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: true });
    expect(await read(key)).toMatchObject({ state: 'held', fence: grant.fence });
    expect((await rawItem(key))?.h?.M).toHaveProperty('r');
    timeline.advance(10_000);
    await repair();
    expect(task.output).toMatchObject({ leaseId: grant.leaseId });
  });

  it('a call receives no grant of the next holder if the lease is transferred while the call claims', async () => {
    const { key, held } = await withTask();
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    const next: Grant[] = [];
    const [, refused] = await timeline.play(
      () =>
        later(300, async () => {
          await release(held);
          requests.faultsOf.UpdateItem = [precededBy(async () => next.push(await passedOn(key)))];
        }),
      () => later(10, () => failure(acquire({ ...ofB(key), waitSeconds: 1 }))),
    );
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next[0]?.fence } });
    expect(await read(key)).toMatchObject({ holder: 'next', fence: next[0]?.fence });
  });

  it.each(['releases', 'loses'])(
    'a call receives no grant of the next holder if the task %s the lease',
    async (how) => {
      const { key, held, task } = await withTask();
      const [, refused, next] = await timeline.play(
        () =>
          later(300, async () => {
            requests.faultsOf.DeleteItem = ['neverSent', 'neverSent', 'neverSent']; // the call that notified the task exits here
            await release(held);
            const end = () =>
              how === 'releases' ? release(grantOf(task)) : breakPermit({ key, fence: grantOf(task).fence });
            requests.faultsOf = { UpdateItem: [precededBy(end)] };
          }),
        () => later(10, () => failure(acquire({ ...ofB(key), waitSeconds: 5 }))),
        () => later(20, () => acquire({ key, holder: 'next', waitSeconds: 20 })),
      );
      expect(refused).toMatchObject(lost(how === 'releases' ? 'released' : 'broken'));
      expect(next.fence).toBeGreaterThan(grantOf(task).fence);
    },
  );

  it('a call receives no grant of the next holder if its look shows an old record', async () => {
    const old = await acquire(ofB(newKey()));
    const { key } = old;
    const seen = await rawItem(key);
    await release(old);
    const next = await acquire({ key, holder: 'next' });
    let looks = 0;
    type Send = (args: { input: { ConsistentRead?: boolean } }) => Promise<unknown>;
    const anOldLook =
      (send: Send, context: { commandName?: string }): Send =>
      async (args) => {
        const isLook = context.commandName === 'GetItemCommand' && !args.input.ConsistentRead;
        return isLook && looks++ === 0 ? { output: { Item: seen, $metadata: {} }, response: {} } : send(args);
      };
    world.dynamodb.middlewareStack.add(anOldLook as never, { step: 'initialize', name: 'anOldLook' });
    const [refused] = await timeline.play(() => later(1, () => failure(acquire({ ...ofB(key), waitSeconds: 1 }))));
    world.dynamodb.middlewareStack.remove('anOldLook');
    expect(looks).toBeGreaterThan(0);
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next.fence } });
  });

  it('a call that leaves while the lease is transferred names the next holder', async () => {
    const { key, held } = await withTask();
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    const next: Grant[] = [];
    const deadline = timeline.now() + 1010;
    let reads = 0;
    requests.faultsOf.GetItem = Array(50).fill(async (send: Send) => {
      if (timeline.now() < deadline || ++reads !== 2) return send();
      await release(held);
      requests.faultsOf.UpdateItem = [precededBy(async () => next.push(await passedOn(key)))];
      return send();
    });
    const [refused] = await timeline.play(() => later(10, () => failure(acquire({ ...ofB(key), waitSeconds: 1 }))));
    requests.faultsOf = {};
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next[0]?.fence } });
  });

  it.each(['has no time left', 'exits after its write'])(
    'an unclaimed grant has the whole ttl of the task of its request, even if the call of the task %s',
    async (why) => {
      const held = await first();
      const asked = { ...ofB(held.key), ttlSeconds: 3600 };
      await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 })));
      await release(held);
      timeline.advance(500);
      const task = steps.newTask();
      const parking = acquireInput().parse({ ...asked, taskToken: task.token });
      const late = call({ timeLeftMs: () => 499 });
      if (why.startsWith('exits')) await dyingAfter(3, () => park(asked, task));
      else expect(await acquireOrParkPermit(world.dependencies)(parking, late)).toMatchObject({ parked: true });
      const seconds = Math.ceil(timeline.now() / 1000) + 3600;
      expect(await rawItem(held.key)).toMatchObject({
        h: { M: { e: { N: String(timeline.now() + 3_600_000) } } },
        lease_expiry: { N: String(seconds) },
      });
      expect(task.state).toBe('waiting');
      timeline.advance(10_000);
      await repair();
      expect(grantOf(task)).toMatchObject({ holder: 'b', remainingMs: 3_600_000 });
    },
  );
});
