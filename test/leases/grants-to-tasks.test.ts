import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { handOff } from '../../shared/leases/hand-off.ts';
import { readRecord } from '../../shared/leases/read-record.ts';
import { deleteWaiter } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, heartbeat, release, breakLease, read, park, cancel, repair, executionEnded } = world;
const { joinLine, handOn, grantOf, rawItem, putRaw, rows, clock, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
  steps.faults = {};
  steps.requests.length = 0;
  steps.onTheWay = async () => {};
});

const executionOf = (name: string) => `arn:aws:states:us-east-1:123456789012:execution:machine:${name}`;
const successes = () => steps.requests.filter(({ action }) => action === 'SendTaskSuccess').map(({ token }) => token);

describe('a SendTaskSuccess that lands and whose reply is lost', () => {
  it('is not sent again at once, and “gone” at a later try moves no lease while the execution runs', async () => {
    const execution = executionOf('lost');
    steps.executions.set(execution, 'RUNNING');
    const first = await acquire({ key: 'lost' });
    const told = await park({ key: 'lost', execution, ttlSeconds: 3600 });
    const next = await park({ key: 'lost' });
    steps.faults.SendTaskSuccess = ['lost'];
    expect(await release(first)).toMatchObject({ released: true });
    expect(successes()).toEqual([told.task.token]);
    expect(told.task.state).toBe('succeeded');

    clock.advance(9000);
    await repair();
    expect(successes()).toHaveLength(1); // its granter may still be at it
    clock.advance(60_000);
    await repair();
    await repair();
    expect(successes()).toEqual([told.task.token, told.task.token]); // and never again
    expect(next.task.state).toBe('waiting');
    expect(await read({ key: 'lost' })).toMatchObject({
      holder: 'tester',
      fence: grantOf(told.task).fence,
      waiting: 1,
    });
    expect(await heartbeat(grantOf(told.task))).toMatchObject({ fence: grantOf(told.task).fence });

    await executionEnded(execution);
    expect(next.task.state).toBe('succeeded');
  });

  it('and gives the lease back is not told again: its ticket goes', async () => {
    const first = await acquire({ key: 'once' });
    const told = await park({ key: 'once' });
    const next = await park({ key: 'once' });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    expect(await rows('once')).toHaveLength(2);
    await release(grantOf(told.task));
    expect(successes()).toEqual([told.task.token, next.task.token]);
    expect(await rows('once')).toEqual([]);
  });

  it('moves at the end of the execution, if that is missed by every event, and of one that names none at its expiry', async () => {
    for (const [key, execution] of [['dead', executionOf('dead')], ['nameless']] as const) {
      if (execution) steps.executions.set(execution, 'FAILED');
      const first = await acquire({ key });
      await park({ key, ttlSeconds: 120, ...(execution && { execution }) });
      const next = await park({ key });
      steps.faults.SendTaskSuccess = ['lost'];
      await release(first);
      clock.advance(60_000);
      await repair();
      expect(next.task.state, key).toBe(execution ? 'succeeded' : 'waiting');
      clock.advance(121_000); // the schedule renewed it once, before it tried to tell
      await repair();
      expect(next.task.state, key).toBe('succeeded');
    }
  });
});

