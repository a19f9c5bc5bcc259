import { afterAll, describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
const { now, sleep, later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, breakLease, withdraw, cancel, read, repair, executionEnded, steps } = world;
const { requests, rows, rawItem, messages, as, deleteRaw, park } = world;
afterAll(() => steps.stop());

const WINDOW_MS = 2000;
const MARGIN_MS = 500;

const fenceOf = async (key: string) => Number((await rawItem(key))?.fence?.N);

let keys = 0;
const newKey = () => `key ${keys++}`;
const waiting = (key: string, holder: string, more: object = {}) =>
  acquire({ key, holder, ttlSeconds: 10, waitSeconds: 20, ...more });
/** Acquires, holds for so long, and gives back. */
const turn = async (key: string, holder: string, holdMs: number, more: object = {}) => {
  const grant = await waiting(key, holder, more);
  const grantedAt = now();
  await sleep(holdMs);
  await release(grant);
  return { ...grant, grantedAt, releasedAt: now() };
};

describe('callers that wait', () => {
  it('are served in the order of their arrival', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const names = ['b', 'c', 'd', 'e', 'f'];
    const turns = names.map((name, index) => () => later(10 * index, () => turn(key, name, 20)));
    const [, ...served] = await timeline.play(() => later(1000, () => release(first)), ...turns);
    const order = (served as { holder: string; fence: number }[]).sort((a, b) => a.fence - b.fence);
    expect(order.map(({ holder }) => holder)).toEqual(names);
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('get the whole ttl from their claim on, and learn who had the lease before', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, grant] = await timeline.play(
      () => later(1000, () => release(first)),
      () => waiting(key, 'second'),
    );
    const releasedAt = Date.parse(grant.previous?.at ?? '');
    expect(grant.previous).toEqual({
      ...{ holder: 'first', fence: first.fence, ended: 'released' },
      at: new Date(releasedAt).toISOString(),
    });
    expect(grant).toMatchObject({ holder: 'second', remainingMs: 10_000, repeated: false });
    expect(grant.fence).toBeGreaterThan(first.fence);
    expect(now() - releasedAt).toBeLessThanOrEqual(35); // the next in line looks every 25 to 35 ms
    const record = await rawItem(key);
    expect(record).not.toHaveProperty('claim_ttl_ms');
    expect(record).toMatchObject({ expires_at: { N: `${now() + 10_000}` }, ttl_seconds: { N: '10' } });
    expect(record).toMatchObject({ lease_expiry: { N: `${Math.ceil(now() / 1000) + 10}` }, ttl_ms: { N: '10000' } });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('cost seven requests and the looks', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const before = requests.sent.length;
    const [, grant] = await timeline.play(
      () => later(300, () => release(first)),
      () => waiting(key, 'second'),
    );
    const sent = requests.sent.slice(before).filter((command) => command !== 'GetItem');
    expect(sent).toEqual([
      ...['PutItem', 'PutItem', 'UpdateItem'], // the first try, the ticket, the mark
      ...['UpdateItem', 'Query', 'UpdateItem'], // the release that loses, the line, the transfer
      ...['UpdateItem', 'DeleteItem'], // the claim, the ticket
    ]);
    await release(grant);
  });

  it('keep plain callers out, even of an expired lease', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 2 });
    const [grant, refused] = await timeline.play(
      () => waiting(key, 'second'),
      () => later(2000 + MARGIN_MS + 1, () => failure(acquire({ key, holder: 'plain' }))),
    );
    expect(grant).toMatchObject({ holder: 'second', previous: { holder: 'first', ended: 'expired' } });
    expect(refused.code).toBe('LeaseHeld');
  });

  it('take an abandoned lease over in the moment they may', async () => {
    const key = newKey();
    const { expiresAt } = await acquire({ key, holder: 'first', ttlSeconds: 5 });
    await timeline.play(() => waiting(key, 'second'));
    expect(now()).toBe(Date.parse(expiresAt) + MARGIN_MS + 1);
  });

  it('stand among tasks, in one line', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const task = steps.newTask();
    const [, b, , d] = await timeline.play(
      () => later(1000, () => release(first)),
      () => later(10, () => turn(key, 'b', 20)),
      () => later(20, () => park({ key, holder: 'c' }, task)),
      () => later(30, () => turn(key, 'd', 20)),
      () => later(1500, () => release(world.grantOf(task))),
    );
    expect(task.output).toMatchObject({ holder: 'c', previous: { holder: 'b', ended: 'released' } });
    expect(d).toMatchObject({ previous: { holder: 'c', ended: 'released' } });
    const fences = [b.fence, world.grantOf(task).fence, d.fence];
    expect(fences).toEqual(fences.toSorted((x, y) => x - y));
  });

  it('look when their turns may come, and not all the time', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const before = requests.sent.length;
    const turns = Array.from({ length: 24 }, (_, index) => () => later(index, () => turn(key, `c${index}`, 20)));
    const [, ...served] = await timeline.play(() => later(100, () => release(first)), ...turns);
    const grants = served as { fence: number; grantedAt: number; releasedAt: number }[];
    const sorted = grants.sort((a, b) => a.fence - b.fence);
    const gaps = sorted.slice(3).map(({ grantedAt }, index) => grantedAt - (sorted[index + 2]?.releasedAt ?? 0));
    const looks = requests.sent.slice(before).filter((command) => /Get/.test(command)).length;
    // Chance decides who comes first. If all of them looked as often as the next one does, each would look about eighty times.
    expect(looks / turns.length).toBeLessThan(20);
    // Less than the shortest pause of a call that knows nothing of its turn.
    expect(gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)]).toBeLessThan(150);
  });

  it('are listed beside tasks, without their request ids', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const since = now();
    const [, listed] = await timeline.play(
      () => failure(waiting(key, 'b', { waitSeconds: 2, requestId: 'secret' })),
      () =>
        later(100, async () => {
          await park({ key, holder: 'c', parkSeconds: 60 });
          return read({ key, waiters: true });
        }),
    );
    expect(listed).toMatchObject({
      holder: 'first',
      waiting: 2,
      waiters: [
        { kind: 'caller', holder: 'b', parkedAt: new Date(since).toISOString() },
        { kind: 'task', holder: 'c' },
      ],
    });
    expect(JSON.stringify(listed)).not.toContain('secret');
    expect(await read({ key, waiters: true })).toMatchObject({ waiting: 1, waiters: [{ holder: 'c' }] });
    await release(first);
  });

  it('are refused with QueueFull where a thousand wait', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first' });
    const { UpdateItemCommand, BatchWriteItemCommand } = await import('@aws-sdk/client-dynamodb');
    const row = (index: number) => ({
      ...{ key: { S: key }, ticket: { S: `${index}`.padStart(15, '0') }, holder: { S: 'h' }, request_id: { S: 'r' } },
      ...{ parked_at: { N: '1' }, deadline: { N: '9000000000000' }, keep_until: { N: '9000000000000' } },
    });
    for (let from = 0; from < 1001; from += 25) {
      const chunk = Array.from({ length: Math.min(25, 1001 - from) }, (_, index) => row(from + index));
      const puts = chunk.map((Item) => ({ PutRequest: { Item } }));
      const { waitersTable } = world.dependencies;
      await world.dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [waitersTable]: puts } }));
    }
    const mark = new UpdateItemCommand({
      TableName: world.table,
      Key: { key: { S: key } },
      UpdateExpression: 'SET waiters = :mark',
      ExpressionAttributeValues: { ':mark': { N: '1023' } },
    });
    await world.dynamodb.send(mark);
    const [refused] = await timeline.play(() => failure(waiting(key, 'late')));
    expect(refused).toMatchObject({ code: 'QueueFull', context: { key, retryAfterMs: 5000 } });
    expect((await rows(key)).filter(({ holder }) => holder?.S === 'late')).toEqual([]);
  });
});

