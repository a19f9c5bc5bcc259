import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Call } from '../../shared/aws/call.ts';
import { acquireOrParkLease } from '../../shared/leases/acquire.ts';
import { releaseLease } from '../../shared/leases/release.ts';
import type { RepairMessage } from '../../shared/line/dependencies.ts';
import { newTicket } from '../../shared/line/waiters.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { repairLines } from '../../shared/locks/repair.ts';
import { call } from '../support/emulators/aws.ts';
import { queueWorld } from '../support/worlds/line.ts';

const messages: RepairMessage[] = [];
/** Sends while the call has time, as every client does. */
const repairLater = async (message: RepairMessage, { timeLeftMs }: Call) => {
  if (timeLeftMs() > 0) messages.push(message);
};
const world = await queueWorld({ repairLater });
const { acquire, heartbeat, release, park, cancel, joinLine, repairKey, putRaw, rawItem } = world;
const { grantOf, clock, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  messages.length = 0;
});

const MARGIN_MS = 500;

/** Lets the delay of the only message pass, and delivers it. */
const deliver = async () => {
  const [message, ...others] = messages.splice(0);
  if (!message || others.length > 0) throw new Error(`expected one message, not ${JSON.stringify([message, others])}`);
  clock.advance(message.delaySeconds * 1000);
  return repairKey(message.key, message.fence);
};

describe('a task that parks behind a holder that dies', () => {
  it('a task that parks behind a holder that exits and extended its lease before: each message sends the next, not before ten seconds', async () => {
    const first = await acquire({ key: 'extended', ttlSeconds: 4 });
    const { task } = await park({ key: 'extended' });
    for (const _ of ['once', 'again']) {
      for (const beatMs of [3000, 3000, 3000, 1000]) {
        clock.advance(beatMs);
        await heartbeat(first);
      }
      const [message] = messages.splice(0);
      expect(await repairKey('extended', message?.fence)).toMatchObject({ granted: 0 });
      expect(messages).toEqual([{ key: 'extended', fence: first.fence, delaySeconds: 10 }]);
    }
    await deliver();
    expect(task.output).toMatchObject({ previous: { fence: first.fence, ended: 'expired' } });
  });

  it('a task that parks behind a holder that exits is served if the lease lasts longer than a message waits', async () => {
    const first = await acquire({ key: 'long', ttlSeconds: 1200 });
    const { task } = await park({ key: 'long' });
    expect(messages).toMatchObject([{ delaySeconds: 900 }]);
    await deliver();
    expect(messages).toEqual([{ key: 'long', fence: first.fence, delaySeconds: 302 }]);
    await deliver();
    expect(task.state).toBe('succeeded');
  });
});

describe('a task that is granted the lease and dies', () => {
  it('a task that is granted the lease and exits in front of another task: the release that granted the lease has sent the message', async () => {
    const first = await acquire({ key: 'behind', ttlSeconds: 30 });
    const [dead, next] = [await park({ key: 'behind', ttlSeconds: 20 }), await park({ key: 'behind' })];
    messages.length = 0;
    await release(first);
    const { fence } = grantOf(dead.task);
    expect(messages).toEqual([{ key: 'behind', fence, delaySeconds: 22 }]);
    await deliver();
    expect(next.task.output).toMatchObject({ previous: { fence, ended: 'expired' } });
    expect(messages).toEqual([]); // no task waits behind that one
  });
});

it('no message is sent for a lease that never expires, nor for a grant without a task behind it', async () => {
  await putRaw({ key: { S: 'without end' }, lease_version: { S: 'v' } });
  await park({ key: 'without end' });
  const [beforeTask, beforeCall] = [await acquire({ key: 'alone' }), await acquire({ key: 'a caller alone' })];
  await park({ key: 'alone' });
  await joinLine('a caller alone', 'r');
  expect(messages.splice(0)).toMatchObject([{ key: 'alone' }]);
  for (const first of [beforeTask, beforeCall]) await release(first);
  expect(await rawItem('a caller alone')).toHaveProperty('claim_ttl_ms');
  expect(messages).toEqual([]);
});