describe('only who wrote the grant, and at its first send, takes “gone” for a task that never had it', () => {
  it.each(['parked again', 'asked for plainly'])('a task that is tried again (%s) keeps the lease', async (how) => {
    const key = `retried ${how}`;
    const asked = { key, requestId: 'r', holder: 'h', ttlSeconds: 3600 };
    const first = await acquire({ key });
    const old = await park(asked);
    const next = await park({ key });
    old.task.state = 'timedOut'; // its attempt is over, and the next one comes
    const retried = steps.newTask();
    let leaseId: string | undefined;
    steps.onTheWay = async (_, token) => {
      if (token !== old.task.token) return;
      // The release has written the grant to the old ticket, and is about to be told that its task is gone.
      if (how === 'parked again') await park(asked, retried);
      else ({ leaseId } = await acquire(asked));
    };
    await release(first);
    leaseId ??= grantOf(retried).leaseId;
    expect((await rawItem(key))?.lease_id?.S).toBe(leaseId);
    expect(next.task.state).toBe('waiting');
    expect(await release({ key, leaseId })).toMatchObject({ released: true });
    expect(next.task.state).toBe('succeeded');
  });

  it('a task that is tried again while its lease goes to another caller hears nothing of that one, and waits for it', async () => {
    const asked = { key: 'moved on', holder: 'h', requestId: 'r' };
    const old = await park(asked);
    let other: Awaited<ReturnType<typeof acquire>> | undefined;
    requests.faultsOf.UpdateItem = [
      'none', // the mark, which its own grant refuses
      precededBy(async () => {
        await release(grantOf(old.task));
        other = await acquire({ key: 'moved on', holder: 'other' });
      }),
    ];
    const { task, parked } = await park(asked);
    expect([parked, task.state, await rows('moved on')]).toMatchObject([true, 'waiting', { length: 1 }]);
    if (other) await release(other);
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'other' } });
  });

  it('a schedule that sends first rotates the version: its “gone” and that of the granter move nothing', async () => {
    const first = await acquire({ key: 'rotated' });
    const told = await park({ key: 'rotated', ttlSeconds: 3600 });
    const next = await park({ key: 'rotated' });
    let late = false;
    steps.onTheWay = async (_, token) => {
      if (token !== told.task.token || late) return;
      late = true;
      clock.advance(11_000); // the granter is slow, and the schedule tells the task in its place
      await repair();
    };
    await release(first);
    expect(successes()).toEqual([told.task.token, told.task.token]);
    expect(next.task.state).toBe('waiting');
    expect(await heartbeat(grantOf(told.task))).toMatchObject({ key: 'rotated' });
  });
});

it('a transfer leaves nothing of the grant before: the end of that execution frees no successor', async () => {
  const execution = executionOf('before');
  const own = { execution, target: executionOf('target'), data: { of: 'before' }, requestId: 'r1' };
  const first = await acquire({ key: 'bequest', ...own }, world.as('arn:before'));
  const { task } = await park({ key: 'bequest' });
  await release(first);
  const record = (await rawItem('bequest')) ?? {};
  const left = ['execution', 'target', 'data', 'principal', 'released_at', 'broken_at', 'waiters'];
  expect(Object.keys(record).filter((name) => left.includes(name))).toEqual([]);
  await executionEnded(execution, true);
  expect(await heartbeat(grantOf(task))).toMatchObject({ key: 'bequest' });
});

it('nor of one that was broken: its release, repeated, is told as one', async () => {
  const { fence } = await acquire({ key: 'mended' });
  await breakLease({ key: 'mended', fence });
  const { task } = await park({ key: 'mended' });
  expect(await rawItem('mended')).not.toHaveProperty('broken_at');
  expect(await rawItem('mended')).not.toHaveProperty('released_at');
  for (const _ of ['first', 'again']) expect(await release(grantOf(task))).toEqual({ key: 'mended', released: true });
});

describe('clients that know nothing of the queue', () => {
  it('drop the mark, and the schedule puts it back', async () => {
    await acquire({ key: 'overwritten', ttlSeconds: 2 });
    const { task } = await park({ key: 'overwritten' });
    clock.advance(10_000);
    const expiry = Math.ceil(clock.now() / 1000) + 30;
    await putRaw({ key: { S: 'overwritten' }, lease_version: { S: 'v' }, lease_expiry: { N: String(expiry) } });
    await repair();
    expect((await rawItem('overwritten'))?.waiters).toEqual({ N: '1' });
    expect(task.state).toBe('waiting');
    clock.advance(33_000);
    await repair();
    expect(task.state).toBe('succeeded');
  });
});

