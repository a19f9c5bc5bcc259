import { afterAll, describe, expect, it } from 'vitest';
import { acquireOrParkLease } from '../../shared/leases/acquire.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
const { later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, heartbeat, release, breakLease, withdraw, cancel, park, grantOf, read, repair } = world;
const { rows, rawItem, putRaw, messages, requests, steps } = world;
afterAll(() => steps.stop());

let keys = 0;
const newKey = () => `own key ${keys++}`;
/** Its holder gives it back, and another takes it. A client that knows nothing of the queue has dropped the mark, so the release looks at no line. */
async function passedOn(key: string) {
  const { waiters: _, ...unmarked } = (await rawItem(key)) ?? {};
  await putRaw(unmarked);
  await release({ key, leaseId: unmarked.lease_id?.S ?? '' });
  return acquire({ key, holder: 'next' });
}

describe('a call that claims the grant of another place of its request', () => {
  /** Its first call dies in line, and its second one meets the grant of that place after `meanwhile`. */
  async function secondOf(asked: { key: string }, meanwhile: (ticket: string) => Promise<unknown>, as = call()) {
    const { key } = asked;
    const first = await acquire({ key, holder: 'first' });
    await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 })));
    timeline.advance(1);
    const [, answer] = await timeline.play(
      () =>
        later(300, async () => {
          const [, second] = await rows(key);
          await release(first);
          await meanwhile(second?.ticket?.S ?? '');
        }),
      () => acquire({ ...asked, waitSeconds: 20 }, as).catch((error) => error),
    );
    return answer;
  }

  it('and has lost its own place before: it claims nothing', async () => {
    const key = newKey();
    const asked = { key, holder: 'b', requestId: 'own place lost' };
    const refused = await secondOf(asked, (ticket) => cancel(key, ticket));
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await rawItem(key)).toHaveProperty('claim_ttl_ms');
  });
});

describe('a withdrawal', () => {
  it('of a grant that is extended in that moment ends it all the same', async () => {
    const key = newKey();
    const asked = { key, holder: 'b', requestId: 'extended' };
    const { leaseId } = await acquire(asked);
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = [
      async (send) => {
        await heartbeat({ key, leaseId });
        return send();
      },
    ];
    expect(await withdraw(asked)).toMatchObject({ cancelled: true });
    expect(await read({ key })).toMatchObject({ state: 'released' });
  });

  it('that died after its flag, of a call that died after its claim: the lease is given back where the call asks again', async () => {
    const key = newKey();
    const asked = { key, holder: 'dead', requestId: 'flagged' };
    const first = await acquire({ key, holder: 'first' });
    await timeline.play(
      () => later(10, () => release(first)),
      () => dyingAfter(5, () => acquire({ ...asked, waitSeconds: 20 })),
    );
    const ticket = (await rows(key))[0]?.ticket?.S ?? '';
    expect(await read({ key })).toMatchObject({ state: 'held', holder: 'dead' });
    const { sent } = await dyingAfter(2, () => withdraw(asked));
    expect(sent).toEqual(['Query', 'UpdateItem']);
    const again = await failure(acquire({ ...asked, ticket }));
    expect(again).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await read({ key })).toMatchObject({ state: 'released' });
  });
});

describe('a withdrawal that another call crosses', () => {
  const asked = (key: string) => ({ key, holder: 'b', requestId: 'crossed' });

  it('by an extension, of a grant with others behind it: it hands the lease on all the same', async () => {
    const key = newKey();
    const { leaseId } = await acquire(asked(key));
    const { task } = await park({ key, holder: 'task' });
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = [
      (send) => send(), // it meets the mark
      async (send) => {
        await heartbeat({ key, leaseId });
        return send();
      },
    ];
    expect(await withdraw(asked(key))).toMatchObject({ cancelled: true });
    expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'b', ended: 'released' } });
  });

  it('by a release, and another has come and gone since: there is nothing to withdraw', async () => {
    const key = newKey();
    const grant = await acquire(asked(key));
    requests.faultsOf.UpdateItem = [
      async (send) => {
        await release(grant);
        await release(await acquire({ key, holder: 'other' }));
        return send();
      },
    ];
    expect(await withdraw(asked(key))).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect(await read({ key })).toMatchObject({ state: 'released', holder: 'other' });
  });
});