describe('a caller that dies', () => {
  /** A call that dies when so many of its requests have landed: three put it in line. */
  const dying = (key: string, calls: number) =>
    dyingAfter(calls, () => waiting(key, 'dead')).then(async () => void (await sleep(60_000)));

  it('in line costs the next one the window, the margin, and a look', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [released, , grant] = await timeline.play(
      () => later(1000, async () => (await release(first)) && now()),
      () => dying(key, 3),
      () => later(10, async () => ({ ...(await waiting(key, 'next')), at: now() })),
    );
    expect(grant.at - released).toBeGreaterThanOrEqual(WINDOW_MS + MARGIN_MS);
    expect(grant.at - released).toBeLessThanOrEqual(WINDOW_MS + MARGIN_MS + 250);
    expect(grant.previous).toMatchObject({ holder: 'first', ended: 'released' }); // the dead one never had it
    expect(await rows(key)).toEqual([]);
  });

  it.each([1, 2, 3])('in line behind a holder that died costs no more, where %i of them died', async (dead) => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 2 });
    const canBeHadAt = now() + 2000 + MARGIN_MS;
    for (let at = 0; at < dead; at++) {
      await timeline.play(() => dyingAfter(3, () => waiting(key, `dead ${at}`)));
      timeline.advance(1); // a later ticket
    }
    const [grantedAt] = await timeline.play(async () => (await waiting(key, 'next')) && now());
    expect(grantedAt - canBeHadAt).toBeGreaterThanOrEqual(dead * (WINDOW_MS + MARGIN_MS));
    expect(grantedAt - canBeHadAt).toBeLessThanOrEqual(dead * (WINDOW_MS + MARGIN_MS + 250));
  });

  it('alone in line leaves no grant for its ttl: the next caller has it after the window', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, , grant] = await timeline.play(
      () => later(100, () => release(first)),
      () => dying(key, 3),
      () => later(100 + WINDOW_MS + MARGIN_MS + 1, () => acquire({ key, holder: 'plain' })),
    );
    expect(grant).toMatchObject({ holder: 'plain', repeated: false });
    expect(await rows(key)).toEqual([]); // its ticket went, so it is not granted a second time
  });

  it('in front of a task: a message has the queue looked at again', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    await timeline.play(() => dyingAfter(3, () => waiting(key, 'dead')));
    timeline.advance(1); // a later ticket
    const { task } = await park({ key, holder: 'task' });
    messages.length = 0;
    await release(first);
    expect(messages).toEqual([{ key, fence: await fenceOf(key), delaySeconds: 4 }]);
    expect(task.state).toBe('waiting');
    timeline.advance(4000);
    await world.repairKey(key);
    expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'first' } });
  });

  it('with its grant unclaimed: a task that parks then sends the message', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    for (const holder of ['dead', 'too']) await timeline.play(() => dyingAfter(3, () => waiting(key, holder)));
    await release(first);
    messages.length = 0;
    await park({ key, holder: 'task' });
    expect(messages).toEqual([{ key, fence: await fenceOf(key), delaySeconds: 4 }]);
  });

  it('right after its claim holds for its ttl, and the schedule deletes its ticket', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    // put, ticket, mark, the look after the release, claim
    const [, died] = await timeline.play(
      () => later(10, () => release(first)),
      () => dyingAfter(5, () => waiting(key, 'dead', { requestId: 'r' })),
    );
    expect(died.sent.at(-1)).toBe('UpdateItem');
    expect(await rawItem(key)).toMatchObject({ holder: { S: 'dead' }, ttl_ms: { N: '10000' } });
    expect(await rows(key)).toHaveLength(1);
    // The same request finds its grant, and its ticket goes.
    expect(await acquire({ key, holder: 'dead', requestId: 'r' })).toMatchObject({
      repeated: true,
      previous: { holder: 'first' },
    });
    expect(await rows(key)).toEqual([]);
  });

  it('and its ticket goes by the schedule too', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    await timeline.play(
      () => later(10, () => release(first)),
      () => dyingAfter(5, () => waiting(key, 'dead', { ttlSeconds: 60 })),
    );
    timeline.advance(11_000);
    await repair();
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).toMatchObject({ holder: { S: 'dead' }, lease_version: expect.anything() });
  });

  it('finds its unclaimed grant by asking again without waiting', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    await timeline.play(() => dyingAfter(3, () => waiting(key, 'dead', { requestId: 'r' })));
    await release(first);
    const grant = await acquire({ key, holder: 'dead', requestId: 'r', ttlSeconds: 10 });
    expect(grant).toMatchObject({ repeated: true, remainingMs: 10_000, previous: { holder: 'first' } });
    expect(await rows(key)).toEqual([]);
  });
});