describe('a write whose reply is lost, and which the SDK sends again', () => {
  it('transfer, whose first try arrives after others have come and gone: the fence stays', async () => {
    await acquire({ key: 'late-transfer' });
    const { task } = await park({ key: 'late-transfer' });
    const { task: next } = await park({ key: 'late-transfer' });
    const { lease_version: _, ...free } = (await rawItem('late-transfer')) ?? {};
    await putRaw(free as never); // as the release of a client leaves it that does not know the queue
    let arrive = async (): Promise<unknown> => undefined;
    const delayed = async (send: () => Promise<unknown>) => {
      arrive = send;
      throw networkError('ECONNRESET', 'read');
    };
    requests.faultsOf.UpdateItem = [delayed];
    await repair();
    await release(grantOf(task));
    await release(grantOf(next));
    const later = await acquire({ key: 'late-transfer', holder: 'later' });
    expect(later.fence).toBeGreaterThan(grantOf(next).fence);
    await release(later);
    expect(await arrive()).toMatchObject({ response: { statusCode: 400 } });
    expect(await read({ key: 'late-transfer' })).toMatchObject({ state: 'released' });
    expect((await rawItem('late-transfer'))?.fence?.N).toBe(String(later.fence));
  });

  it('release of a lease whose waiters are gone: released, and the mark too', async () => {
    const first = await acquire({ key: 'lost-clear' });
    const { ticket } = await park({ key: 'lost-clear' });
    await cancel('lost-clear', ticket);
    requests.faultsOf.UpdateItem = ['none', 'lostReply'];
    expect(await release(first)).toMatchObject({ released: true });
    expect(await acquire({ key: 'lost-clear', holder: 'next' })).toMatchObject({ holder: 'next' });
  });

  it('release of a lease whose waiters are gone, while another task parks: that task has it', async () => {
    const first = await acquire({ key: 'late-clear' });
    const { ticket } = await park({ key: 'late-clear' });
    await cancel('late-clear', ticket);
    const comes = steps.newTask();
    const afterThePark = async (send: () => Promise<unknown>) => {
      await park({ key: 'late-clear' }, comes);
      return send();
    };
    requests.faultsOf.UpdateItem = ['none', afterThePark];
    expect(await release(first)).toMatchObject({ released: true });
    expect(grantOf(comes).fence).toBeGreaterThan(first.fence);
  });

  it('a new version for a repeat: the grant', async () => {
    const first = await acquire({ key: 'lost-rotation' });
    const { task } = await park({ key: 'lost-rotation', requestId: 'r', holder: 'h' });
    await release(first);
    requests.faultsOf.UpdateItem = ['lostReply'];
    const again = await acquire({ key: 'lost-rotation', requestId: 'r', holder: 'h' });
    expect(again).toMatchObject({ repeated: true, leaseId: grantOf(task).leaseId });
  });
});

