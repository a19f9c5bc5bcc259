import { expect, it } from 'vitest';
import { flagRow } from '../../shared/locks/line/waiting-calls.ts';
import { call } from '../support/emulators/aws.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { callInHurry, type LineWorld } from './world.ts';

/** A caller withdraws its request: the call that waits ends, and so does its grant. */
export async function withdrawals(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, withdraw, cancel, repair, grantOf, see, rows, isMarked, as } = world;
  const { dependencies, requests, steps, heldKey, newKey, timeline } = world;
  const { now, later } = timeline;
  const owner = as('arn:aws:iam::1:user/owner');
  const cancelled = { code: 'LeaseLost', context: { reason: 'cancelled' } };
  const isDone = { cancelled: true };
  const unknown = { cancelled: false, reason: 'unknown' };
  const ofB = (key: string) => ({ key, holder: 'b', requestId: `of ${key}` });
  /** A call of the owner that joins the line, and then exits. */
  const exitInLine = async (asked: object) => {
    await timeline.play(() => exitingAfter(3, () => acquire({ waitSeconds: 20, ...asked }, owner)));
    timeline.advance(1); // so that the next ticket is later
  };
  /** A held lock with a call of the owner, which has exited, and a task behind it. */
  async function inLine() {
    const { key, first } = await heldKey({ holder: 'first' });
    await exitInLine(ofB(key));
    const { task } = await park({ key, holder: 'task' });
    return { key, first, task };
  }

  it('a withdrawal ends the call that waits', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const [refused, withdrawn] = await timeline.play(
      async () => ({ ...(await failure(acquire({ ...ofB(key), waitSeconds: 20 }, owner))), at: now() }),
      () => later(3000, async () => ({ ...(await withdraw(ofB(key), owner)), at: now() })),
    );
    expect(withdrawn).toMatchObject({ key, requestId: `of ${key}`, cancelled: true });
    expect(refused).toMatchObject(cancelled);
    expect(refused.at - withdrawn.at).toBeLessThanOrEqual(1250);
    expect(await rows(key)).toEqual([]);
  });

  it('a withdrawal ends a grant, and the request is refused from then on', async () => {
    const key = newKey();
    await acquire(ofB(key), owner);
    expect(await withdraw(ofB(key), owner)).toMatchObject(isDone);
    expect((await see(key)).holder).toBeUndefined();
    expect((await failure(acquire(ofB(key), owner))).code).toBe('LeaseLost');
    expect(await withdraw(ofB(key), owner)).toMatchObject(unknown);
  });

  it.each(['none', 'lostReply'] as const)(
    'a withdrawal ends a claimed grant, and hands off (fault: %s)',
    async (fault) => {
      const { key, first, task } = await inLine();
      await release(first);
      await acquire(ofB(key), owner);
      expect(task.state).toBe('waiting');
      requests.faultsOf.UpdateItem = ['none', fault];
      expect(await withdraw(ofB(key), owner)).toMatchObject(isDone);
      expect(grantOf(task)).toMatchObject({ holder: 'task' });
    },
  );

  it('a withdrawal ends a task that was not notified', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    const asked = { key, holder: 'task', requestId: 'not notified' };
    const { task } = await park(asked);
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await release(first);
    expect([task.state, await see(key)]).toMatchObject(['waiting', { holder: 'task' }]);
    steps.faults = { SendTaskFailure: ['refused', 'refused', 'refused'] };
    expect((await failure(withdraw(asked))).code).toBe('Unavailable');
    steps.faults = {};
    expect(await withdraw(asked)).toMatchObject(isDone);
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { key, reason: 'cancelled' } });
    expect([await rows(key), await see(key)]).toMatchObject([[], { holder: undefined }]);
  });

  it('a withdrawal ends only requests of its own caller and holder', async () => {
    const key = newKey();
    const grant = await acquire(ofB(key), owner);
    await exitInLine({ key, holder: 'd', requestId: 'waits' });
    const { requestId } = ofB(key);
    for (const [more, who] of [
      [{}, as('arn:aws:iam::1:user/other')],
      [{}, call()],
      [{ holder: 'c' }, owner],
      [{ requestId: 'another' }, owner],
      [{ holder: 'd', requestId: 'waits' }, as('another')],
    ] as const)
      expect(await withdraw({ key, holder: 'b', requestId, ...more }, who)).toMatchObject(unknown);
    expect((await rows(key))[0]).not.toHaveProperty('cancelled_at');
    expect(await release(grant, owner)).toMatchObject({ released: true });
  });

  it.each(['none', 'lostReply'] as const)(
    'a claim finds a withdrawal that lands during the claim (fault: %s)',
    async (fault) => {
      const { key, first } = await heldKey({ holder: 'first' });
      const [, refused] = await timeline.play(
        () =>
          later(100, async () => {
            await release(first);
            // The flag lands between the claim and the deletion of the ticket, and the claim after the withdrawal has read the record.
            requests.faultsOf.DeleteItem = [
              async (send) => {
                const [row] = await rows(key);
                const name = { key: row?.key?.S ?? '', ticket: row?.ticket?.S ?? '' };
                await flagRow(dependencies, { rowKey: name }, call());
                requests.faultsOf.UpdateItem = [fault]; // the end of the grant
                return send();
              },
            ];
          }),
        () => failure(acquire({ ...ofB(key), waitSeconds: 20 })),
        () => later(10, () => park({ key, holder: 'next' })),
      );
      expect(refused).toMatchObject(cancelled);
      expect(await see(key)).toMatchObject({ holder: 'next' });
    },
  );

  it('a call that has left receives LeaseLost after its withdrawal', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    const asked = { ...ofB(key), waitSeconds: 1 };
    const [refused] = await timeline.play(() => failure(acquire(asked, owner)));
    const { ticket } = refused.context.retryWith as { ticket: string };
    await withdraw(ofB(key), owner);
    const [again] = await timeline.play(() => failure(acquire({ ...asked, ticket }, owner)));
    expect(again).toMatchObject(cancelled);
    await release(first);
    expect(await failure(acquire({ ...asked, ticket }, owner))).toMatchObject(cancelled);
    expect((await see(key)).holder).toBeUndefined();
  });

  it('a withdrawal that exits after any of its writes is done by the next', async () => {
    for (let writes = 1, survived = false; !survived; writes++) {
      const { key, first, task } = await inLine();
      await release(first);
      ({ survived } = await exitingAfter(writes, () => withdraw(ofB(key), owner)));
      requests.faultsOf.UpdateItem = ['lostReply'];
      await withdraw(ofB(key), owner);
      requests.faultsOf = {};
      timeline.advance(11_000);
      await repair(key);
      expect(grantOf(task)).toMatchObject({ holder: 'task' });
      expect(await see(key)).toMatchObject({ holder: 'task' });
    }
  });

  const ticketOf = async (key: string) => (await rows(key))[0]?.ticket?.S ?? '';

  it('a withdrawal by ticket ends the grant that the call has received since', async () => {
    const { key, first, task } = await inLine();
    const ticket = await ticketOf(key);
    await release(first);
    expect(await withdraw({ ...ofB(key), ticket }, owner)).toMatchObject(isDone);
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });

  it('a withdrawal by ticket changes only the waiter of its own request', async () => {
    const { key, task } = await inLine();
    const own = { ...ofB(key), ticket: await ticketOf(key) };
    for (const more of [{ holder: 'another' }, { requestId: 'another' }])
      expect(await withdraw({ ...own, ...more }, owner)).toMatchObject(unknown);
    expect(await withdraw(own, as('arn:aws:iam::1:user/other'))).toMatchObject({ cancelled: false });
    const parked = await park({ key, holder: 'task', requestId: 't' });
    const ofTask = { key, holder: 'task', requestId: 't', ticket: parked.ticket };
    expect(await withdraw(ofTask)).toMatchObject({ cancelled: false });
    expect([task.state, parked.task.state]).toEqual(['waiting', 'waiting']);
    for (const row of await rows(key)) expect(row).not.toHaveProperty('cancelled_at');
  });

  it('a withdrawal by ticket finds the waiter with which the call has joined again', async () => {
    const { key } = await inLine();
    const ticket = `${(await ticketOf(key)).slice(0, -4)}gone`;
    expect(await withdraw({ ...ofB(key), ticket }, owner)).toMatchObject(isDone);
    expect((await rows(key))[0]).toHaveProperty('cancelled_at');
  });

  it('a free lock goes to the task behind a call that withdraws', async () => {
    const { key, first, task } = await inLine();
    await release(first, callInHurry);
    expect(task.state).toBe('waiting');
    expect(await withdraw(ofB(key), owner)).toMatchObject(isDone);
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });

  it.each(['task', 'call'])('a free lock goes to the task behind a %s that an operator cancels', async (kind) => {
    const { key, first } = await heldKey({ holder: 'first' });
    if (kind === 'call') await exitInLine(ofB(key));
    else await park({ key, holder: 'cancelled' });
    timeline.advance(1); // so that the next ticket is later
    const [row] = await rows(key);
    const { task } = await park({ key, holder: 'task' });
    await release(first, callInHurry);
    expect(await cancel(key, row?.ticket?.S ?? '')).toMatchObject(isDone);
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });

  it('a free lock loses its mark if the only call in line withdraws', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    await exitInLine(ofB(key));
    await release(first, callInHurry);
    expect(await isMarked(key)).toBe(true);
    await withdraw(ofB(key), owner);
    expect(await isMarked(key)).toBe(false);
    expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain' });
  });
}
