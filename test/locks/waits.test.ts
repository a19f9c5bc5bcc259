import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { DEFAULT_QUOTAS, type Quotas } from '../../shared/locks/dependencies.ts';
import { countedWait } from '../../shared/locks/line/concurrent-waits.ts';
import { call } from '../support/emulators/aws.ts';
import { post } from '../support/stack/adapters.ts';
import { capturedLog } from '../support/stack/log.ts';
import { rounds } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const RECORD = 'holdfast:waits';

/** Ten environments: eight for calls that begin to wait, one more for those that come back. Each call is one of them. */
async function reservedWorld(quotas: Partial<Quotas> = { acquireConcurrency: 10 }) {
  const timeline = new Timeline();
  const world = await leaseWorld({ clock: timeline, quotas: { ...DEFAULT_QUOTAS, ...quotas } });
  const environments = Array.from({ length: 12 }, () => ({ ...world.dependencies }));
  return { ...world, timeline, environments };
}
type World = Awaited<ReturnType<typeof reservedWorld>>;

/** A call in an environment of its own: what one environment remembers, another does not know. */
const inOwn = ({ environments }: World, at: number) => {
  const dependencies = environments[at];
  if (!dependencies) throw new Error('there are twelve');
  return (input: object) => acquireGrant(dependencies)(acquireInput().parse({ holder: `h${at}`, ...input }), call());
};

it('calls wait until two tenths are left, and others learn soon when to ask', async () => {
  const world = await reservedWorld();
  const { acquire, timeline, rawItem } = world;
  await acquire({ key: 'k', ttlSeconds: 600 });
  const startedAt = timeline.now();
  const calls = Array.from({ length: 12 }, (_, at) => async () => {
    await timeline.sleep(at); // one after the other
    const { code, context } = await failure(inOwn(world, at)({ key: 'k', waitSeconds: 2, fair: false }));
    return { code, context, at: timeline.now() - startedAt };
  });
  const ends = await timeline.play(...calls);
  const waited = ends.filter(({ at }) => at >= 2000);
  const refused = ends.filter(({ at }) => at < 2000);
  expect([waited.length, refused.length]).toEqual([8, 4]);
  for (const { code, context, at } of refused) {
    expect([code, at < 100]).toEqual(['LeaseHeld', true]);
    expect(context.retryAfterMs).toBeGreaterThanOrEqual(1000);
    expect(context.retryAfterMs).toBeLessThanOrEqual(3000);
  }
  // Nobody waits any more.
  const counts = Object.entries((await rawItem(RECORD)) ?? {}).filter(([name]) => name.startsWith('until_'));
  expect(counts.map(([, { N }]) => N)).toEqual(counts.map(() => '0'));
});

it('the record stays small, and begins again after a minute without a wait', async () => {
  const world = await reservedWorld();
  const { acquire, timeline, rawItem } = world;
  await acquire({ key: 'k', ttlSeconds: 86_400 });
  const wait = async () => {
    await timeline.play(async () => failure(inOwn(world, 0)({ key: 'k', waitSeconds: 1 })));
    return Object.keys((await rawItem(RECORD)) ?? {}).filter((name) => name.startsWith('until_')).length;
  };
  // As many buckets pass as there are turns, of which a record that forgot none would keep each.
  for (let turns = 0; turns < rounds(30, 5); turns++) {
    expect(await wait()).toBeLessThanOrEqual(3);
    timeline.advance(4000);
  }
  for (const pauseMs of [61_000, 50_000, 3_600_000]) {
    timeline.advance(pauseMs);
    expect(await wait()).toBe(1);
  }
});