describe('a withdrawal of a call that has not been granted the lease', () => {
  it('is not remembered: a try that arrives later is a new acquisition', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const late = { key, holder: 'b', requestId: 'in line' };
    const [refused] = await timeline.play(
      () => failure(acquire({ ...late, waitSeconds: 20 })),
      () => later(500, () => withdraw(late)),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    await release(first);
    const grant = await acquire(late);
    expect(grant).toMatchObject({ holder: 'b', repeated: false });
    expect(await withdraw(late)).toMatchObject({ cancelled: true }); // a grant is remembered
    expect((await failure(acquire(late))).code).toBe('LeaseLost');
  });
});

describe('a request of a task', () => {
  it('that a call stands in line for too: the call ends no lease of the task, and shares it', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const { task } = await park({ key, holder: 'b', requestId: 'both' });
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    const [, grant] = await timeline.play(
      () => later(300, () => release(first)),
      () => later(10, () => acquire({ key, holder: 'b', requestId: 'both', waitSeconds: 20 })),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: true });
    expect(await read({ key })).toMatchObject({ state: 'held', fence: grant.fence });
    expect(await rawItem(key)).toHaveProperty('answered_at');
    timeline.advance(10_000);
    await repair();
    expect(task.output).toMatchObject({ leaseId: grant.leaseId });
  });

  it('that a call stands in line for too: the call gets nothing of the next holder, where the lease moves on in that moment', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'b', requestId: 'moved on' };
    await park(asked);
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    let next: Awaited<ReturnType<typeof acquire>> | undefined;
    const [, refused] = await timeline.play(
      () =>
        later(300, async () => {
          await release(first);
          requests.faultsOf.UpdateItem = [
            async (send) => {
              next = await passedOn(key);
              return send();
            },
          ];
        }),
      () => later(10, () => failure(acquire({ ...asked, waitSeconds: 1 }))),
    );
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next?.fence } });
    expect(await read({ key })).toMatchObject({ holder: 'next', fence: next?.fence });
  });

  it.each(['releases', 'loses'] as const)(
    'that a call stands in line for too, whose task %s the lease in that moment: the call gets nothing of the next holder',
    async (how) => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const asked = { key, holder: 'b', requestId: 'passed on' };
      const { task } = await park(asked);
      const [, refused, next] = await timeline.play(
        () =>
          later(300, async () => {
            requests.faultsOf.DeleteItem = ['neverSent', 'neverSent', 'neverSent']; // the call that told the task dies here
            await release(first);
            requests.faultsOf = {
              UpdateItem: [
                async (send) => {
                  if (how === 'releases') await release(grantOf(task));
                  else await breakLease({ key, fence: grantOf(task).fence });
                  return send();
                },
              ],
            };
          }),
        () => later(10, () => failure(acquire({ ...asked, waitSeconds: 5 }))),
        () => later(20, () => acquire({ key, holder: 'next', waitSeconds: 20 })),
      );
      expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next.fence } });
      expect(next.fence).toBeGreaterThan(grantOf(task).fence);
    },
  );

  it('that is in line late gets nothing of the next holder, though its look is an old one', async () => {
    const key = newKey();
    const asked = { key, holder: 'b', requestId: 'old look' };
    const old = await acquire(asked);
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
    const [refused] = await timeline.play(() => later(1, () => failure(acquire({ ...asked, waitSeconds: 1 }))));
    world.dynamodb.middlewareStack.remove('anOldLook');
    expect(looks).toBeGreaterThan(0);
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next.fence } });
  });

  it('that a call in line was answered with, after its task had heard of it: it is remembered beyond the end of the execution', async () => {
    const key = newKey();
    const execution = steps.newExecution();
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'b', requestId: 'both', execution, ttlSeconds: 5 };
    await park(asked);
    const [, grant] = await timeline.play(
      () => later(300, () => release(first)),
      () => later(10, () => acquire({ ...asked, waitSeconds: 5 })),
    );
    expect(grant).toMatchObject({ repeated: true });
    timeline.advance(5000);
    expect(await world.executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  });

  it('that a call leaves with in the moment in which its lease moves on: it learns who holds it', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'b', requestId: 'leaves' };
    await park(asked);
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    let next: Awaited<ReturnType<typeof acquire>> | undefined;
    const deadline = timeline.now() + 1010;
    let reads = 0;
    requests.faultsOf.GetItem = Array(50).fill(async (send: () => Promise<unknown>) => {
      if (timeline.now() < deadline || ++reads !== 2) return send();
      await release(first);
      requests.faultsOf.UpdateItem = [
        async (claim) => {
          next = await passedOn(key);
          return claim();
        },
      ];
      return send();
    });
    const [refused] = await timeline.play(() => later(10, () => failure(acquire({ ...asked, waitSeconds: 1 }))));
    requests.faultsOf = {};
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next?.fence } });
  });

  it('a repeated request is answered with its lease while that lease is extended, unless the lease is extended at each of twenty tries', async () => {
    const key = newKey();
    const asked = { key, holder: 'task', requestId: 'extended' };
    const { task } = await park(asked);
    const { leaseId, fence } = task.output as { leaseId: string; fence: number };
    const extended = async (send: () => Promise<unknown>) => {
      timeline.advance(1);
      await heartbeat({ key, leaseId });
      return send();
    };
    requests.faultsOf.UpdateItem = [extended];
    expect(await acquire(asked)).toMatchObject({ leaseId, fence, repeated: true });
    requests.faultsOf.UpdateItem = Array.from({ length: 20 }, () => [extended, 'none' as const]).flat();
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseHeld', context: { holder: 'task', fence } });
    expect(await acquire(asked)).toMatchObject({ leaseId, repeated: true });
  });

  describe('that a call in line was granted and has not claimed', () => {
    const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:takes-over';
    const asked = { holder: 'b', requestId: 'unclaimed', ttlSeconds: 3600, execution };
    /** The call is dead. */
    async function unclaimed() {
      const first = await acquire({ key: newKey(), holder: 'first' });
      const { key } = first;
      await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, key, waitSeconds: 20 })));
      await release(first);
      timeline.advance(500);
      return key;
    }

    it('is that of the task which comes, whole', async () => {
      const key = await unclaimed();
      messages.length = 0;
      const { task, parked, ticket } = await park({ key, ...asked });
      expect(parked).toBe(false);
      expect(messages).toEqual([]); // no task waits behind it
      const told = grantOf(task);
      expect(told).toMatchObject({
        remainingMs: 3_600_000,
        waitedMs: 0,
        repeated: false,
        previous: { holder: 'first' },
      });
      const record = await rawItem(key);
      expect(record).toMatchObject({
        ...{ ttl_ms: { N: '3600000' }, ttl_seconds: { N: '3600' }, ticket: { S: ticket }, execution: { S: execution } },
        ...{ acquired_at: { N: String(timeline.now()) }, heartbeat_at: { N: String(timeline.now()) } },
      });
      expect(record).not.toHaveProperty('claim_ttl_ms');
      expect(record).not.toHaveProperty('answered_at');
      timeline.advance(1000);
      expect(await heartbeat(told)).toMatchObject({ remainingMs: 3_600_000 });
      expect(await acquire({ key, ...asked, waitSeconds: 20 })).toMatchObject({
        repeated: true,
        leaseId: told.leaseId,
      });
    });

    it('is that of the task which comes, though nobody can tell it at once: the schedule does', async () => {
      const key = await unclaimed();
      steps.faults.SendTaskSuccess = ['refused'];
      const { task, parked } = await park({ key, ...asked });
      expect([parked, task.state]).toEqual([true, 'waiting']);
      timeline.advance(10_000);
      await repair();
      expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000 });
    });

    it('an unclaimed grant goes to the task of the same request, even if its call has no time left, and the schedule notifies the task', async () => {
      const key = await unclaimed();
      const task = steps.newTask();
      const parking = acquireInput().parse({ key, ...asked, taskToken: task.token });
      const parked = await acquireOrParkLease(world.dependencies)(parking, call({ timeLeftMs: () => 499 }));
      expect(parked).toMatchObject({ parked: true });
      expect(task.state).toBe('waiting');
      timeline.advance(10_000);
      await repair();
      expect(grantOf(task)).toMatchObject({ holder: 'b', remainingMs: 3_600_000 });
    });

    it('runs for the whole ttl of the task which comes from that very write on: its call may die right after it', async () => {
      const key = await unclaimed();
      const task = steps.newTask();
      await dyingAfter(3, () => park({ key, ...asked }, task));
      const seconds = Math.ceil(timeline.now() / 1000) + 3600;
      expect(await rawItem(key)).toMatchObject({
        ...{ expires_at: { N: String(timeline.now() + 3_600_000) }, lease_expiry: { N: String(seconds) } },
      });
      expect(task.state).toBe('waiting');
      timeline.advance(10_000);
      await repair();
      expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000 });
    });

    it('has the target that the task names, and neither that nor an execution where the task names none', async () => {
      const target = execution.replace('takes-over', 'its-target');
      const key = await unclaimed();
      await park({ key, ...asked, target });
      expect(await rawItem(key)).toMatchObject({ execution: { S: execution }, target: { S: target } });
      const alone = { key: newKey(), holder: 'b', requestId: 'alone' };
      const first = await acquire({ key: alone.key, holder: 'first' });
      await timeline.play(() => dyingAfter(3, () => acquire({ ...alone, waitSeconds: 20 })));
      await release(first);
      const { task } = await park(alone);
      expect(grantOf(task)).toMatchObject({ holder: 'b' });
      for (const name of ['execution', 'target']) expect(await rawItem(alone.key)).not.toHaveProperty(name);
    });
  });

  describe('that a call had and gave back before the task heard of it', () => {
    /** A task that has not heard of its grant, and a call that was answered with it. Another task may wait behind. */
    async function shared({ others }: { others: boolean }) {
      const first = await acquire({ key: newKey(), holder: 'first' });
      const asked = { key: first.key, holder: 'task', requestId: 'shared' };
      const { task } = await park(asked);
      timeline.advance(1);
      const next = others ? [await park({ key: first.key, holder: 'next' })] : [];
      steps.faults.SendTaskSuccess = ['refused'];
      await release(first);
      return { task, next: next[0]?.task, grant: await acquire(asked) };
    }

    it('is over for the task, which the schedule tells that where nobody waits', async () => {
      const { task, grant } = await shared({ others: false });
      await release(grant);
      steps.faults.SendTaskFailure = ['refused'];
      await repair();
      expect([task.state, await rows(grant.key)]).toMatchObject(['waiting', [{}]]);
      await repair();
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
      expect(await rows(grant.key)).toEqual([]);
    });

    it('keeps its place where the task could not be told, and nobody else out', async () => {
      const { task, next, grant } = await shared({ others: true });
      steps.faults.SendTaskFailure = ['refused'];
      await release(grant);
      expect([task.state, await rows(grant.key)]).toMatchObject(['waiting', [{}]]);
      await release(grantOf(next ?? task));
      const other = await acquire({ key: grant.key, holder: 'other' });
      await repair();
      await release(other);
      expect(grantOf(task)).toMatchObject({ holder: 'task', repeated: false });
    });
  });
});