describe('messages that SQS delivers twice', () => {
  it.each([0, 700, 3500])(
    'messages that SQS delivers twice do not grow in number, if the second copy comes %i ms after the first',
    async (laterMs) => {
      const key = `twice, ${laterMs} ms apart`;
      const first = await acquire({ key, ttlSeconds: 4 });
      const { task } = await park({ key });
      let underWay = messages
        .splice(0)
        .map(({ fence, delaySeconds }) => ({ fence, at: clock.now() + delaySeconds * 1000 }));
      let most = 0;
      for (let delivered = 0; delivered < 30; delivered++) {
        const [message, ...others] = underWay.toSorted((one, other) => one.at - other.at);
        if (!message) break;
        while (clock.now() < message.at) {
          clock.advance(Math.min(2000, message.at - clock.now()));
          await heartbeat(first);
        }
        underWay = others;
        for (const copy of [1, 2]) {
          if (copy === 2) clock.advance(laterMs);
          await heartbeat(first);
          await repairKey(key, message.fence);
          for (const { fence, delaySeconds } of messages.splice(0))
            underWay.push({ fence, at: clock.now() + delaySeconds * 1000 });
        }
        most = Math.max(most, underWay.length);
      }
      expect(most).toBe(1);
      clock.advance(20_000);
      await repairKey(key, first.fence);
      expect(task.state).toBe('succeeded');
    },
  );

  it('messages that SQS delivers twice are the last about a grant, and the next grant has messages of its own', async () => {
    const first = await acquire({ key: 'next grant', ttlSeconds: 600 });
    const second = await park({ key: 'next grant', ttlSeconds: 4 });
    await park({ key: 'next grant' });
    messages.length = 0;
    clock.advance(1000);
    await repairKey('next grant', first.fence); // sends the next one for the end of the ten minutes
    expect(messages).toHaveLength(1);
    await release(first);
    const { fence, leaseId } = grantOf(second.task);
    messages.length = 0;
    clock.advance(3000);
    await heartbeat({ key: 'next grant', leaseId });
    await repairKey('next grant', fence);
    expect(messages).toEqual([{ key: 'next grant', fence, delaySeconds: 10 }]);
  });

  it('messages are sent once if the answer to their note was lost', async () => {
    const first = await acquire({ key: 'note', ttlSeconds: 30 });
    await park({ key: 'note' });
    messages.length = 0;
    requests.faultsOf.UpdateItem = ['lostReply'];
    await repairKey('note', first.fence);
    await repairKey('note', first.fence);
    expect(messages).toHaveLength(1);
  });
});

