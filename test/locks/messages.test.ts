import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, expect, it } from 'vitest';
import type { Call } from '../../shared/aws/call.ts';
import { acquire as acquireOrPark } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { releaseGrant } from '../../shared/locks/calls/release.ts';
import { repairLines } from '../../shared/locks/calls/repair.ts';
import type { RepairMessage } from '../../shared/locks/dependencies.ts';
import { call } from '../support/emulators/aws.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { aFew } from '../support/time/rounds.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// Messages that look at a key again, because a task waits behind holders that may exit.

const messages: RepairMessage[] = [];
/** Sends a message if the call has time left, as the client of SQS does. */
const repairLater = async (message: RepairMessage, { timeLeftMs }: Call) => {
  if (timeLeftMs() > 0) messages.push(message);
};
const world = await permitLineWorld({ repairLater });
const { acquire, heartbeat, release, park, cancel, joinLine, repairKey, dynamodb } = world;
const { grantOf, clock, requests, steps, dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  messages.length = 0;
  steps.faults = {};
});

/** Lets the delay of the only message pass, and delivers it. */
const receive = async () => {
  const [message, ...others] = messages.splice(0);
  if (!message || others.length > 0) throw new Error(`expected one message, not ${JSON.stringify([message, others])}`);
  clock.advance(message.delaySeconds * 1000);
  return repairKey(message.key);
};

it('each message about an extended grant sends the next, not before ten seconds', async () => {
  const first = await acquire({ key: 'extended', ttlSeconds: 4 });
  const { task } = await park({ key: 'extended' });
  for (const _ of ['once', 'again']) {
    for (const beatMs of [3000, 3000, 3000, 1000]) {
      clock.advance(beatMs);
      await heartbeat(first);
    }
    messages.length = 0;
    expect(await repairKey('extended')).toMatchObject({ granted: 0 });
    expect(messages).toEqual([{ key: 'extended', delaySeconds: 10 }]);
  }
  await receive();
  expect(task.output).toMatchObject({ previous: { fence: first.fence, ended: 'expired' } });
});

it('a message that waits for less time than the grant lasts sends another', async () => {
  await acquire({ key: 'long', ttlSeconds: 1200 });
  const { task } = await park({ key: 'long' });
  expect(messages).toMatchObject([{ delaySeconds: 900 }]);
  await receive();
  expect(messages).toEqual([{ key: 'long', delaySeconds: 302 }]);
  await receive();
  expect(task.state).toBe('succeeded');
});

it('a task that parks after a quick release sends the message', async () => {
  const first = await acquire({ key: 'after a quick release' });
  const [holder] = [await park({ key: first.key }), await park({ key: first.key, ttlSeconds: 20 })];
  await release(first);
  clock.advance(1000);
  expect(grantOf(holder.task).leaseId).toContain('+');
  await release(grantOf(holder.task));
  messages.length = 0;
  await park({ key: first.key });
  expect(messages).toEqual([{ key: first.key, delaySeconds: 22 }]);
});

it('the hand-off sends the message of a task that parks during it', async () => {
  const first = await acquire({ key: 'in that moment' });
  await park({ key: first.key, ttlSeconds: 20 });
  requests.faultsOf.UpdateItem = [
    'none', // the release loses by the mark
    world.precededBy(async () => {
      await park({ key: first.key });
      messages.length = 0;
    }),
  ];
  await release(first);
  expect(messages).toMatchObject([{ delaySeconds: 22 }]);
});

it('no message is sent for a third-party client, or without a waiting task', async () => {
  const expiry = { N: String(Math.ceil(clock.now() / 1000) + 3600) };
  for (const [key, more] of Object.entries({ 'without end': {}, 'with an end': { lease_expiry: expiry } })) {
    const Item = { key: { S: key }, lease_version: { S: 'v' }, ...more };
    await dynamodb.send(new PutItemCommand({ TableName: dependencies.table, Item }));
    await park({ key });
    await repairKey(key);
  }
  const [beforeTask, beforeCall] = [await acquire({ key: 'alone' }), await acquire({ key: 'a caller alone' })];
  await park({ key: 'alone' });
  await joinLine('a caller alone', 'r');
  expect(messages.splice(0)).toMatchObject([{ key: 'alone' }]);
  for (const first of [beforeTask, beforeCall]) await release(first);
  expect(messages).toEqual([]);
});

