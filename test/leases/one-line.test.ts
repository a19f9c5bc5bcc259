import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { deleteWaiter } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// Rules of a call in line that leases share with permits (docs/protocols/queue.md#wait).

const timeline = new Timeline();
const world = await queueWorld({ clock: timeline });
const { acquire, release, rows, rawItem, requests, steps, dependencies, dynamodb, table, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

/** With so little time left, a release leaves the line to others: the lease is free, and keeps its mark. */
const late = call({ timeLeftMs: () => 1999 });

const waits = (key: string, more: object = {}) => acquire({ key, ttlSeconds: 10, waitSeconds: 20, ...more });
const onlyTicket = async (key: string) => (await rows(key))[0]?.ticket?.S ?? '';

it('a call whose waiter is gone does not put the mark back', async () => {
  const key = 'no mark';
  await acquire({ key, ttlSeconds: 60 });
  const [refused] = await timeline.play(
    () => failure(waits(key, { waitSeconds: 2 })),
    () =>
      timeline.later(500, async () => {
        await deleteWaiter(dependencies, { key, ticket: await onlyTicket(key) }, call());
        const update = { TableName: table, Key: { key: { S: key } }, UpdateExpression: 'REMOVE waiters' };
        await dynamodb.send(new UpdateItemCommand(update));
      }),
  );
  expect(refused).toMatchObject({ code: 'LeaseHeld' });
  expect(refused?.context).not.toHaveProperty('place');
  expect(await rawItem(key)).not.toHaveProperty('waiters');
});

it('a call that was paused for longer than the grant window reads its waiter before it hands off', async () => {
  const key = 'stood still';
  const first = await acquire({ key, ttlSeconds: 60 });
  const granted = await timeline.play(
    () => waits(key),
    () =>
      timeline.later(500, async () => {
        requests.faultsOf.GetItem = [
          async (send) => {
            await precededBy(() => release(first, late))(async () => undefined);
            const answer = await send();
            timeline.advance(2001);
            requests.sent.length = 0;
            return answer;
          },
        ];
      }),
  );
  expect(granted[0]).toMatchObject({ holder: 'tester' });
  expect(requests.sent.slice(0, 2)).toEqual(['GetItem', 'Query']);
});

it('a claim is tried again if duplicate calls change the grant first, as long as the request has the grant', async () => {
  const key = 'duplicates first';
  const first = await acquire({ key });
  const asked = { key, holder: 'c', requestId: 'r', ttlSeconds: 10 };
  let looks = 0;
  const [grant] = await timeline.play(
    () => waits(key, asked),
    () =>
      timeline.later(500, async () => {
        await release(first);
        const duplicate = precededBy(() => acquire(asked));
        requests.faultsOf.UpdateItem = Array.from({ length: 8 }, () => duplicate);
        looks = requests.sent.length;
      }),
  );
  expect(grant).toMatchObject({ holder: 'c', repeated: true });
  // One look finds the grant. All other reads are of rows.
  expect(requests.sent.slice(looks).filter((name) => name === 'GetItem').length).toBeLessThanOrEqual(1);
});

it('a plain call is answered with its grant even if duplicate calls change the grant first', async () => {
  const key = 'plain duplicates';
  const first = await acquire({ key });
  const asked = { key, holder: 'c', requestId: 'r', ttlSeconds: 10 };
  await timeline.play(
    () => waits(key, asked),
    () => timeline.later(500, () => release(first)),
  );
  const duplicate = precededBy(() => acquire(asked));
  requests.faultsOf.UpdateItem = Array.from({ length: 8 }, () => duplicate);
  expect(await acquire(asked)).toMatchObject({ holder: 'c', repeated: true });
});