describe('a claim', () => {
  it('that is answered late is renewed, so that the caller gets more than half of its ttl', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, grant] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          requests.faultsOf.UpdateItem = [
            async (send) => {
              const answer = await send();
              timeline.advance(5000);
              return answer;
            },
          ];
        }),
      () => waiting(key, 'second'),
    );
    expect(grant).toMatchObject({ holder: 'second', remainingMs: 10_000 });
  });

  it('that comes when another has the lease is none: the call is told so, and waits again where it asks again', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    let other: { leaseId: string; key: string; version: string } | undefined;
    const [, grant] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          requests.faultsOf.UpdateItem = [
            async (send) => {
              timeline.advance(WINDOW_MS + MARGIN_MS + 1);
              requests.faultsOf.UpdateItem = [];
              other = await acquire({ key, holder: 'other' }); // the plain caller that comes in between
              return send();
            },
          ];
        }),
      async () => {
        const { code, context } = await failure(waiting(key, 'second', { requestId: 'late claim' }));
        expect({ code, ...context }).toMatchObject({ code: 'LeaseHeld', retryWith: { requestId: 'late claim' } });
        expect(context).not.toHaveProperty('place');
        return waiting(key, 'second', context.retryWith as object);
      },
      () =>
        later(5000, async () => {
          expect((await rawItem(key))?.lease_version?.S).toBe(other?.version);
          if (other) await release(other);
        }),
    );
    expect(grant).toMatchObject({ holder: 'second', previous: { holder: 'other' }, remainingMs: 10_000 });
    expect(await rows(key)).toEqual([]);
  });

  it('whose answer is lost is known by its version', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, grant] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          requests.faultsOf.UpdateItem = ['lostReply'];
        }),
      () => waiting(key, 'second'),
    );
    expect(grant).toMatchObject({ holder: 'second', repeated: false, remainingMs: 10_000 });
  });
});

