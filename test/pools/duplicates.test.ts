import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { failure } from '../support/leases.ts';
import { poolLineWorld } from '../support/pool-line.ts';
import { Timeline } from '../support/timeline.ts';

const timeline = new Timeline();
const { now, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, heartbeat, park, read, rows, repairLine, requests, steps, precededBy, grantOf } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

type Grant = Awaited<ReturnType<typeof acquire>>;
type Send = () => Promise<unknown>;

const own = { holder: 'R', requestId: 'r', limit: 1, ttlSeconds: 10 };

/** A place of the request, which has left the line with LeaseHeld, and which then waits for that long in the name of a dead call. */
async function placeOf(key: string, waitMs: number): Promise<string> {
  const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 1 })));
  const { ticket } = refused.context.retryWith as { ticket: string };
  await world.keepWaiting(key, ticket, now() + waitMs);
  return ticket;
}

/** A heartbeat, which writes a new version. */
const beat = ({ key, leaseId }: Grant) => {
  timeline.advance(1);
  return heartbeat({ key, leaseId });
};

describe('a call is answered with the permit that another call of the request gets meanwhile', () => {
  it('while the first one looks at the line, to which another comes', async () => {
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
    const [{ leaseId, fence } = {}] = duplicates;
    expect(answer).toMatchObject({ leaseId, fence, repeated: true });
    expect(await read(key)).toMatchObject({ used: 1, waiting: 1, holders: [{ holder: 'R' }] });
  });

  it('while the first one looks at the line, in which the request has a place', async () => {
    const key = 'claimed by another';
    await acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 3 });
    await placeOf(key, 60_000);
    await park({ key, holder: 'behind', limit: 1 });
    timeline.advance(8000);
    const duplicates: Grant[] = [];
    requests.faultsOf.Query = [precededBy(async () => duplicates.push(await acquire({ key, ...own })))];
    const answer = await acquire({ key, ...own });
    const [{ leaseId, fence } = {}] = duplicates;
    expect(answer).toMatchObject({ leaseId, fence, repeated: true });
  });

  it.each(['empty', 'full'])('between its first write and its claim, with a line behind that is %s', async (line) => {
    const key = `claim ${line}`;
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    await placeOf(key, 60_000);
    if (line === 'full') await park({ key, holder: 'behind', limit: 1 });
    else await repairLine(key); // puts the mark back
    await release(first);
    const duplicates: Grant[] = [];
    requests.faultsOf.UpdateItem = ['none', precededBy(async () => duplicates.push(await acquire({ key, ...own })))];
    const answer = await acquire({ key, ...own });
    const [{ leaseId, fence } = {}] = duplicates;
    expect(duplicates).toMatchObject([{ repeated: false }]);
    expect(answer).toMatchObject({ leaseId, fence, repeated: true });
    expect(await rows(key)).toHaveLength(line === 'full' ? 1 : 0);
  });

  it.each([1, 12])('between its last look and its claim, where its time in line is over, %i times', async (changes) => {
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
    const [{ leaseId, fence } = {}] = duplicates;
    expect(duplicates).toMatchObject([{ repeated: false }]);
    expect(answer).toMatchObject({ leaseId, fence, repeated: true });
    expect(await rows(key)).toEqual([]);
  });
});

it.each([
  ['twelve', 12, 'repeated', 26],
  ['a hundred', 100, 'LeaseHeld', 40], // it gives up after twenty tries
])('a call before whose claim others change its permit %s times', async (_, changes, outcome, writes) => {
  const key = `changed ${changes}`;
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  await placeOf(key, 60_000);
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

it('a task whose request was granted a permit in line that no call has claimed has its whole ttl', async () => {
  const key = 'unclaimed';
  await acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 3 });
  await placeOf(key, 60_000);
  await park({ key, holder: 'behind', limit: 1 });
  timeline.advance(8000);
  await repairLine(key);
  timeline.advance(500);
  const { task, parked } = await park({ key, ...own });
  expect(parked).toBe(false);
  const told = grantOf(task);
  expect(told).toMatchObject({ remainingMs: 10_000, repeated: true, previous: { holder: 'dead' } });
  timeline.advance(1000);
  expect(await heartbeat(told)).toMatchObject({ remainingMs: 10_000 });
  expect(await acquire({ key, ...own, waitSeconds: 5 })).toMatchObject({ repeated: true, leaseId: told.leaseId });
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
