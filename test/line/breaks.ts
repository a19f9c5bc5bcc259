import { beforeEach, expect, it } from 'vitest';
import { networkError } from '../support/faults/cuttable.ts';
import { failure } from '../support/worlds/leases.ts';
import type { Grant, LineWorld } from './world.ts';

const TTL_MS = 60_000;
const iso = (epochMs: number) => new Date(epochMs).toISOString();
const broken = { code: 'LeaseLost', context: { reason: 'broken' } };
const brokenTask = { error: 'LeaseLost', cause: { reason: 'broken' } };

/** An operator breaks a grant: at once, or with `wait` when its holder releases the grant or its ttl ends. */
export async function breaks(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, breakGrant, cancel, grantOf, see, rows, runRepair } = world;
  const { parkNext: park, exitInLine, precededBy, messages, requests, steps, newKey, timeline } = world;
  beforeEach(() => {
    timeline.advance(1000);
  });
  const ended = (grant: Grant) => ({ key: grant.key, broken: true, fence: grant.fence, holder: grant.holder });
  const marks = (grant: { key: string; fence: number }) => breakGrant({ ...grant, wait: true });
  const worker = (ttlSeconds = 60) => acquire({ key: newKey(), holder: 'worker', requestId: 'r', ttlSeconds });
  /** A grant that an operator has broken with `wait`. */
  async function ending() {
    const grant = await worker();
    timeline.advance(5000);
    expect(await marks(grant)).toMatchObject({ ended: false });
    return grant;
  }
  const beat = ({ key, leaseId }: Grant, more: object = {}) => heartbeat({ key, leaseId, ...more });
  /** The try takes effect, its answer is lost, and something happens before the next try. */
  const lostBefore = (what: () => Promise<unknown>) => async (send: () => Promise<unknown>) => {
    await send();
    await precededBy(what)(async () => {});
    throw networkError('ECONNRESET', 'read');
  };

  it('a break names when the former holder must stop, and its last heartbeat', async () => {
    const grant = await worker();
    timeline.advance(20_000);
    const { expiresAt: holderUntil } = (await beat(grant)) as object as Grant;
    const lastHeartbeatAt = iso(timeline.now());
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await breakGrant(grant)).toEqual({ ...ended(grant), ended: true, holderUntil, lastHeartbeatAt });
  });

  it('a break is reported to a holder whose lock two waiters have had since', async () => {
    const first = await acquire({ key: newKey(), holder: 'first', ttlSeconds: 2 });
    const { key } = first;
    const [one, two] = [await park({ key, holder: 'one' }), await park({ key, holder: 'two' })];
    await breakGrant(first);
    expect(await failure(beat(first))).toMatchObject(broken);
    await release(grantOf(one.task));
    expect(grantOf(two.task)).toMatchObject({ holder: 'two' });
    expect(await failure(beat(first))).toMatchObject(broken);
    expect(await release(first)).toEqual({ key, released: false, reason: 'broken' });
  });

  /** A grant whose only waiter has left the line. A lease still has its mark. */
  async function marked() {
    const grant = await worker();
    const { key } = grant;
    await park({ key, holder: 'leaves' });
    for (const { ticket } of await rows(key)) await cancel(key, ticket?.S ?? '');
    expect(await rows(key)).toEqual([]);
    return grant;
  }
  /** The write that ends the grant comes second. */
  const afterOther = (other: () => Promise<unknown>) => {
    requests.faultsOf.UpdateItem = [precededBy(other)];
  };

  it('a break after the release of the holder answers NotFound', async () => {
    const grant = await marked();
    afterOther(async () => expect(await release(grant)).toEqual({ key: grant.key, released: true }));
    expect(await failure(breakGrant(grant))).toMatchObject({ code: 'NotFound' });
  });

  it('a release after a break answers that the grant was broken', async () => {
    const grant = await marked();
    afterOther(async () => expect(await breakGrant(grant)).toMatchObject({ broken: true, ended: true }));
    expect(await release(grant)).toEqual({ key: grant.key, released: false, reason: 'broken' });
  });

  it('a break that waits fails the next heartbeat of the holder', async () => {
    const grant = await worker();
    const { key, expiresAt } = grant;
    timeline.advance(5000);
    const answer = await marks(grant);
    const terms = { ended: false, holderUntil: expiresAt, lastHeartbeatAt: null };
    expect(answer).toEqual({ ...ended(grant), ...terms });
    expect(await marks(grant)).toEqual(answer);
    for (const more of [{}, { ttlSeconds: 600 }]) expect(await failure(beat(grant, more))).toMatchObject(broken);
    expect(await see(key)).toMatchObject({ holder: 'worker', ending: true, expiresAt });
    expect(await failure(acquire({ key, holder: 'next' }))).toMatchObject({ code: 'LeaseHeld' });
  });

  it('a break that waits does not let a heartbeat revive an expired grant', async () => {
    const grant = await ending();
    timeline.advance(TTL_MS + 501);
    expect(await failure(beat(grant))).toMatchObject(broken);
    const next = await acquire({ key: grant.key, holder: 'next' });
    expect(next).toMatchObject({ previous: { fence: grant.fence, ended: 'expired' } });
  });

  it('a break that waits refuses repeats of the request of the holder', async () => {
    const { key, expiresAt } = await ending();
    const repeat = { key, holder: 'worker', requestId: 'r' };
    expect(await failure(acquire(repeat))).toMatchObject(broken);
    const { task, parked } = await park(repeat);
    expect([parked, task, await see(key)]).toMatchObject([false, brokenTask, { expiresAt }]);
    timeline.advance(TTL_MS + 501);
    expect(await failure(acquire(repeat))).toMatchObject(broken);
    const again = await park(repeat);
    expect([again.parked, again.task, await rows(key)]).toMatchObject([false, brokenTask, []]);
  });

  it('a break that waits refuses a duplicate call in line', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const asked = { key, holder: 'worker', requestId: 'r', ttlSeconds: 60, waitSeconds: 20 };
    const [, refused, grant] = await timeline.play(
      () => timeline.later(1000, () => release(first)),
      async () => {
        await marks(await acquire(asked));
        return failure(acquire(asked));
      },
      () => timeline.later(5000, () => see(key)),
    );
    expect(refused).toMatchObject(broken);
    expect(grant).toMatchObject({ holder: 'worker', ending: true });
  });

  it.each(['release', 'ttl'])('a break that waits leaves the lock to a task (end by %s)', async (how) => {
    const grant = await worker();
    const { task } = await park({ key: grant.key, holder: 'next' });
    await marks(grant);
    expect(task.state).toBe('waiting');
    if (how === 'release') expect(await release(grant)).toMatchObject({ released: true });
    timeline.advance(how === 'ttl' ? 62_000 : 0);
    await runRepair(messages[0]);
    expect(task.output).toMatchObject({ holder: 'next' });
    timeline.advance(1);
    expect(await beat(grantOf(task))).toMatchObject({ holder: 'next' });
    expect(await see(grant.key)).toMatchObject({ ending: false });
  });

  it('a break that waits ends an expired grant at once', async () => {
    const grant = await worker();
    timeline.advance(TTL_MS + 501);
    expect(await marks(grant)).toMatchObject({ ended: true, holder: 'worker', holderUntil: grant.expiresAt });
    expect(await see(grant.key)).toMatchObject({ holder: undefined });
  });

  it('a break that waits ends an unclaimed grant at once', async () => {
    const { key, ...first } = await worker();
    await exitInLine({ key, holder: 'caller' });
    const { task } = await park({ key, holder: 'next' });
    await release({ key, ...first });
    const { holder, fence = 0 } = await see(key);
    expect([holder, task.state]).toEqual(['caller', 'waiting']);
    expect(await marks({ key, fence })).toMatchObject({ ended: true, holder: 'caller', lastHeartbeatAt: null });
    expect(task.output).toMatchObject({ holder: 'next' });
  });

  it('a break that waits does not end a grant that a heartbeat revived', async () => {
    const grant = await worker();
    timeline.advance(TTL_MS + 501);
    requests.faultsOf.UpdateItem = [precededBy(() => beat(grant))];
    expect(await marks(grant)).toMatchObject({ ended: false });
    expect(await see(grant.key)).toMatchObject({ holder: 'worker', ending: true });
  });

  it('a break that waits refuses a heartbeat that lands after the mark', async () => {
    const grant = await worker();
    timeline.advance(5000);
    requests.faultsOf.UpdateItem = [precededBy(() => marks(grant))];
    expect(await failure(beat(grant))).toMatchObject(broken);
    expect(await see(grant.key)).toMatchObject({ expiresAt: grant.expiresAt });
  });

  it('a break that waits answers the same if its first answer is lost', async () => {
    const grant = await worker();
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await marks(grant)).toMatchObject({ ...ended(grant), ended: false, holderUntil: grant.expiresAt });
    await release(grant);
    expect(await failure(marks(grant))).toMatchObject({ code: 'NotFound' });
  });

  it('a break that waits has an unknown outcome if another has the lock since', async () => {
    const grant = await worker();
    const moveOn = async () => {
      await release(grant);
      timeline.advance(1);
      await acquire({ key: grant.key, holder: 'next' });
    };
    requests.faultsOf.UpdateItem = [lostBefore(moveOn)];
    expect(await failure(marks(grant))).toMatchObject({ code: 'OutcomeUnknown' });
  });

  /** A task that receives the lock from the line, and that no message has reached. */
  async function unnotified() {
    const first = await acquire({ key: newKey(), holder: 'first' });
    const { key } = first;
    const { task } = await park({ key, holder: 'task', requestId: 'r', ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    steps.faults = {};
    return { key, task, fence: (await see(key)).fence ?? 0 };
  }

  it('a break that waits ends the grant of a task that was never notified', async () => {
    const { task, ...grant } = await unnotified();
    const next = await park({ key: grant.key, holder: 'next' });
    steps.faults.SendTaskFailure = ['refused'];
    expect(await marks(grant)).toMatchObject({ broken: true, ended: false });
    expect(await marks(grant)).toMatchObject({ ended: true, holder: 'task' });
    expect([task, next.task.output]).toMatchObject([brokenTask, { holder: 'next' }]);
    expect(await rows(grant.key)).toEqual([]);
  });

  it('a break that waits keeps the grant of a notified task', async () => {
    const first = await worker();
    const { key } = first;
    const { task } = await park({ key, holder: 'task' });
    requests.faultsOf.DeleteItem = ['throttle', 'throttle', 'throttle'];
    await release(first);
    requests.faultsOf = {};
    expect([task.state, (await rows(key)).length]).toEqual(['succeeded', 1]);
    expect(await marks(grantOf(task))).toMatchObject({ ended: false });
    expect(await failure(beat(grantOf(task)))).toMatchObject(broken);
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });
}
