import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Call } from '../../shared/aws/call.ts';
import type { RepairMessage } from '../../shared/leases/dependencies.ts';
import { queueWorld } from '../support/queue.ts';

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
  it('gets the lease by a message a second after it can be had, and not by the schedule', async () => {
    const { fence } = await acquire({ key: 'dead', ttlSeconds: 30 });
    const { task } = await park({ key: 'dead' });
    expect(messages).toEqual([{ key: 'dead', fence, delaySeconds: 32 }]); // what is left of the ttl and the margin, to whole seconds, and one more
    await deliver();
    expect(task.output).toMatchObject({ previous: { fence, ended: 'expired' } });
    expect(messages).toEqual([]);
  });

  it('has its message sent by the first in line alone', async () => {
    await acquire({ key: 'one message', ttlSeconds: 30 });
    await park({ key: 'one message' });
    await park({ key: 'one message' });
    expect(messages).toHaveLength(1);
  });

  it('which extended its lease before: each message sends the next one, not before ten seconds', async () => {
    const first = await acquire({ key: 'extended', ttlSeconds: 4 });
    const { task } = await park({ key: 'extended' });
    for (const _ of ['once', 'again']) {
      clock.advance(3000);
      await heartbeat(first);
      const [message] = messages.splice(0);
      expect(await repairKey('extended', message?.fence)).toMatchObject({ granted: 0 });
      expect(messages).toEqual([{ key: 'extended', fence: first.fence, delaySeconds: 10 }]);
    }
    await deliver();
    expect(task.output).toMatchObject({ previous: { fence: first.fence, ended: 'expired' } });
  });

  it('and which holds for longer than a message waits', async () => {
    const first = await acquire({ key: 'long', ttlSeconds: 1200 });
    const { task } = await park({ key: 'long' });
    expect(messages).toMatchObject([{ delaySeconds: 900 }]);
    await deliver();
    expect(messages).toEqual([{ key: 'long', fence: first.fence, delaySeconds: 302 }]);
    await deliver();
    expect(task.state).toBe('succeeded');
  });

  it('and which never expires: there is no message', async () => {
    await putRaw({ key: { S: 'for ever' }, lease_version: { S: 'v' } });
    await park({ key: 'for ever' });
    expect(messages).toEqual([]);
  });
});

describe('a task that is granted the lease and dies', () => {
  it('in front of another: the release that granted it has sent the message', async () => {
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

  it('alone: there is no message', async () => {
    const first = await acquire({ key: 'alone' });
    await park({ key: 'alone' });
    messages.length = 0;
    await release(first);
    expect(messages).toEqual([]);
  });
});

describe('a caller that is granted the lease', () => {
  it('with no task behind it: there is no message', async () => {
    const first = await acquire({ key: 'a caller alone' });
    await joinLine('a caller alone', 'r');
    await release(first);
    expect(await rawItem('a caller alone')).toHaveProperty('claim_ttl_ms');
    expect(messages).toEqual([]);
  });

  it('in front of a task: the release that granted it has sent the message', async () => {
    const first = await acquire({ key: 'a caller in front' });
    await joinLine('a caller in front', 'r');
    await park({ key: 'a caller in front' });
    messages.length = 0;
    await release(first);
    expect(messages).toMatchObject([{ key: 'a caller in front', delaySeconds: 4 }]); // the window, the margin, and one more
  });
});

describe('a message', () => {
  it('about a lease that has expired with nobody in line writes nothing', async () => {
    const { fence } = await acquire({ key: 'nobody', ttlSeconds: 2 });
    clock.advance(3000);
    const before = await rawItem('nobody');
    await repairKey('nobody', fence);
    expect(await rawItem('nobody')).toEqual(before);
  });

  it('about a grant that has ended reads the record, does nothing, and sends none', async () => {
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

  it('hands on what can be had, whoever had it last', async () => {
    const first = await acquire({ key: 'late', ttlSeconds: 10 });
    const [second, third] = [await park({ key: 'late', ttlSeconds: 10 }), await park({ key: 'late' })];
    await release(first);
    clock.advance(10_000 + MARGIN_MS + 1);
    await repairKey('late', first.fence);
    expect(third.task.output).toMatchObject({ previous: { fence: grantOf(second.task).fence } });
  });

  it('is the last one where no task waits any more', async () => {
    const { fence } = await acquire({ key: 'left', ttlSeconds: 60 });
    const { ticket } = await park({ key: 'left' });
    await cancel('left', ticket);
    messages.length = 0;
    await repairKey('left', fence);
    expect(messages).toEqual([]);
    expect(await rawItem('left')).toHaveProperty('lease_version');
  });
});