describe('a call whose patience ends', () => {
  it('is answered with its place, and keeps it for five seconds', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const [refused, , b, c] = await timeline.play(
      async () => {
        const { code, context } = await failure(waiting(key, 'b', { waitSeconds: 2, requestId: 'rb' }));
        return { code, context, at: now() };
      },
      () => later(6000, () => release(first)),
      () =>
        later(5000, async () => {
          const [row] = await rows(key);
          return turn(key, 'b', 20, { requestId: 'rb', ticket: row?.ticket?.S });
        }),
      () => later(100, () => turn(key, 'c', 20)),
    );
    expect(refused.code).toBe('LeaseHeld');
    expect(refused.context).toMatchObject({
      holder: 'first',
      waiting: 1,
      place: 1,
      retryWith: { requestId: 'rb', ticket: expect.stringMatching(/^\d{15}-/) },
    });
    expect(b.fence).toBeLessThan(c.fence); // it came back before the turn
    expect(b.previous).toMatchObject({ holder: 'first' });
  });

  it('is passed over while it is absent, and is first at the next hand-off', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const names: string[] = [];
    await timeline.play(
      async () => {
        const { context } = await failure(waiting(key, 'b', { waitSeconds: 2, requestId: 'rb2' }));
        const { ticket } = context.retryWith as { ticket: string };
        await sleep(2000);
        await turn(key, 'b', 20, { requestId: 'rb2', ticket });
        names.push('b');
      },
      () => later(3000, () => release(first)),
      () =>
        later(100, async () => {
          await turn(key, 'c', 2000);
          names.push('c');
        }),
      () =>
        later(200, async () => {
          await turn(key, 'd', 20);
          names.push('d');
        }),
    );
    expect(names).toEqual(['c', 'b', 'd']);
  });

  it('takes the grant that came in its last moment', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const [grant] = await timeline.play(
      () => waiting(key, 'b', { waitSeconds: 1 }),
      () => later(999, () => release(first)),
    );
    expect(grant).toMatchObject({ holder: 'b', remainingMs: 10_000 });
  });

  it('asks again with the ticket of another request in vain, and leaves that in line', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    await timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 1, requestId: 'rb3' })));
    const [row] = await rows(key);
    const ticket = row?.ticket?.S;
    await timeline.play(() => failure(waiting(key, 'thief', { waitSeconds: 1, requestId: 'other', ticket })));
    expect((await rows(key)).map(({ holder }) => holder?.S)).toEqual(['b', 'thief']);
    await release(first);
    await acquire({ key, holder: 'thief', requestId: 'other 2', ticket });
    expect((await rows(key)).some((one) => one.ticket?.S === ticket)).toBe(true);
  });

  it('leaves a row that the schedule deletes when it is over', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 600 });
    await timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 1 })));
    await repair();
    expect(await rows(key)).toHaveLength(1);
    timeline.advance(5000);
    await repair();
    expect(await rows(key)).toEqual([]);
  });

  it('is no place for another: a crowd that has left costs the next one nothing', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const impatient = Array.from(
      { length: 15 },
      (_, index) => () => failure(waiting(key, `i${index}`, { waitSeconds: 1 })),
    );
    const [released, grant] = await timeline.play(
      () => later(2000, async () => (await release(first)) && now()),
      () => later(500, async () => ({ ...(await waiting(key, 'patient')), at: now() })),
      ...impatient,
    );
    expect((grant as { at: number }).at - (released as number)).toBeLessThanOrEqual(250);
  });
});

