import { describe, expect, it, vi } from 'vitest';
import { leasedRecords, type SqsRecord } from '../../clients/typescript/src/handlers.ts';
import type { Lease } from '../../clients/typescript/src/index.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { rounds } from '../support/time/rounds.ts';
import { FakeLambda, type Fault, type LambdaContext, type Outcome, untilAborted } from './fake-lambda.ts';

/** A record whose body names its key. */
function recordOf(messageId: string, key?: string, group?: string): SqsRecord {
  return {
    ...{ messageId, receiptHandle: `handle of ${messageId}`, body: JSON.stringify({ key }) },
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:orders${group === undefined ? '' : '.fifo'}`,
    attributes: { MessageGroupId: group },
  };
}

const keyOf = ({ body }: SqsRecord): string | undefined => JSON.parse(body).key;

/** Loads the module that the client imports at its first rate: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/rate.ts');

type Work = (record: SqsRecord, context: LambdaContext, lease: Lease | undefined) => unknown;
type Options = Partial<Parameters<typeof leasedRecords<SqsRecord, string | undefined>>[0]>;

const handlerOf = ({ holdfast }: FakeLambda, options: Options, work: Work) =>
  leasedRecords({ key: keyOf, onFailure: () => {}, ...options, holdfast } as Parameters<
    typeof leasedRecords<SqsRecord, string | undefined>
  >[0])(work);

const failed = (...ids: string[]): Outcome => ({
  value: { batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })) },
});

describe('leasedRecords', () => {
  it('leasedRecords handles the records of one key after another, each under one lease', async () => {
    const lambda = new FakeLambda();
    const seen: unknown[] = [];
    const handler = handlerOf(lambda, {}, async ({ messageId }, context, lease) => {
      seen.push([messageId, context.functionName, lease?.key, lease?.fence, await lambda.holds(`${lease?.key}`)]);
    });
    const Records = [recordOf('1', 'a'), recordOf('2', 'b'), recordOf('3', 'a')];
    expect(await lambda.invoke(handler, { Records })).toEqual(failed());
    expect(seen).toEqual([
      ['1', 'test', 'a', 1, true],
      ['3', 'test', 'a', 1, true],
      ['2', 'test', 'b', 1, true],
    ]);
    expect(lambda.sent.map(({ operation, payload }) => `${operation} ${payload.key}`)).toEqual([
      ...['acquire a', 'release a', 'acquire b', 'release b'],
    ]);
    expect(lambda.clock.timers).toEqual([]);
  });

  it('leasedRecords works on as many keys at once as concurrency says', async () => {
    const lambda = new FakeLambda();
    let [atWork, most] = [0, 0];
    const handler = handlerOf(lambda, { concurrency: 2 }, async () => {
      most = Math.max(most, ++atWork);
      await lambda.sleep(100);
      atWork--;
    });
    const Records = ['a', 'b', 'c', 'd', 'a'].map((key, at) => recordOf(`${at}`, key));
    expect(await lambda.invoke(handler, { Records })).toEqual(failed());
    expect(most).toBe(2);
  });

  it('leasedRecords returns all records of a held key as failed, after one call', async () => {
    const lambda = new FakeLambda();
    lambda.service.hold('a', { holder: 'other', ttlSeconds: 42 });
    const deferred: unknown[] = [];
    const failures: unknown[] = [];
    const options: Options = {
      defer: async ({ receiptHandle }, retryAfterMs) => deferred.push([receiptHandle, retryAfterMs]),
      onFailure: (error, records) => failures.push([(error as { code: string }).code, records.length]),
    };
    const handler = handlerOf(lambda, options, () => {});
    const Records = [recordOf('1', 'a'), recordOf('2', 'b'), recordOf('3', 'a')];
    expect(await lambda.invoke(handler, { Records })).toEqual(failed('1', '3'));
    expect(lambda.operations).toEqual(['acquire', 'acquire', 'release']);
    expect(deferred).toEqual([
      ['handle of 1', 42_000],
      ['handle of 3', 42_000],
    ]);
    expect(failures).toEqual([['LeaseHeld', 2]]);
  });

  it('leasedRecords shares one waitMs, capped at a third of the invocation, among keys', async () => {
    for (const [waitMs, waited] of [
      [6000, 6000],
      [60_000, 10_000],
    ] as const) {
      const lambda = new FakeLambda();
      for (const key of ['a', 'b', 'c']) lambda.service.hold(key);
      const startedAt = lambda.clock.monotonicMs;
      const handler = handlerOf(lambda, { waitMs }, () => {});
      const Records = ['a', 'b', 'c', 'd'].map((key) => recordOf(key, key));
      expect(await lambda.invoke(handler, { Records }, 30_000)).toEqual(failed('a', 'b', 'c'));
      expect(lambda.clock.monotonicMs - startedAt).toBe(waited);
    }
  });

  it('leasedRecords with rates gives each record a start, or defers the record', async () => {
    const lambda = new FakeLambda();
    const startedAt = lambda.clock.monotonicMs;
    const starts: unknown[] = [];
    const deferred: unknown[] = [];
    const options: Options = {
      rates: [{ limit: 10, per: '1m' }],
      settle: true,
      defer: ({ messageId }, retryAfterMs) => deferred.push([messageId, retryAfterMs]),
    };
    const handler = handlerOf(lambda, options, async ({ messageId }, _context, lease) => {
      starts.push([messageId, lambda.clock.monotonicMs - startedAt]);
      if (messageId === '1') await lease?.settle({ requests: 0 });
    });
    const Records = ['1', '2', '3', '4'].map((id) => recordOf(id, 'a'));
    expect(await lambda.invoke(handler, { Records }, 30_000)).toEqual(failed('4'));
    expect(starts).toEqual([
      ['1', 0],
      ['2', 0],
      ['3', 6000],
    ]);
    // Four of the ten seconds are left, and the start would be in six.
    expect(deferred).toEqual([['4', 2000]]);
    expect(lambda.operations.filter((operation) => operation === 'acquire').length).toBe(1);
  });

  it('leasedRecords logs failures to stderr unless it is given onFailure', async () => {
    const lambda = new FakeLambda();
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const mine = new Error('mine');
      const handler = handlerOf(lambda, { onFailure: undefined }, ({ messageId }) => {
        if (messageId === '2') throw mine;
      });
      await lambda.invoke(handler, { Records: [recordOf('1', 'a'), recordOf('2', 'a')] });
      expect(log.mock.calls).toEqual([['failed: 2:', mine]]);
    } finally {
      log.mockRestore();
    }
  });

  it('leasedRecords returns a record as failed if its key cannot be read', async () => {
    const lambda = new FakeLambda();
    const handler = handlerOf(lambda, {}, () => {});
    const Records = [{ ...recordOf('1', 'a'), body: 'no JSON' }, recordOf('2', 'a')];
    expect(await lambda.invoke(handler, { Records })).toEqual(failed('1'));
  });

  it('leasedRecords cuts the work a second before the end, and defers the rest', async () => {
    const lambda = new FakeLambda();
    const reasons: unknown[] = [];
    const options: Options = {
      onFailure: (error, records) => reasons.push([(error as { reason?: string }).reason, records.length]),
    };
    const handler = handlerOf(lambda, options, ({ messageId }, _context, lease) =>
      messageId === '1' ? undefined : untilAborted(lease?.signal as AbortSignal),
    );
    const Records = [...['1', '2', '3'].map((id) => recordOf(id, 'a')), recordOf('4', 'b')];
    expect(await lambda.invoke(handler, { Records }, 30_000)).toEqual(failed('2', '3', '4'));
    expect(reasons).toEqual([
      ['maxHold', 1],
      ['maxHold', 1],
      [undefined, 1],
    ]);
    expect(lambda.operations.filter((operation) => operation === 'acquire').length).toBe(1);
    expect(await lambda.holds('a')).toBe(false);
  });

  it('leasedRecords throws if every record fails, because without ReportBatchItemFailures an answer counts as success', async () => {
    const lambda = new FakeLambda();
    lambda.service.hold('a', { holder: 'other' });
    const handler = handlerOf(lambda, {}, () => Promise.reject(new Error('mine')));
    const held = await lambda.invoke(handler, { Records: [recordOf('1', 'a'), recordOf('2', 'a')] });
    expect(held).toMatchObject({ error: { code: 'LeaseHeld', holder: 'other' } });
    const mine = await lambda.invoke(handler, { Records: [recordOf('1', 'b'), recordOf('2', 'a')] });
    expect(mine).toMatchObject({ error: { message: 'mine' } });
  });

  it('leasedRecords handles the other records even if onFailure or defer throws', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const lambda = new FakeLambda();
    lambda.service.hold('b');
    const throwing = () => {
      throw new Error('of the hook');
    };
    const done: string[] = [];
    const handler = handlerOf(lambda, { onFailure: throwing, defer: throwing }, ({ messageId }) => {
      done.push(messageId);
    });
    const Records = [recordOf('1', 'a'), recordOf('2', 'b'), recordOf('3', 'c')];
    expect(await lambda.invoke(handler, { Records })).toEqual(failed('2'));
    expect(done).toEqual(['1', '3']);
    expect(logged.mock.calls.flat().map(String)).toEqual(['Error: of the hook', 'Error: of the hook']);
    logged.mockRestore();
  });

  it.each([0, -1, 0.5, Number.NaN, null])(
    'leasedRecords handles each record with the concurrency %s, one key after the other',
    async (concurrency) => {
      const lambda = new FakeLambda();
      const done: string[] = [];
      const options = { concurrency: concurrency as number };
      const handler = handlerOf(lambda, options, ({ messageId }) => void done.push(messageId));
      expect(await lambda.invoke(handler, { Records: [recordOf('1', 'a'), recordOf('2', 'b')] })).toEqual(failed());
      expect(done).toEqual(['1', '2']);
    },
  );

  it('leasedRecords passes the execution of the event, and a requestId per key', async () => {
    const lambda = new FakeLambda();
    const handler = handlerOf(lambda, { execution: ({ messageId }) => `arn of ${messageId}` }, () => {});
    await lambda.invoke(handler, { Records: [recordOf('1', 'a'), recordOf('2', 'b')] });
    const acquires = lambda.sent.filter(({ operation }) => operation === 'acquire');
    expect(acquires.map(({ payload }) => payload.execution)).toEqual(['arn of 1', 'arn of 2']);
    expect(new Set(acquires.map(({ payload }) => payload.requestId)).size).toBe(2);
  });

  it.each<Fault>(['refused', 'answer lost', 'hangs', 'late'])(
    'leasedRecords holds nothing after its answer, whichever request meets a fault: %s',
    async (fault) => {
      for (let at = 0, most = 0; at <= most; at++) {
        const lambda = new FakeLambda();
        lambda.clock.after(5000, lambda.service.hold('b'));
        lambda.faultOf = (number) => (number === at ? fault : undefined);
        const handler = handlerOf(lambda, { waitMs: 8000, concurrency: 2 }, (_record, _context, lease) =>
          Promise.race([lambda.sleep(9000), untilAborted(lease?.signal as AbortSignal)]),
        );
        const Records = ['a', 'b', 'c', 'a'].map((key, number) => recordOf(`${number}`, key));
        const outcome = await lambda.invoke(handler, { Records }, 30_000);
        expect('killed' in outcome).toBe(false);
        for (const key of ['a', 'b', 'c']) expect(await lambda.holds(key), `${fault} ${at} ${key}`).toBe(false);
        most = Math.max(most, lambda.sent.length - 1);
      }
    },
  );
});

describe('leasedRecords of a FIFO queue', () => {
  it('leasedRecords of a FIFO queue keeps the order of a group with several keys', async () => {
    const lambda = new FakeLambda();
    const handled: string[] = [];
    const handler = handlerOf(lambda, { concurrency: 5 }, async ({ messageId }) => {
      await lambda.sleep(100);
      handled.push(messageId);
    });
    const Records = [
      ...[recordOf('1', 'a', 'g'), recordOf('2', 'a', 'g'), recordOf('3', 'b', 'g')],
      ...[recordOf('4', undefined, 'g'), recordOf('5', 'a', 'g')],
    ];
    expect(await lambda.invoke(handler, { Records })).toEqual(failed());
    expect(handled).toEqual(['1', '2', '3', '4', '5']);
    expect(lambda.operations.filter((operation) => operation === 'acquire').length).toBe(3);
  });

  it('leasedRecords of a FIFO queue does not wait for itself if groups share keys', async () => {
    const lambda = new FakeLambda();
    const handler = handlerOf(lambda, { concurrency: 5 }, () => lambda.sleep(100));
    const Records = [
      recordOf('1', 'a', 'g'),
      recordOf('2', 'a', 'h'),
      recordOf('3', 'b', 'h'),
      recordOf('4', 'b', 'i'),
    ];
    expect(await lambda.invoke(handler, { Records })).toEqual(failed());
    expect(lambda.operations.filter((operation) => operation === 'acquire').length).toBe(2);
  });

  it('leasedRecords does not keep the order of message groups of a standard queue', async () => {
    const lambda = new FakeLambda();
    const handler = handlerOf(lambda, {}, ({ messageId }) => {
      if (messageId === '1') throw new Error('mine');
    });
    const Records = ['1', '2'].map((id) => ({ ...recordOf(id, 'a'), attributes: { MessageGroupId: 'tenant' } }));
    expect(await lambda.invoke(handler, { Records })).toEqual(failed('1'));
  });
});

/** What a record does in a random batch. */
interface Plan {
  takesMs: number;
  fails: boolean;
  /** Whether the lease is lost during the work. */
  loses: boolean;
  /** Whether the handler takes an abort of the signal for success. */
  ignoresAbort: boolean;
}

const KEYS = ['a', 'b', 'c', undefined];

/** One random batch in one invocation, with all that a caller may rely on checked. */
async function playBatch(random: () => number): Promise<Record<string, number>> {
  const one = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
  const lambda = new FakeLambda();
  const isFifo = random() < 0.5;
  const Records = Array.from({ length: 1 + Math.floor(random() * 10) }, (_, at) =>
    recordOf(`${at}`, one(KEYS), isFifo ? one(['g', 'h', 'i']) : undefined),
  );
  const plans = new Map<SqsRecord, Plan>(
    Records.map((record) => [
      record,
      {
        takesMs: one([0, 10, 1000, 20_000]),
        fails: random() < 0.2,
        loses: random() < 0.05,
        ignoresAbort: random() < 0.5,
      },
    ]),
  );
  const heldKeys = KEYS.filter((key) => key !== undefined && random() < 0.3) as string[];
  for (const key of heldKeys) {
    const release = lambda.service.hold(key);
    if (random() < 0.5) lambda.clock.after(one([500, 5000]), release);
  }
  const atWork = new Set<string>();
  const begun: SqsRecord[] = [];
  const done = new Set<SqsRecord>();
  const namesOf = (record: SqsRecord) =>
    [keyOf(record) && `key ${keyOf(record)}`, isFifo && `group ${record.attributes.MessageGroupId}`].filter(
      Boolean,
    ) as string[];
  /** What handlers found wrong when they began. Their errors would not fail the test. */
  const wrong: string[] = [];
  const work: Work = async (record, _context, lease) => {
    const key = keyOf(record);
    if (begun.includes(record)) wrong.push(`${record.messageId} is handled twice`);
    if (lease?.key !== key || lease?.held === false) wrong.push(`${record.messageId} is handled without its lease`);
    for (const name of namesOf(record)) if (atWork.has(name)) wrong.push(`two of ${name} are handled at once`);
    begun.push(record);
    for (const name of namesOf(record)) atWork.add(name);
    const { takesMs, fails, loses, ignoresAbort } = plans.get(record) as Plan;
    if (loses && lease) lambda.service.lose(lease.key, 'broken');
    try {
      const ended = loses && lease ? new Promise<never>(() => {}) : lambda.sleep(takesMs);
      const aborted = lease ? [untilAborted(lease.signal)] : [];
      await Promise.race([ended, ...aborted]).catch((error) => {
        if (!ignoresAbort) throw error;
      });
      if (fails) throw new Error('planned');
      if (!lease?.lost) done.add(record);
    } finally {
      for (const name of namesOf(record)) atWork.delete(name);
    }
  };
  const deferred: SqsRecord[] = [];
  const options: Options = {
    ...{ waitMs: one([0, 2000, 60_000]), concurrency: one([1, 2, 4]) },
    defer: (record) => deferred.push(record),
  };
  const handler = handlerOf(lambda, options, work);
  const outcome = await lambda.invoke(handler, { Records }, one([2500, 10_000, 60_000, 900_000]));

  expect(wrong).toEqual([]);
  // A handler without a lease has no signal, and may be killed.
  if (!('killed' in outcome)) {
    const again = Records.filter((record) => !done.has(record));
    if (again.length === Records.length) expect(outcome).toMatchObject({ error: expect.any(Error) });
    else expect(outcome).toEqual(failed(...again.map(({ messageId }) => messageId)));
    for (const key of ['a', 'b', 'c']) expect(await lambda.holds(key), `the lease of ${key}`).toBe(false);
  }
  for (const name of new Set(Records.flatMap(namesOf))) {
    const places = begun.filter((record) => namesOf(record).includes(name)).map((record) => Records.indexOf(record));
    expect(places, `the order of ${name}`).toEqual([...places].sort((left, right) => left - right));
    if (!name.startsWith('group')) continue;
    const members = Records.filter((record) => namesOf(record).includes(name));
    const firstFailure = members.findIndex((record) => !done.has(record));
    if (firstFailure >= 0) for (const later of members.slice(firstFailure + 1)) expect(begun).not.toContain(later);
  }
  for (const record of deferred) expect(begun).not.toContain(record);
  return {
    batches: 1,
    fifo: Number(isFifo),
    killed: Number('killed' in outcome),
    thrown: Number('error' in outcome),
    deferred: deferred.length,
    done: done.size,
    failed: begun.length - done.size,
  };
}

it('a random batch never breaks an order, a lease or a promise of redelivery', async () => {
  const happened: Record<string, number> = {};
  const count = rounds(1000);
  for (let round = 0; round < count; round++) {
    const seed = testSeed() + round;
    const counted = await playBatch(seededRandom(seed)).catch((error: Error) => {
      error.message = `SEED=${seed} ROUNDS=1 repeats this batch: ${error.message}`;
      throw error;
    });
    for (const [what, number] of Object.entries(counted)) happened[what] = (happened[what] ?? 0) + number;
  }
  if (count < 1000) return;
  for (const [what, number] of Object.entries(happened)) expect(number, what).toBeGreaterThan(0);
});