it('an environment that met the limit lets no call wait for a second, without a look', async () => {
  const { clock, requests, putRaw, dependencies } = await leaseWorld();
  const until = `until_${Math.floor((clock.now() + 20_000) / 5000)}`;
  const written = { written_at: { N: String(clock.now()) }, lease_expiry: { N: '9000000000' } };
  await putRaw({ key: { S: RECORD }, ...written, [until]: { N: '1' } });
  // One may wait, and two with one that comes back.
  const asks = async (isBack = false, retryAfterMs = 60_000) => {
    requests.sent.length = 0;
    const held = () => new HoldfastError('LeaseHeld', 'another caller has it', { retryAfterMs });
    const asked = { deadline: clock.now() + 2000, isBack, concurrency: 3, held, wait: async () => 'waited' };
    const outcome = await countedWait(dependencies, asked, call()).catch(({ context }) => context.retryAfterMs);
    return [outcome, requests.sent.length];
  };
  const soon = expect.toSatisfy((ms: unknown) => Number(ms) >= 1000 && Number(ms) <= 3000);
  expect(await asks()).toEqual([soon, 2]);
  expect(await asks()).toEqual([soon, 0]);
  expect(await asks(false, 10)).toEqual([10, 0]);
  expect(await asks(true)).toEqual(['waited', 2]);
  clock.advance(999);
  expect(await asks()).toEqual([soon, 0]);
  clock.advance(1);
  expect(await asks()).toEqual([soon, 2]);
  clock.advance(-1); // What a clock that is set back has noted would last for too long.
  expect(await asks()).toEqual([soon, 2]);
});

it('the function acquire begins the record of the calls that wait', async () => {
  const { acquire, handlers, timeline, rawItem } = await reservedWorld();
  await acquire({ key: 'k', ttlSeconds: 600 });
  const asked = { key: 'k', holder: 'h', waitSeconds: 1 };
  await timeline.play(async () => expect((await post(handlers.acquire, asked)).body.code).toBe('LeaseHeld'));
  expect(await rawItem(RECORD)).toHaveProperty('written_at');
});

it('a call counts its wait only if it waits and concurrency is reserved', async () => {
  const reserved = await reservedWorld();
  await reserved.acquire({ key: 'k' });
  reserved.requests.sent.length = 0;
  await failure(reserved.acquire({ key: 'k' }));
  expect(reserved.requests.sent).toEqual(['UpdateItem']);
  const counted = async (world: World) => {
    await world.acquire({ key: 'w', ttlSeconds: 600 });
    world.requests.sent.length = 0;
    await world.timeline.play(async () => failure(inOwn(world, 0)({ key: 'w', waitSeconds: 1, fair: false })));
    return world.requests.sent.filter((command) => command !== 'GetItem');
  };
  expect(await counted(await reservedWorld({}))).toEqual(['UpdateItem']);
  // The record is begun, and the wait taken back.
  expect(await counted(reserved)).toEqual(['UpdateItem', 'UpdateItem', 'PutItem', 'UpdateItem']);
});