describe('a withdrawal', () => {
  const owner = as('arn:aws:iam::1:user/owner');

  it('ends a call that waits', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const asked = { key, holder: 'b', requestId: 'w1', waitSeconds: 20 };
    const [refused, withdrawn] = await timeline.play(
      async () => ({ ...(await failure(acquire(asked, owner))), at: now() }),
      () => later(3000, async () => ({ ...(await withdraw({ key, requestId: 'w1', holder: 'b' }, owner)), at: now() })),
    );
    expect(withdrawn).toMatchObject({ key, requestId: 'w1', cancelled: true });
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(refused.at - withdrawn.at).toBeLessThanOrEqual(1250);
    expect(await rows(key)).toEqual([]);
  });

  it('ends a grant, claimed or not, and hands it on', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    await timeline.play(() =>
      dyingAfter(3, () => acquire({ key, holder: 'b', requestId: 'w2', waitSeconds: 20 }, owner)),
    );
    timeline.advance(1);
    const { task } = await park({ key, holder: 'task' });
    await release(first); // b has it, unclaimed
    requests.sent.length = 0;
    expect(await withdraw({ key, requestId: 'w2', holder: 'b' }, owner)).toMatchObject({ cancelled: true });
    expect(requests.sent.slice(0, 5)).toEqual(['Query', 'UpdateItem', 'GetItem', 'UpdateItem', 'Query']); // one flag
    expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'first' } });
    const plain = newKey();
    await acquire({ key: plain, holder: 'b', requestId: 'w3' }, owner);
    expect(await withdraw({ key: plain, requestId: 'w3', holder: 'b' }, owner)).toMatchObject({ cancelled: true });
    expect(await acquire({ key: plain, holder: 'c' })).toMatchObject({ previous: { holder: 'b', ended: 'released' } });
  });

  it('of which the request is repeated is refused', async () => {
    const key = newKey();
    await acquire({ key, holder: 'b', requestId: 'w4' }, owner);
    await withdraw({ key, requestId: 'w4', holder: 'b' }, owner);
    expect((await failure(acquire({ key, holder: 'b', requestId: 'w4' }, owner))).code).toBe('LeaseLost');
  });

  it('reaches only requests of its own caller and holder', async () => {
    const key = newKey();
    const grant = await acquire({ key, holder: 'b', requestId: 'w5' }, owner);
    for (const [requestId, holder, who] of [
      ['w5', 'b', as('arn:aws:iam::1:user/other')],
      ['w5', 'b', call()],
      ['w5', 'c', owner],
      ['w6', 'b', owner],
    ] as const)
      expect(await withdraw({ key, requestId, holder }, who)).toMatchObject({ cancelled: false, reason: 'unknown' });
    await timeline.play(() =>
      dyingAfter(3, () => acquire({ key, holder: 'd', requestId: 'w7', waitSeconds: 20 }, owner)),
    );
    expect(await withdraw({ key, requestId: 'w7', holder: 'd' }, as('another'))).toMatchObject({ cancelled: false });
    expect((await rows(key))[0]).not.toHaveProperty('cancelled_at');
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('that crosses a claim is seen by it: the lease is given back', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, refused] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          // The flag lands between the claim and the deletion of the ticket, and the claim after the withdrawal has read the record.
          requests.faultsOf.DeleteItem = [
            async (send) => {
              const { flagCancelled } = await import('../../shared/line/waiting-calls.ts');
              const [row] = await rows(key);
              await flagCancelled(world.dependencies, { name: { key, ticket: row?.ticket?.S ?? '' } }, call());
              return send();
            },
          ];
        }),
      () => failure(waiting(key, 'second', { requestId: 'w8' })),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await read({ key })).toMatchObject({ state: 'released' });
  });

  it('of a call that has left is seen when it asks again', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'b', requestId: 'w9', waitSeconds: 1 };
    const [refused] = await timeline.play(() => failure(acquire(asked, owner)));
    const { ticket } = refused.context.retryWith as { ticket: string };
    await withdraw({ key, requestId: 'w9', holder: 'b' }, owner);
    const [again] = await timeline.play(() => failure(acquire({ ...asked, ticket }, owner)));
    expect(again).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    await release(first);
    expect(await failure(acquire({ ...asked, ticket }, owner))).toMatchObject({ context: { reason: 'cancelled' } });
    expect(await read({ key })).toMatchObject({ state: 'released' });
  });
});