describe('a message', () => {
  it('a message about a lease that has expired without a waiter in line writes no record', async () => {
    const { fence } = await acquire({ key: 'nobody', ttlSeconds: 2 });
    clock.advance(3000);
    const before = await rawItem('nobody');
    expect(await repairKey('nobody', fence)).toMatchObject({ granted: 0 });
    expect(await rawItem('nobody')).toEqual(before);
  });

  it('a message about a grant that has ended reads the record, has no effect, and sends no message', async () => {
    const first = await acquire({ key: 'ended', ttlSeconds: 60 });
    const [second, third] = [await park({ key: 'ended', ttlSeconds: 3600 }), await park({ key: 'ended' })];
    await release(first);
    messages.length = 0;
    requests.sent.length = 0;
    expect(await repairKey('ended', first.fence)).toMatchObject({ granted: 0 });
    expect(requests.sent).toEqual(['GetItem']);
    expect(messages).toEqual([]);
    expect([second.task.state, third.task.state]).toEqual(['succeeded', 'waiting']);
  });

  it('a message hands off each lease that is available, whoever had the lease last', async () => {
    const first = await acquire({ key: 'late', ttlSeconds: 10 });
    const [second, third] = [await park({ key: 'late', ttlSeconds: 10 }), await park({ key: 'late' })];
    await park({ key: 'late' });
    await release(first);
    clock.advance(10_000 + MARGIN_MS + 1);
    messages.length = 0;
    await repairKey('late', first.fence);
    expect(messages).toEqual([{ key: 'late', fence: grantOf(third.task).fence, delaySeconds: 62 }]);
    expect(third.task.output).toMatchObject({ previous: { fence: grantOf(second.task).fence } });
  });

  it('a message is the last if no task waits any more, or if a caller waits alone, which looks by itself', async () => {
    const left = await acquire({ key: 'left', ttlSeconds: 60 });
    await cancel('left', (await park({ key: 'left' })).ticket);
    const waits = await acquire({ key: 'a caller waits', ttlSeconds: 60 });
    await joinLine('a caller waits', 'r');
    messages.length = 0;
    for (const { key, fence } of [left, waits]) await repairKey(key, fence);
    expect(messages).toEqual([]);
    expect(await rawItem('left')).toHaveProperty('lease_version');
  });

  it('a message is the last if the ticket of its own grant is left alone', async () => {
    const first = await acquire({ key: 'its own' });
    await park({ key: 'its own' });
    messages.length = 0;
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    expect(await world.rows('its own')).toHaveLength(1);
    await repairKey('its own', Number((await rawItem('its own'))?.fence?.N));
    expect(messages).toEqual([]);
  });

  it('a message is the last about a lease that is free, and that it has no time to hand off', async () => {
    const first = await acquire({ key: 'left free' });
    const { task } = await park({ key: 'left free' });
    await release(first, call({ timeLeftMs: () => 1999 }));
    messages.length = 0;
    const left = [5000, 5000]; // at its beginning, and before its key
    const late = call({ timeLeftMs: () => left.shift() ?? 1999 });
    await repairLines(world.dependencies)({ key: 'left free', fence: first.fence }, late);
    expect(task.state).toBe('waiting');
    expect(messages).toEqual([]);
  });

  it('a message that names no grant is the last too', async () => {
    const seconds = Math.ceil(clock.now() / 1000);
    await putRaw({ key: { S: 'shared' }, lease_version: { S: 'v' }, lease_expiry: { N: `${seconds + 3600}` } });
    await park({ key: 'shared' });
    messages.length = 0;
    await repairKey('shared');
    expect(messages).toEqual([]);
  });
});

describe('a deployment that sends no messages', () => {
  it('a deployment that sends no messages parks tasks, and grants callers the lease in front of them', async () => {
    const quiet = { ...world.dependencies, repairLater: undefined };
    const key = 'without messages';
    const { leaseId } = await acquire({ key });
    await joinLine(key, 'r');
    const task = steps.newTask();
    clock.advance(1);
    const asked = acquireInput().parse({ key, holder: 'task', taskToken: task.token });
    expect(await acquireOrParkLease(quiet)(asked, call())).toMatchObject({ parked: true });
    expect(await releaseLease(quiet)({ key, leaseId }, call())).toEqual({ key, released: true });
    expect(await rawItem(key)).toMatchObject({ holder: { S: 'caller' }, claim_ttl_ms: { N: '10000' } });
  });

  it('a deployment that sends no messages grants a caller a permit in front of a task', async () => {
    const [key, now] = ['a pool without messages', clock.now()];
    const asked = { holder: { S: 'h' }, ttl_seconds: { N: '60' }, weight: { N: '1' }, limit: { N: '1' } };
    const times = { parked_at: { N: String(now) }, deadline: { N: String(now + 60_000) } };
    const rows = [{ keep_until: { N: String(now + 65_000) } }, { task_token: { S: steps.newTask().token } }];
    for (const [at, row] of rows.entries()) {
      const ticket = { S: newTicket(now + at, `ticket-${at}`) };
      await world.putTicket({ key: { S: key }, ticket, request_id: { S: `r${at}` }, ...asked, ...times, ...row });
    }
    const quiet = { ...world.dependencies, repairLater: undefined };
    expect(await repairLines(quiet)({ key }, call())).toMatchObject({ granted: 1 });
    expect(await world.rows(key)).toHaveLength(2);
  });
});