describe('break', () => {
  it('gives the lease to the oldest, and a repeat says who has it', async () => {
    const { fence, expiresAt } = await acquire({ key: 'break', holder: 'stuck' });
    const { task } = await park({ key: 'break', holder: 'next' });
    expect(await breakLease({ key: 'break', fence })).toEqual({
      ...{ key: 'break', broken: true, fence, holder: 'stuck', ended: true },
      ...{ holderUntil: expiresAt, lastHeartbeatAt: null },
    });
    expect(task.state).toBe('succeeded');
    const again = breakLease({ key: 'break', fence });
    await expect(again).rejects.toMatchObject({ code: 'Conflict', context: { actual: { holder: 'next' } } });
  });

  it('of a lease whose waiters are gone ends it, and the mark goes, without another look', async () => {
    const { fence } = await acquire({ key: 'break, none left' });
    const { ticket } = await park({ key: 'break, none left' });
    await cancel('break, none left', ticket);
    requests.sent.length = 0;
    expect(await breakLease({ key: 'break, none left', fence })).toMatchObject({ broken: true, fence });
    expect(requests.sent).toEqual(['UpdateItem', 'Query', 'UpdateItem']);
    expect(await rawItem('break, none left')).not.toHaveProperty('waiters');
  });

  it('that comes when the holder has just given the lease back says who has it', async () => {
    const first = await acquire({ key: 'break too late' });
    const { task } = await park({ key: 'break too late', holder: 'next' });
    requests.faultsOf.UpdateItem = [
      'none', // the end, which the mark refuses
      precededBy(() => release(first)),
    ];
    const broken = breakLease({ key: 'break too late', fence: first.fence });
    await expect(broken).rejects.toMatchObject({ code: 'Conflict', context: { actual: { holder: 'next' } } });
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'next' });
  });

  it('has broken the lease where it went to a task that was gone, and another call handed it on from there', async () => {
    const key = 'break, and gone';
    const execution = executionOf('gone');
    const { fence } = await acquire({ key });
    const gone = await park({ key, execution });
    const next = await park({ key, holder: 'next' });
    gone.task.state = 'timedOut';
    steps.executions.set(execution, 'ABORTED');
    requests.faultsOf.UpdateItem = [
      ...['none' as const, 'none' as const], // the end, which the mark refuses, and the transfer to the task that is gone
      precededBy(async () => {
        expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
      }),
    ];
    expect(await breakLease({ key, fence })).toMatchObject({ broken: true, fence });
    expect(next.task.output).toMatchObject({ holder: 'next' });
  });

  it('ends the lease of a holder that was never told, and cannot be told of its end: the next in line has it', async () => {
    const first = await acquire({ key: 'untellable' });
    const untold = await park({ key: 'untellable' });
    const next = await park({ key: 'untellable' });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    const fence = Number((await rawItem('untellable'))?.fence?.N);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await breakLease({ key: 'untellable', fence })).toMatchObject({ broken: true, ended: true });
    expect(untold.task).toMatchObject({ error: 'LeaseLost', cause: { reason: 'broken' } });
    expect(next.task.state).toBe('succeeded');
  });

  it.each(['repeat', 'schedule'])(
    'has ended the lease where nobody waits behind such a holder: the %s tells it',
    async (how) => {
      const key = `untold alone, ${how}`;
      const first = await acquire({ key });
      const { task } = await park({ key });
      steps.faults.SendTaskSuccess = ['refused'];
      await release(first);
      const fence = Number((await rawItem(key))?.fence?.N);
      steps.faults.SendTaskFailure = ['refused'];
      expect(await breakLease({ key, fence })).toMatchObject({ broken: true, ended: true });
      expect([await read({ key }), task]).toMatchObject([{ state: 'released' }, { state: 'waiting' }]);
      if (how === 'repeat') expect(await breakLease({ key, fence })).toMatchObject({ broken: true, fence });
      else await repair();
      expect(task).toMatchObject({ error: 'LeaseLost', cause: { reason: 'broken' } });
      expect(await rows(key)).toEqual([]);
    },
  );
});