describe('others who act on a call in line', () => {
  it('an operator cancels it by its ticket', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const [refused, cancelled] = await timeline.play(
      () => failure(waiting(key, 'b')),
      () =>
        later(1000, async () => {
          const [row] = await rows(key);
          return cancel(key, row?.ticket?.S ?? '');
        }),
    );
    expect(cancelled).toMatchObject({ cancelled: true });
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await cancel(key, 'none')).toMatchObject({ cancelled: false, reason: 'unknown' });
  });

  it('an operator breaks the grant that it has not claimed: it is told so', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, grant] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          await breakLease({ key, fence: Number((await rawItem(key))?.fence?.N) });
        }),
      () => failure(waiting(key, 'b')),
    );
    expect(grant).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken' } });
    expect(await acquire({ key, holder: 'c' })).toMatchObject({ previous: { holder: 'first' } });
  });

  it('another client deletes the record: the call puts the mark back, or takes the lease', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const [grant] = await timeline.play(
      () => waiting(key, 'b'),
      () => later(1000, () => deleteRaw(key)),
    );
    expect(grant).toMatchObject({ holder: 'b', previous: null });
    await release(grant);
    const again = newKey();
    const held = await acquire({ key: again, holder: 'first', ttlSeconds: 60 });
    const [, marked] = await timeline.play(
      () => waiting(again, 'b'),
      () =>
        later(1000, async () => {
          const item = await rawItem(again);
          const { waiters: _, next_ticket: __, ...unmarked } = item ?? {};
          await world.putRaw(unmarked);
          await sleep(300);
          const after = await rawItem(again);
          await release(held);
          return after;
        }),
    );
    expect(marked).toHaveProperty('waiters');
  });

  it('the execution that would have held it ends: its call is told that it has no place, and may ask again', async () => {
    const key = newKey();
    const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:line';
    const first = await acquire({ key, holder: 'first' });
    const [grant] = await timeline.play(
      async () => {
        const { code, context } = await failure(waiting(key, 'b', { execution, requestId: 'of execution' }));
        expect({ code, ...context }).toMatchObject({ code: 'LeaseHeld', retryWith: { requestId: 'of execution' } });
        expect(context).not.toHaveProperty('place');
        return waiting(key, 'b', { execution, ...(context.retryWith as object) });
      },
      () => later(500, () => executionEnded(execution)),
      () => later(3000, () => release(first)),
    );
    expect(grant).toMatchObject({ holder: 'b' });
    await executionEnded(execution);
    expect(await acquire({ key, holder: 'c' })).toMatchObject({ previous: { holder: 'b', ended: 'executionEnded' } });
  });
});
