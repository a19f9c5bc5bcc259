import { afterAll, beforeEach, expect, it } from 'vitest';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { DEFAULT_QUOTAS } from '../../shared/locks/dependencies.ts';
import { call } from '../support/emulators/aws.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// Calls that meet another call of their request, a withdrawal, or the next holder of a key. See also test/line/requests.ts.

const timeline = new Timeline();
const { later } = timeline;
const world = await permitLineWorld({ clock: timeline });
const { acquire, release, heartbeat, withdraw, park, read } = world;
const { rows, rawItem, putRaw, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

type Grant = Awaited<ReturnType<typeof acquire>>;
type Send = () => Promise<unknown>;

const own = { holder: 'R', requestId: 'r', limit: 1, ttlSeconds: 10 };

/** A call that joins the line, and then exits. */
const exitInLine = async (key: string, more: object = {}) => {
  await timeline.play(() =>
    exitingAfter(3, () => acquire({ key, holder: 'dead', limit: 1, waitSeconds: 20, ...more })),
  );
  timeline.advance(1); // so that the next ticket is later
};

/** A heartbeat, which writes a new version. */
const beat = ({ key, leaseId }: Grant) => {
  timeline.advance(1);
  return heartbeat({ key, leaseId });
};

it.each([
  ['twelve', 12, 'repeated', 26],
  ['a hundred', 100, 'LeaseHeld', 40], // it gives up after twenty tries
])('a call whose permit others change %s times receives it or LeaseHeld', async (_, changes, outcome, writes) => {
  const key = `changed ${changes}`;
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  await exitInLine(key, own);
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
});

it('a call whose permit others keep changing leaves at its deadline', async () => {
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

it('a call whose request has a permit of another weight is refused', async () => {
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
const QUOTA = 2;
const withQuota = acquireGrant({
  ...world.dependencies,
  quotas: { ...DEFAULT_QUOTAS, waitersPerKey: QUOTA },
});

it('a call has the permit that its request receives before it joins', async () => {
  const key = 'granted before';
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  await exitInLine(key, { holder: 'b', requestId: 'r' });
  for (let more = 0; more < QUOTA; more++) await park({ key, holder: `t${more}`, limit: 1 });
  requests.faultsOf.UpdateItem = ['none', precededBy(() => release(first))];
  const [granted] = await timeline.play(() => withQuota(asks({ key, holder: 'b', requestId: 'r' }), call()));
  expect(granted).toMatchObject({ holder: 'b', repeated: false, used: 1 });
  expect(await rows(key)).toHaveLength(QUOTA);
});

let keys = 0;
const newKey = () => `own key ${keys++}`;
const first = () => acquire({ key: newKey(), holder: 'first' });
const ofB = (key: string) => ({ key, holder: 'b', requestId: 'r' });
const lost = (reason: string) => ({ code: 'LeaseLost', context: { reason } });

/** The holder releases the key, and another caller takes it. A third-party client has removed the mark, so the release does not read the line. */
async function passedOn(key: string) {
  const { mark: _, ...unmarked } = (await rawItem(key)) ?? {};
  await putRaw(unmarked);
  const { m, i } = unmarked.h?.M ?? {};
  await release({ key, leaseId: `e.${m?.S}.${i?.S}` });
  return acquire({ key, holder: 'next' });
}

it('a withdrawal hands off a lease that is extended in that moment', async () => {
  const { key, leaseId } = await acquire(ofB(newKey()));
  const { task } = await park({ key, holder: 'task' });
  timeline.advance(1000);
  requests.faultsOf.UpdateItem = ['none', precededBy(() => heartbeat({ key, leaseId }))]; // it meets the mark
  expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true });
  expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'b', ended: 'released' } });
});

it('a withdrawal of a call without a grant is not remembered', async () => {
  const held = await first();
  const { key } = held;
  const [refused] = await timeline.play(
    () => failure(acquire({ ...ofB(key), waitSeconds: 20 })),
    () => later(500, () => withdraw(ofB(key))),
  );
  expect(refused).toMatchObject(lost('cancelled'));
  await release(held);
  expect(await acquire(ofB(key))).toMatchObject({ holder: 'b', repeated: false });
  expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true }); // the record remembers the grant that the request had
  expect((await failure(acquire(ofB(key)))).code).toBe('LeaseLost');
});

/** A task of the request waits behind a holder. */
async function withTask(more: object = {}) {
  const held = await first();
  const { task } = await park({ ...ofB(held.key), ...more });
  return { key: held.key, held, task };
}

it('a call does not receive a grant that passes on during its claim', async () => {
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

it("a call does not receive the next holder's grant by an old read", async () => {
  const old = await acquire(ofB(newKey()));
  const { key } = old;
  const seen = await rawItem(key);
  await release(old);
  const next = await acquire({ key, holder: 'next' });
  let polls = 0;
  type Send = (args: { input: { ConsistentRead?: boolean } }) => Promise<unknown>;
  const anOldRead =
    (send: Send, context: { commandName?: string }): Send =>
    async (args) => {
      const isPoll = context.commandName === 'GetItemCommand' && !args.input.ConsistentRead;
      return isPoll && polls++ === 0 ? { output: { Item: seen, $metadata: {} }, response: {} } : send(args);
    };
  world.dynamodb.middlewareStack.add(anOldRead as never, { step: 'initialize', name: 'anOldRead' });
  const [refused] = await timeline.play(() => later(1, () => failure(acquire({ ...ofB(key), waitSeconds: 1 }))));
  world.dynamodb.middlewareStack.remove('anOldRead');
  expect(polls).toBeGreaterThan(0);
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next.fence } });
});
