import { expect, it } from 'vitest';
import { seededIds } from '../support/chance/seed.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, release, clock, requests } = world;

/** The commands that `act` sends to DynamoDB. */
async function sentBy(act: () => Promise<unknown>): Promise<string[]> {
  const before = requests.sent.length;
  await act();
  return requests.sent.slice(before);
}

it('acquire grants a free key with one request', async () => {
  const sent = await sentBy(async () => {
    const grant = await acquire({ key: 'free', ttlSeconds: 30, data: { run: 7 } });
    expect(grant).toEqual({
      key: 'free',
      holder: 'tester',
      leaseId: expect.stringMatching(/^e\.[\w-]{16}\.[0-9a-f-]{36}$/),
      version: expect.stringMatching(/^[0-9a-f-]{36}$/),
      fence: clock.now(),
      acquiredAt: '2026-01-01T00:00:00.123Z',
      expiresAt: '2026-01-01T00:00:30.123Z',
      remainingMs: 30_000,
      waitedMs: 0,
      repeated: false,
      previous: null,
      data: { run: 7 },
    });
  });
  expect(sent).toEqual(['UpdateItem']);
});

it('acquire names the holder of a held key, by the same single request', async () => {
  const { fence, expiresAt } = await acquire({ key: 'held', holder: 'first', ttlSeconds: 10 });
  clock.advance(4000);
  const sent = await sentBy(async () => {
    const { code, context } = await failure(acquire({ key: 'held', holder: 'second' }));
    expect(code).toBe('LeaseHeld');
    const holder = { holder: 'first', fence, expiresAt };
    expect(context).toEqual({
      ...{ key: 'held', ...holder, retryAfterMs: 6000 + 500 + 1 },
      ...{ used: 1, limit: null, holders: [{ ...holder, mode: 'exclusive', weight: 1 }] },
    });
  });
  expect(sent).toEqual(['UpdateItem']);
});

it('acquire takes over an expired lease right after the margin, and not before', async () => {
  const { fence } = await acquire({ key: 'expiring', holder: 'first', ttlSeconds: 2 });
  clock.advance(2000 + 500);
  const { code, context } = await failure(acquire({ key: 'expiring', holder: 'second' }));
  expect(code).toBe('LeaseHeld');
  expect(context.retryAfterMs).toBe(1);
  clock.advance(1);
  const sent = await sentBy(async () => {
    const grant = await acquire({ key: 'expiring', holder: 'second' });
    expect(grant.fence).toBeGreaterThan(fence);
    expect(grant.waitedMs).toBe(0);
  });
  expect(sent).toEqual(['UpdateItem']);
});

it('acquire needs a second request if the fence is not behind the clock', async () => {
  const first = await acquire({ key: 'same-millisecond' });
  await release(first);
  const sent = await sentBy(async () => {
    expect((await acquire({ key: 'same-millisecond' })).fence).toBe(first.fence + 1);
  });
  expect(sent).toEqual(['UpdateItem', 'UpdateItem']);
});

it('acquire answers a repeat of the same request with the same grant', async () => {
  const first = await acquire({ key: 'repeat', requestId: 'r-1' });
  clock.advance(1000);
  const again = await acquire({ key: 'repeat', requestId: 'r-1' });
  expect(again).toEqual({ ...first, remainingMs: 59_000, repeated: true });
});

it('acquire does not take another request, holder or principal for a repeat', async () => {
  const owner = call({ principal: 'arn:aws:iam::1:user/owner' });
  await acquire({ key: 'not-repeat', requestId: 'r-1', holder: 'h' }, owner);
  expect((await failure(acquire({ key: 'not-repeat', requestId: 'r-2', holder: 'h' }, owner))).code).toBe('LeaseHeld');
  expect((await failure(acquire({ key: 'not-repeat', requestId: 'r-1', holder: 'i' }, owner))).code).toBe('LeaseHeld');
  const other = call({ principal: 'arn:aws:iam::1:user/other' });
  expect((await failure(acquire({ key: 'not-repeat', requestId: 'r-1', holder: 'h' }, other))).code).toBe('LeaseHeld');
  expect((await failure(acquire({ key: 'not-repeat', requestId: 'r-1', holder: 'h' }))).code).toBe('LeaseHeld');
  const own = await acquire({ key: 'not-repeat', requestId: 'r-1', holder: 'h' }, owner);
  expect(own.repeated).toBe(true);
  await release(own, owner);
  expect((await acquire({ key: 'not-repeat', requestId: 'r-1', holder: 'h' }, other)).repeated).toBe(false);
});

it('acquire refuses the request of a released grant, and does not lock the key', async () => {
  const first = await acquire({ key: 'late-duplicate', requestId: 'r-1' });
  await release(first);
  clock.advance(10);
  const sent = await sentBy(async () => {
    const { code, context } = await failure(acquire({ key: 'late-duplicate', requestId: 'r-1' }));
    expect(code).toBe('LeaseLost');
    expect(context).toEqual({ key: 'late-duplicate', reason: 'released', holder: null });
  });
  expect(sent).toEqual(['UpdateItem']);
  expect((await acquire({ key: 'late-duplicate', requestId: 'r-2' })).repeated).toBe(false);
});