describe('a task that is told late begins with its whole ttl, because it measures its work by that', () => {
  const remaining = (output: object) => (output as { remainingMs: number }).remainingMs;

  it('by the schedule, also between the expiry and the margin of the clocks', async () => {
    for (const lateMs of [15_000, 20_100]) {
      const key = `late ${lateMs}`;
      const first = await acquire({ key });
      const { task } = await park({ key, ttlSeconds: 20 });
      steps.faults.SendTaskSuccess = ['refused'];
      await release(first);
      clock.advance(lateMs);
      await repair();
      expect(grantOf(task), key).toMatchObject({ remainingMs: 20_000, waitedMs: lateMs });
      expect((await rawItem(key))?.lease_expiry?.N, key).toBe(String(Math.ceil(clock.now() / 1000) + 20));
      clock.advance(19_999);
      await expect(acquire({ key, holder: 'other' })).rejects.toMatchObject({ code: 'LeaseHeld' });
    }
  });

  const answeredLate = async <T>(send: () => Promise<T>) => {
    const written = await send();
    clock.advance(6000);
    return written;
  };

  it('but for half a second, which its granter does not make up for', async () => {
    const first = await acquire({ key: 'half a second' });
    const { task } = await park({ key: 'half a second', ttlSeconds: 20 });
    requests.faultsOf.UpdateItem = ['none', answeredLate(500)];
    await release(first);
    expect(remaining(grantOf(task))).toBe(19_500);
  });

  it('the next one too, when that task is gone', async () => {
    const first = await acquire({ key: 'slow' });
    const gone = await park({ key: 'slow', ttlSeconds: 20 });
    const next = await park({ key: 'slow', ttlSeconds: 20 });
    gone.task.state = 'timedOut';
    requests.faultsOf.UpdateItem = ['none', answeredLate, 'none', answeredLate];
    await release(first);
    expect(remaining(grantOf(next.task))).toBe(20_000);
  });

  it('when it is tried again', async () => {
    const asked = { key: 'again', holder: 'h', requestId: 'r', ttlSeconds: 20 };
    await park(asked);
    clock.advance(15_000);
    const { task } = await park(asked);
    expect(remaining(grantOf(task))).toBe(20_000);
  });

  describe('also where the answers to its renewals are lost, and the SDK tries again after two seconds:', () => {
    const lost = async (send: () => Promise<unknown>) => {
      await send();
      clock.advance(2000);
      throw networkError('ECONNRESET', 'read');
    };
    const slow = async (send: () => Promise<unknown>) => {
      clock.advance(600);
      return send();
    };

    it.each([
      ['one answer', [lost]],
      ['two answers', [lost, lost]],
      ['the answers to two renewals', [lost, lost, 'none', lost]],
    ] as const)('by its granter, %s', async (key, faults) => {
      const first = await acquire({ key });
      const { task } = await park({ key, ttlSeconds: 4 });
      requests.faultsOf.UpdateItem = ['none', slow, ...faults];
      await release(first);
      expect(remaining(grantOf(task))).toBe(4000);
      expect((await rawItem(key))?.expires_at?.N).toBe(String(clock.now() + 4000));
    });

    it('by the schedule', async () => {
      const first = await acquire({ key: 'schedule' });
      const { task } = await park({ key: 'schedule', ttlSeconds: 20 });
      steps.faults.SendTaskSuccess = ['refused'];
      await release(first);
      clock.advance(15_000);
      requests.faultsOf.UpdateItem = ['none', lost];
      await repair();
      expect(remaining(grantOf(task))).toBe(20_000);
    });

    it('by the next run of the schedule, where every renewal of one takes too long', async () => {
      const first = await acquire({ key: 'slow schedule' });
      const { task } = await park({ key: 'slow schedule', ttlSeconds: 20 });
      steps.faults.SendTaskSuccess = ['refused'];
      await release(first);
      clock.advance(15_000);
      requests.faultsOf.UpdateItem = ['none', lost, 'none', lost, 'none', lost];
      expect(await repair()).toMatchObject({ told: 0, unanswered: 1 });
      expect([task.state, await rows('slow schedule')]).toMatchObject(['waiting', { length: 1 }]);
      expect(await repair()).toMatchObject({ told: 1, unanswered: 0 });
      expect(remaining(grantOf(task))).toBe(20_000);
    });

    it('when it is tried again', async () => {
      const asked = { key: 'tried again', holder: 'h', requestId: 'r', ttlSeconds: 20 };
      await park(asked);
      requests.faultsOf.UpdateItem = ['none', lost];
      const { task } = await park(asked);
      expect(grantOf(task)).toMatchObject({ remainingMs: 20_000, repeated: true });
    });

    it('and it is not told at all while every renewal takes too long', async () => {
      const first = await acquire({ key: 'too slow' });
      const { task } = await park({ key: 'too slow', ttlSeconds: 20 });
      requests.faultsOf.UpdateItem = ['none', slow, lost, 'none', lost, 'none', lost, 'none'];
      expect(await release(first)).toMatchObject({ released: true });
      expect(requests.faultsOf.UpdateItem).toEqual([]);
      expect(successes()).toEqual([]);
      expect(await read({ key: 'too slow' })).toMatchObject({ state: 'held', waiting: 0 });
      clock.advance(10_001);
      await repair();
      expect(remaining(grantOf(task))).toBe(20_000);
    });

    it('while the client of Step Functions is made, which takes its time at first', async () => {
      const client = await world.dependencies.stepFunctions();
      let made = false;
      world.dependencies.stepFunctions = async () => {
        if (!made) clock.advance(700);
        made = true;
        return client;
      };
      const { task } = await park({ key: 'first use', ttlSeconds: 4 });
      expect(Date.parse(grantOf(task).expiresAt) - clock.now()).toBe(4000);
    });
  });

  it('and never with less than it had, where the clock of the one who tells it again is behind', async () => {
    const asked = { key: 'behind', holder: 'h', requestId: 'r', ttlSeconds: 20 };
    const { expiresAt } = grantOf((await park(asked)).task);
    clock.advance(-400);
    expect(grantOf((await park(asked)).task)).toMatchObject({ expiresAt });
    expect((await rawItem('behind'))?.expires_at?.N).toBe(String(Date.parse(expiresAt)));
  });

  it('also past its deadline, where the lease was its by then', async () => {
    const first = await acquire({ key: 'in time' });
    const { task } = await park({ key: 'in time', parkSeconds: 5 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    clock.advance(15_000);
    await repair();
    expect(remaining(grantOf(task))).toBe(60_000);
  });

  it('and one that can never be told loses the lease some time after its deadline', async () => {
    const first = await acquire({ key: 'untold', ttlSeconds: 3600 });
    const untold = await park({ key: 'untold', ttlSeconds: 70, parkSeconds: 100 });
    const next = await park({ key: 'untold', ttlSeconds: 70 });
    steps.faults.SendTaskSuccess = Array.from({ length: 6 }, () => 'refused' as const);
    await release(first);
    for (let minute = 1; minute <= 6 && next.task.state === 'waiting'; minute++) {
      clock.advance(60_000);
      if (minute > 4) steps.faults.SendTaskSuccess = [];
      await repair();
    }
    expect(next.task.state).toBe('succeeded');
    expect(untold.task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
  });
});

it('a call that races behind an overdue task that cannot be notified receives the lease with its first try', async () => {
  const { expiresAt } = await acquire({ key: 'unreachable', ttlSeconds: 2 });
  await park({ key: 'unreachable', parkSeconds: 1 });
  clock.set(Date.parse(expiresAt) + 501); // the first moment at which the lease can be had
  steps.faults.SendTaskFailure = Array.from({ length: 100 }, () => 'refused' as const);
  const waits = acquire({ key: 'unreachable', holder: 'patient', waitSeconds: 1, fair: false });
  expect(await waits).toMatchObject({ holder: 'patient', waitedMs: 0 });
  expect(steps.requests).toHaveLength(1);
});

describe('a call that has stood still between its look and its write', () => {
  it('does not clear the mark of a newcomer, by the mark of a record that stays held', async () => {
    const first = await acquire({ key: 'restarted', ttlSeconds: 2 });
    const gone = await park({ key: 'restarted' });
    await cancel('restarted', gone.ticket);
    const late = steps.newTask();
    requests.faultsOf.UpdateItem = [
      'none', // the release loses by the mark
      precededBy(async () => {
        clock.advance(2000 + 501);
        await handOff(world.dependencies, { record: await record('restarted'), ending: 'expired' }, call());
        expect(await rawItem('restarted')).not.toHaveProperty('waiters');
        clock.advance(-500); // to the clock of the newcomer the margin is not over
        await park({ key: 'restarted' }, late);
      }),
    ];
    expect(await release(first)).toMatchObject({ released: true });
    expect(late.output).toMatchObject({ previous: { holder: 'tester', ended: 'released' } });
  });

  it('nor by the mark that began again while the lease was free', async () => {
    const key = 'free again';
    await release(await acquire({ key }));
    const gone = await joinLine(key, 'gone');
    await deleteWaiter(world.dependencies, { key, ticket: gone.ticket }, call());
    let newcomer: Awaited<ReturnType<typeof joinLine>> | undefined;
    requests.faultsOf.UpdateItem = [
      precededBy(async () => {
        expect(await handOn(key, 'free')).toMatchObject({ end: 'empty' });
        newcomer = await joinLine(key, 'newcomer');
        expect((await rawItem(key))?.waiters).toEqual({ N: '1' }); // as it was seen by the one that stands still
      }),
    ];
    expect(await handOn(key, 'free')).toMatchObject({ end: 'granted', moved: [newcomer?.ticket] });
  });

  it('does not follow a free record that another has held since', async () => {
    await release(await acquire({ key: 'between', holder: 'first' }));
    clock.advance(1000);
    const task = steps.newTask();
    requests.faultsOf.UpdateItem = [
      'none', // the lease is free, so the mark is refused
      precededBy(async () => {
        clock.advance(-400); // by another machine
        await release(await acquire({ key: 'between', holder: 'second' }));
        clock.advance(400);
      }),
    ];
    await park({ key: 'between', holder: 'parked' }, task);
    expect(task.output).toMatchObject({ holder: 'parked', previous: { holder: 'second' } });
  });
});

const record = (key: string) => readRecord(world.dependencies, key, call());