it('a release sends one message for a task behind a caller', async () => {
  const key = 'beside a task';
  const first = await acquire({ key, limit: 2, weight: 2 });
  await exitingAfter(3, () => acquire({ key, holder: 'dead', limit: 2, waitSeconds: 20 }));
  const { task } = await park({ key, holder: 'b', limit: 2 });
  await park({ key, holder: 'c', limit: 2 });
  messages.length = 0;
  await release(first);
  expect(task.state).toBe('succeeded');
  expect(messages).toEqual([{ key, delaySeconds: 4 }]);
});

it.each(aFew(1, [0, 3500]))('two copies, %i ms apart, do not grow in number', async (laterMs) => {
  const key = `twice, ${laterMs} ms apart`;
  const first = await acquire({ key, ttlSeconds: 4 });
  const { task } = await park({ key });
  const times = () => messages.splice(0).map(({ delaySeconds }) => clock.now() + delaySeconds * 1000);
  let underWay = times();
  let most = 0;
  for (let delivered = 0; delivered < 12; delivered++) {
    const [at, ...others] = underWay.toSorted((one, other) => one - other);
    if (at === undefined) break;
    while (clock.now() < at) {
      clock.advance(Math.min(2000, at - clock.now()));
      await heartbeat(first);
    }
    underWay = others;
    for (const copy of [1, 2]) {
      if (copy === 2) clock.advance(laterMs);
      await heartbeat(first);
      await repairKey(key);
      underWay.push(...times());
    }
    most = Math.max(most, underWay.length);
  }
  expect(most).toBe(1);
  clock.advance(20_000);
  await repairKey(key);
  expect(task.state).toBe('succeeded');
});

it('the note of the next message does not count for the next grant', async () => {
  const first = await acquire({ key: 'next grant', ttlSeconds: 600 });
  const second = await park({ key: 'next grant', ttlSeconds: 4 });
  await park({ key: 'next grant' });
  messages.length = 0;
  clock.advance(1000);
  await repairKey('next grant'); // sends the next one for the end of the ten minutes
  expect(messages).toHaveLength(1);
  await release(first);
  messages.length = 0;
  clock.advance(3000);
  await heartbeat(grantOf(second.task));
  await repairKey('next grant');
  expect(messages).toEqual([{ key: 'next grant', delaySeconds: 10 }]);
});

it('a message is sent once if the answer to its note was lost', async () => {
  await acquire({ key: 'note', ttlSeconds: 30 });
  await park({ key: 'note' });
  messages.length = 0;
  requests.faultsOf.UpdateItem = ['lostReply'];
  for (const _ of ['first', 'copy']) await repairKey('note');
  expect(messages).toHaveLength(1);
});

it('a message is the last one if no task waits', async () => {
  await acquire({ key: 'left', ttlSeconds: 60 });
  await cancel('left', (await park({ key: 'left' })).ticket);
  await acquire({ key: 'a caller waits', ttlSeconds: 60 });
  await joinLine('a caller waits', 'r');
  messages.length = 0;
  for (const key of ['left', 'a caller waits']) await repairKey(key);
  expect(messages).toEqual([]);
});

it('a message is the last if only the ticket of the holder is left', async () => {
  const first = await acquire({ key: 'its own' });
  await park({ key: 'its own' });
  messages.length = 0;
  steps.faults.SendTaskSuccess = ['refused'];
  await release(first);
  expect(await world.rows('its own')).toHaveLength(1);
  await repairKey('its own');
  expect(messages).toEqual([]);
});

it('a message about a free key without time to hand off is the last', async () => {
  const first = await acquire({ key: 'left free' });
  const { task } = await park({ key: 'left free' });
  await release(first, call({ timeLeftMs: () => 1999 }));
  messages.length = 0;
  const left = [5000, 5000]; // the call asks at its beginning and before its key, and then has too little
  const late = call({ timeLeftMs: () => left.shift() ?? 1999 });
  await repairLines(dependencies)({ key: 'left free' }, late);
  expect(task.state).toBe('waiting');
  expect(messages).toEqual([]);
});

it('a deployment that sends no messages parks tasks, and serves callers in front', async () => {
  const quiet = { ...dependencies, repairLater: undefined };
  const key = 'without messages';
  const first = await acquire({ key });
  await joinLine(key, 'r');
  clock.advance(1);
  const asked = acquireInput().parse({ key, holder: 'task', taskToken: steps.newTask().token });
  expect(await acquireOrPark(quiet)(asked, call())).toMatchObject({ parked: true });
  expect(await releaseGrant(quiet)(first, call())).toEqual({ key, released: true });
  expect(await world.read(key)).toMatchObject({ holders: [{ holder: 'caller' }], waiting: 1 });
});