it('acquire lets the request of an expired grant wait out the margin', async () => {
  await acquire({ key: 'in-margin', requestId: 'r-1', ttlSeconds: 2 });
  clock.advance(2000);
  const { code, context } = await failure(acquire({ key: 'in-margin', requestId: 'r-1' }));
  expect([code, context.retryAfterMs]).toEqual(['LeaseHeld', 501]);
});

it('acquire fails clearly, and at once, if the fence cannot rise', async () => {
  await world.putRaw({ key: { S: 'top' }, lease_expiry: { N: '1' }, fence: { N: String(Number.MAX_SAFE_INTEGER) } });
  const sent = await sentBy(async () => {
    const { code, context } = await failure(acquire({ key: 'top', waitSeconds: 5 }));
    expect([code, context]).toEqual(['Unavailable', { key: 'top', retryAfterMs: 1000 }]);
  });
  expect(sent).toEqual(['UpdateItem', 'UpdateItem']);
});

it('acquire waits no longer than the deployment allows', async () => {
  for (const maxWaitSeconds of [3, 0]) {
    const capped = await leaseWorld({ maxWaitSeconds });
    await capped.acquire({ key: 'capped', ttlSeconds: 60 });
    const startedAt = capped.clock.now();
    const { code, context } = await failure(
      capped.acquire({ key: 'capped', holder: 'other', waitSeconds: 20, fair: false }),
    );
    expect(capped.clock.now() - startedAt).toBe(maxWaitSeconds * 1000);
    expect({ code, retryAfterMs: context.retryAfterMs }).toEqual({
      code: 'LeaseHeld',
      retryAfterMs: 60_501 - maxWaitSeconds * 1000,
    });
  }
});

it('acquire counts its wait and the rest of the lease from its answer', async () => {
  const sentAt = clock.now();
  requests.faultsOf.UpdateItem = [
    async (send) => {
      clock.advance(1900);
      return send();
    },
  ];
  const grant = await acquire({ key: 'wait-answer', waitSeconds: 20, fair: false });
  expect(grant).toMatchObject({ waitedMs: 1900, remainingMs: 60_000 - 1900 });
  expect(sentAt + grant.waitedMs + grant.remainingMs).toBe(Date.parse(grant.expiresAt));
});

it('acquire writes only if the lease looks free', async () => {
  const first = await acquire({ key: 'wait-reads' });
  clock.at(clock.now() + 3000, () => release(first));
  const sent = await sentBy(() => acquire({ key: 'wait-reads', waitSeconds: 20, fair: false }));
  const writes = sent.filter((command) => command !== 'GetItem');
  expect(writes).toEqual(['UpdateItem', 'UpdateItem', 'UpdateItem']); // the try, the other's release, the grant
  const reads = sent.length - writes.length;
  expect(reads).toBeGreaterThan(3000 / 250 - 1);
  expect(reads).toBeLessThan(3000 / 125 + 6);
});

it.each([
  [0, [13, 25, 50, 100, 125, 125]],
  [0.5, [19, 38, 75, 150, 188, 188]],
])('acquire polls less and less often, and leaves half to chance (%d)', async (random, pauses) => {
  const paced = await leaseWorld({ ids: { ...seededIds(1), random: () => random } });
  await paced.acquire({ key: 'paced' });
  const polls = [paced.clock.now()];
  const poll: Fault = (send) => {
    polls.push(paced.clock.now());
    return send();
  };
  paced.requests.faultsOf.GetItem = Array(pauses.length).fill(poll);
  await failure(paced.acquire({ key: 'paced', holder: 'w', waitSeconds: 2, fair: false }));
  expect(polls.slice(1).map((at, index) => at - (polls[index] ?? 0))).toEqual(pauses);
});

const setBack: Fault = async (send) => {
  clock.advance(-3000);
  return send();
};

it('acquire without waitSeconds does not wait if its clock is set back', async () => {
  const key = 'set back';
  await acquire({ key, ttlSeconds: 60 });
  requests.faults = [setBack];
  const sent = await sentBy(async () => {
    expect(await failure(acquire({ key, holder: 'another' }))).toMatchObject({ code: 'LeaseHeld' });
  });
  expect(sent).toEqual(['UpdateItem']);
});

it('acquire waits no longer than it asked if its clock is set back', async () => {
  const key = 'set back, waiting';
  await acquire({ key, ttlSeconds: 60 });
  const calledAt = clock.now();
  requests.faults = [setBack];
  const asked = acquire({ key, holder: 'another', waitSeconds: 1, fair: false });
  expect(await failure(asked)).toMatchObject({ code: 'LeaseHeld' });
  expect(clock.now()).toBe(calledAt - 3000 + 1000);
});

it.each([500, 499])('acquire with waitSeconds asks once if the invocation has %i ms left', async (leftMs) => {
  const key = `no time ${leftMs}`;
  await acquire({ key });
  const hurried = call({ timeLeftMs: () => leftMs });
  const sent = await sentBy(async () => {
    expect((await failure(acquire({ key, holder: 'b', waitSeconds: 20 }, hurried))).code).toBe('LeaseHeld');
  });
  expect(sent).toEqual(['UpdateItem']);
});