describe('the record of the calls that wait', async () => {
  const world = await leaseWorld();
  const { clock, dynamodb, requests, putRaw, rawItem } = world;
  clock.set(Math.ceil(clock.now() / 5000) * 5000);
  const throttled = { name: 'ProvisionedThroughputExceededException', status: 400 };

  const until = (epochMs: number) => `until_${Math.floor(epochMs / 5000)}`;
  const soon = () => until(clock.now() + 10_000);
  const remove = () => dynamodb.send(new DeleteItemCommand({ TableName: world.table, Key: { key: { S: RECORD } } }));
  /** The record as others left it: so many of them wait. */
  const left = (waiting: number, { name = soon(), writtenAt = clock.now() } = {}) => {
    const written = { written_at: { N: String(writtenAt) }, lease_expiry: { N: '9000000000' } };
    return putRaw({ key: { S: RECORD }, ...written, [name]: { N: String(waiting) } });
  };
  const waiting = {
    ...{ isBack: false, concurrency: 10, wait: async () => 'waited' },
    held: () => new HoldfastError('LeaseHeld', 'another caller has it'),
  };
  type Waiting = Parameters<typeof countedWait<string>>[1];
  /** A call in an environment of its own. Returns what its wait came to, or its code. */
  const asks = (asked: Partial<Waiting> = {}, countedBy = countedWait) => {
    const all = { deadline: clock.now() + 10_000, ...waiting, ...asked };
    return countedBy({ ...world.dependencies }, all, call()).catch(({ code }) => code);
  };

  it('the record of waiting calls keeps a tenth free, and another from newcomers', async () => {
    const asksBehind = async (others: number, isBack: boolean) => {
      await left(others);
      return asks({ isBack, concurrency: 25 });
    };
    expect([await asksBehind(18, false), await asksBehind(19, false)]).toEqual(['waited', 'LeaseHeld']);
    expect([await asksBehind(21, true), await asksBehind(22, true)]).toEqual(['waited', 'LeaseHeld']);
  });

  it('the record of waiting calls counts no call whose wait is over', async () => {
    const deadline = clock.now() - 1; // their five seconds are over just now
    await left(20, { name: until(deadline) });
    requests.sent.length = 0;
    expect(await asks({ deadline })).toBe('waited');
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('the record of waiting calls keeps the count of the others if a call could not be counted', async () => {
    await left(3);
    requests.faultsOf.UpdateItem = [throttled, throttled, throttled];
    expect(await asks()).toBe('LeaseHeld');
    expect(await rawItem(RECORD)).toMatchObject({ [soon()]: { N: '3' } });
  });

  it('a call that cannot be counted fails if DynamoDB cannot be reached', async () => {
    await left(0);
    requests.faultsOf.UpdateItem = ['neverSent', 'neverSent', 'neverSent'];
    expect(await asks()).toBe('Unavailable');
  });

  describe('counts a call once at most if an answer is lost:', () => {
    const counted = async () => (await rawItem(RECORD))?.[soon()]?.N;

    it('a call that begins to wait retries if an answer is lost', async () => {
      await left(7);
      requests.sent.length = 0;
      requests.faultsOf.UpdateItem = ['lostReply'];
      expect(await asks()).toBe('LeaseHeld');
      expect(requests.sent).toEqual(['UpdateItem']);
      expect(await counted()).toBe('8');
      clock.advance(25_000);
      expect(await asks()).toBe('waited');
    });

    it('a call that ends its wait takes away no entry of another call', async () => {
      await left(2);
      requests.faultsOf.UpdateItem = ['none', 'lostReply'];
      expect(await asks()).toBe('waited');
      expect(await counted()).toBe('2');
    });

    it('a call that meets the limit removes no entry of another call', async () => {
      await left(8);
      requests.faultsOf.UpdateItem = ['none', 'lostReply'];
      expect(await asks()).toBe('LeaseHeld');
      expect(await counted()).toBe('8');
    });

    it('a try that never left the machine is sent again', async () => {
      await left(2);
      requests.faultsOf.UpdateItem = ['neverSent', 'none', 'neverSent', 'none'];
      expect(await asks()).toBe('waited');
      expect(await counted()).toBe('2');
    });
  });

  it.each([
    ['no record', remove],
    ['an old record', () => left(5, { writtenAt: clock.now() - 120_000 })],
  ])('a call that finds %s does not write over what others have counted since', async (_, before) => {
    await before();
    requests.faultsOf.PutItem = [
      async (send) => {
        await left(8);
        return send();
      },
    ];
    expect(await asks()).toBe('LeaseHeld');
    expect(await rawItem(RECORD)).toMatchObject({ [soon()]: { N: '8' } });
  });

  it('the record of waiting calls has no entry of a call whose entry had been removed before its wait was over', async () => {
    await left(0);
    expect(await asks({ wait: () => remove().then(() => 'waited') })).toBe('waited');
    expect(await rawItem(RECORD)).toBeUndefined();
    expect(await asks({ wait: () => left(0).then(() => 'waited') })).toBe('waited');
    expect(await rawItem(RECORD)).toMatchObject({ [soon()]: { N: '0' } });
  });

  it('the record of waiting calls may be deleted a day after the last call began to wait', async () => {
    await remove();
    for (const laterMs of [0, 1700]) {
      clock.advance(laterMs);
      await asks();
      const aDayLater = { N: String(Math.ceil(clock.now() / 1000) + 86_400) };
      expect(await rawItem(RECORD)).toMatchObject({ lease_expiry: aDayLater });
    }
  });

  const lines = capturedLog();

  it('a record that does not remove a wait leaves the call its answer, and the log a warning', async () => {
    vi.stubEnv('LOG_LEVEL', 'WARN');
    vi.resetModules(); // the logger reads its level when it is loaded
    const { countedWait: logging } = await import('../../shared/locks/line/concurrent-waits.ts');
    await left(0);
    requests.faultsOf.UpdateItem = ['none', throttled, throttled, throttled];
    expect(await asks({}, logging)).toBe('waited');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'WARN', message: expect.stringContaining('count of waiting calls'), cause: expect.any(String) },
    ]);
  });
});
