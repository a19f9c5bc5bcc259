import { describe, expect, it } from 'vitest';
import { seededIds } from '../support/chance/seed.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { commitWorld, foreignRecord } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';
import { ObjectStoreWriter } from '../support/worlds/object-store.ts';

/** timeout × rate + 2 × skew, and one more because the wait must be longer than that. */
const WAIT_MS = 20_000 * 3 + 2 * 500 + 1;

describe('a foreign record', async () => {
  const world = await commitWorld();
  const { clock, putRecord, rawRecord } = world;
  const create = (path: string, more: object = {}, service: Pick<typeof world, 'commit'> = world) =>
    service.commit({ path, ifNoneMatch: '*', body: 'mine', ...more });

  it('a foreign record is left alone for its timeout, counted across all invocations', async () => {
    await putRecord(foreignRecord('wait'));
    expect(await failure(create('wait'))).toMatchObject({
      code: 'CommitInProgress',
      context: { path: 'wait', generation: 0, retryAfterMs: WAIT_MS },
    });
    expect(await rawRecord('wait', 'holdfast:first-sight:*')).toMatchObject({
      generation: { N: '0' },
      timeout: { N: '20000' },
      record_ttl: { N: '2000000000' },
      foreign_from: { N: '0' },
      seen_at: { N: String(clock.now()) },
      // The note lives for as long as a record of Holdfast, counted from the end of the wait.
      ttl: { N: String(Math.ceil((clock.now() + WAIT_MS - 1) / 1000) + 3600) },
    });
    clock.advance(WAIT_MS - 1);
    expect(await failure(create('wait', {}, world.another()))).toMatchObject({ context: { retryAfterMs: 1 } });
    clock.advance(1);
    expect(await create('wait', {}, world.another())).toMatchObject({ generation: 1, repeated: false });
    expect(await rawRecord('wait')).toMatchObject({ generation: { N: '1' }, commit_id: { S: expect.any(String) } });
  });

  it.each<[string, { generation?: number; timeout?: number; ttl?: number }]>([
    ['generation', { generation: 1 }],
    ['ttl, as of a record that TTL removed and another began', { ttl: 2_000_000_001 }],
    ['timeout', { timeout: 10_000 }],
  ])('a foreign record is waited for again if it has another %s', async (_, change) => {
    const path = `moved/${Object.keys(change)}`;
    await putRecord(foreignRecord(path));
    await failure(create(path));
    clock.advance(WAIT_MS - 1);
    await putRecord(foreignRecord(path, change));
    clock.advance(1);
    const wait = (change.timeout ?? 20_000) * 3 + 1001;
    expect(await failure(create(path))).toMatchObject({ code: 'CommitInProgress', context: { retryAfterMs: wait } });
    clock.advance(wait);
    expect(await create(path)).toMatchObject({ repeated: false });
  });

  it.each<[string, Parameters<typeof foreignRecord>[1]]>([
    ['ttl', { ttl: 2_000_000_009 }],
    ['timeout', { timeout: 30_000 }],
    ['generation', { generation: 5 }],
  ])('a foreign record with another %s is not taken over at the last moment', async (what, change) => {
    const path = `swapped/${what}`;
    await putRecord(foreignRecord(path));
    await failure(create(path));
    clock.advance(WAIT_MS);
    const { commit, records } = world.another();
    // The first write is the new record, which loses, and the second is that of the first sight.
    records.faultsOf.PutItem = [
      'none',
      'none',
      async (send) => {
        await putRecord(foreignRecord(path, change));
        return send();
      },
    ];
    expect((await failure(create(path, {}, { commit }))).code).toBe('CommitInProgress');
    expect(await rawRecord(path)).toEqual(foreignRecord(path, change));
  });

  it('a record of Holdfast that came last is not taken for a foreign one', async () => {
    const path = 'swapped/ours';
    await putRecord(foreignRecord(path));
    await failure(create(path));
    clock.advance(WAIT_MS);
    const { commit, records } = world.another();
    records.faultsOf.PutItem = [
      'none',
      'none',
      async (send) => {
        await putRecord({ ...foreignRecord(path), commit_id: { S: 'theirs' }, written_at: { N: '1' } });
        return send();
      },
    ];
    expect(await create(path, {}, { commit })).toMatchObject({ generation: 1 });
    expect(records.sent).toHaveLength(4);
    expect(await rawRecord(path)).toMatchObject({ commit_id: { S: expect.stringMatching(/ theirs$/) } });
  });

  it.each([
    ['generation', '9007199254740991'],
    ['generation', '1.5'],
    ['timeout', '9007199254740993'],
    ['timeout', '-1'],
  ])('a foreign record whose %s is %s is refused by its path', async (attribute, value) => {
    const path = `range/${attribute}/${value}`;
    await putRecord({ ...foreignRecord(path), [attribute]: { N: value } });
    const refused = { code: 'Unavailable', message: expect.stringContaining(path), context: { retryAfterMs: 1000 } };
    expect(await failure(create(path))).toMatchObject(refused);
    expect(await failure(world.read(path))).toMatchObject(refused);
    expect(await rawRecord(path)).toEqual({ ...foreignRecord(path), [attribute]: { N: value } });
  });

  it('a foreign record that asks for years may be checked again after a day', async () => {
    await putRecord(foreignRecord('years', { timeout: 9_007_199_254_740_990 }));
    expect(await failure(create('years'))).toMatchObject({
      code: 'CommitInProgress',
      context: { retryAfterMs: 86_400_000 },
    });
  });

  it('a foreign record counts its own timeout, not that of a caller or Holdfast', async () => {
    await putRecord(foreignRecord('short', { timeout: 100 }));
    expect(await failure(create('short'))).toMatchObject({ context: { retryAfterMs: 300 + 1001 } });
  });

  it('a foreign record is waited for inside the call for as long as asked', async () => {
    await putRecord(foreignRecord('patient', { timeout: 1000 }));
    const before = clock.now();
    expect((await failure(create('patient', { waitSeconds: 2 }))).code).toBe('CommitInProgress');
    expect(clock.now() - before).toBe(2000);
    expect(await create('patient', { waitSeconds: 10 })).toMatchObject({ generation: 1 });
    expect(clock.now() - before).toBe(4001);
  });

  it('a foreign record is not waited for beyond the end of the invocation', async () => {
    await putRecord(foreignRecord('impatient'));
    const endsAt = clock.now() + 3000;
    const short = call({ timeLeftMs: () => endsAt - clock.now() });
    const input = { path: 'impatient', ifNoneMatch: '*', body: 'mine', waitSeconds: 20 };
    expect((await failure(world.commit(input, short))).code).toBe('CommitInProgress');
    expect(clock.now()).toBe(endsAt - 1000);
  });

  it('a foreign record ends the wait at once when its writer’s object appears', async () => {
    await putRecord(foreignRecord('appears'));
    const before = clock.now();
    clock.at(before + 3000, () => world.rawPut('appears', 'theirs'));
    const lost = await failure(create('appears', { waitSeconds: 20 }));
    expect(lost).toMatchObject({ code: 'PreconditionFailed', context: { etag: expect.stringMatching(/^"/) } });
    expect(clock.now() - before).toBeLessThan(4000);
  });

  it('a foreign record that TTL removes during the wait does not block', async () => {
    await putRecord(foreignRecord('vanishes', { timeout: 2000 }));
    clock.at(clock.now() + 1000, () => world.deleteRecord('vanishes'));
    expect(await create('vanishes', { waitSeconds: 20 })).toMatchObject({ generation: 0 });
  });

  it('a foreign record without timeout or generation is waited for', async () => {
    await putRecord({ path: { S: 'odd' }, etag: { S: '*' } });
    expect(await failure(create('odd'))).toMatchObject({ context: { generation: 0, retryAfterMs: WAIT_MS } });
    clock.advance(WAIT_MS);
    expect(await create('odd')).toMatchObject({ generation: 1 });
  });

  it('a foreign record that always changes is polled with pauses, and not forever', async () => {
    const path = 'moving';
    const { commit, records } = world.another();
    let generation = 0;
    records.faultsOf.PutItem = Array.from({ length: 1000 }, () => async (send: () => Promise<unknown>) => {
      await putRecord(foreignRecord(path, { timeout: 0, generation: generation++ }));
      return send();
    });
    const before = clock.now();
    const ended = await failure(create(path, { waitSeconds: 20 }, { commit }));
    expect(['Unavailable', 'CommitInProgress']).toContain(ended.code);
    expect(records.sent.length).toBeLessThan(200);
    expect(clock.now() - before).toBeGreaterThan(1000);
  });

  it('the first sight of a foreign record takes one write, without a read', async () => {
    await putRecord(foreignRecord('sight'));
    const { commit, records } = world.another();
    expect((await failure(create('sight', {}, { commit }))).code).toBe('CommitInProgress');
    expect(records.sent).toEqual(['PutItem', 'PutItem']);
    expect(await rawRecord('sight')).toEqual(foreignRecord('sight'));
  });

  it.each([
    [0, [25, 50, 100, 200, 250, 250]],
    [0.5, [38, 75, 150, 300, 375, 375]],
  ])('a foreign record is polled after 50 ms, then less and less often (%d)', async (random, pauses) => {
    const path = `polls/${random}`;
    await putRecord(foreignRecord(path));
    const { commit, objects } = world.another({ ids: { ...seededIds(1), random: () => random } });
    const polls: number[] = [];
    objects.faultsOf.HeadObject = Array.from({ length: 8 }, () => (send: () => Promise<unknown>) => {
      polls.push(clock.now());
      return send();
    });
    expect((await failure(create(path, { waitSeconds: 2 }, { commit }))).code).toBe('CommitInProgress');
    const between = polls.slice(1).map((at, index) => at - (polls[index] ?? 0));
    // The writer of the first record may have crashed, so the second poll comes at once.
    expect(between.slice(0, 7)).toEqual([0, ...pauses]);
  });
});

describe('a record of Holdfast', async () => {
  const world = await commitWorld();

  it('a record of Holdfast does not block a call of Holdfast', async () => {
    const dying = world.another();
    let died = () => {};
    const death = new Promise<void>((resolve) => {
      died = resolve;
    });
    dying.objects.faultsOf.PutObject = [
      () => {
        died();
        return new Promise(() => {});
      },
    ];
    dying.commit({ path: 'abandoned', ifNoneMatch: '*', body: 'dead' });
    await death;
    const before = world.clock.now();
    expect(await world.commit({ path: 'abandoned', ifNoneMatch: '*', body: 'alive' })).toMatchObject({ generation: 1 });
    // The call checks once more for a writer that is still at work, but does not wait for the timeout.
    expect(world.clock.now() - before).toBeLessThanOrEqual(50);
    await world.rawDelete('abandoned');
    world.clock.advance(1000);
    const later = world.clock.now();
    expect(await world.commit({ path: 'abandoned', ifNoneMatch: '*', body: 'again' })).toMatchObject({ generation: 2 });
    expect(world.clock.now()).toBe(later);
  });

  it.each([
    ['of this moment', 0, 'theirs', true],
    ['of 999 ms ago', 999, 'theirs', true],
    ['of a second ago', 1000, 'theirs', false],
    ['that does not say since when', undefined, 'theirs', false],
    ['of this moment for the same commit', 0, 'mine', false],
  ])('a record of Holdfast (%s) is read again only while its writer may work', async (...row) => {
    const [title, age, commitId, restsFirst] = row;
    const path = `age/${title}`;
    const { commit, objects } = world.another();
    const before = world.clock.now();
    const writtenAt = age !== undefined && { written_at: { N: String(before - age) } };
    await world.putRecord({ ...foreignRecord(path), commit_id: { S: commitId }, ...writtenAt });
    const input = { path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
    expect(await commit(input)).toMatchObject({ generation: 1, repeated: false });
    expect(objects.sent).toEqual([...(restsFirst ? ['HeadObject'] : []), 'HeadObject', 'PutObject']);
    expect(world.clock.now() > before).toBe(restsFirst);
  });

  it.each(['answered', 'without an answer'])(
    'a take-over begins again if TTL removes the record of Holdfast (%s)',
    async (how) => {
      const path = `removed/${how}`;
      const { commit, records } = world.another();
      await world.putRecord({ ...foreignRecord(path), commit_id: { S: 'dead' } });
      // The first write is the new record, which loses.
      records.faultsOf.PutItem = [
        'none',
        async (send) => {
          await world.deleteRecord(path);
          if (how === 'answered') return send();
          throw networkError('ECONNRESET', 'read');
        },
      ];
      expect(await commit({ path, ifNoneMatch: '*', body: 'mine' })).toMatchObject({ generation: 0, repeated: false });
      expect(await world.rawRecord(path)).toMatchObject({ generation: { N: '0' } });
    },
  );

  it('a record of Holdfast is in flight until its timeout has passed', async () => {
    const { clock } = world;
    const record = { ...foreignRecord('in-flight'), commit_id: { S: 'c-1' }, written_at: { N: String(clock.now()) } };
    await world.putRecord(record);
    clock.advance(20_000);
    expect((await world.read('in-flight')).inFlight).toMatchObject({ commitId: 'c-1' });
    clock.advance(1);
    expect((await world.read('in-flight')).inFlight).toBeNull();
  });

  it('a record of Holdfast is recognised by its commit_id, whatever its value', async () => {
    await world.putRecord({ ...foreignRecord('typed', { timeout: 0 }), commit_id: { N: '5' } });
    const { commit, records } = world.another();
    expect(await commit({ path: 'typed', ifNoneMatch: '*', body: 'mine' })).toMatchObject({ generation: 1 });
    expect(records.sent).toEqual(['PutItem', 'PutItem']);
  });

  it('a record of Holdfast that never yields is polled with pauses, and not forever', async () => {
    const { commit, records } = world.another();
    await world.putRecord({ ...foreignRecord('stuck'), commit_id: { S: 'dead' } });
    records.faultsOf.PutItem = Array.from({ length: 1000 }, (_, i) => async (send: () => Promise<unknown>) => {
      await world.putRecord({ ...foreignRecord('stuck', { generation: i }), commit_id: { S: `dead-${i}` } });
      return send();
    });
    const before = world.clock.now();
    expect((await failure(commit({ path: 'stuck', ifNoneMatch: '*', body: 'mine' }))).code).toBe('Unavailable');
    expect(records.sent.length).toBeLessThan(60);
    expect(world.clock.now() - before).toBeGreaterThan(1000);
  });

  it('the Rust writer waits for a record of Holdfast before it takes over', async () => {
    const { table, bucket, clock } = world;
    const writer = new ObjectStoreWriter({ table, bucket, clock });
    await world.putRecord({
      ...foreignRecord('ours', { timeout: 2000 }),
      commit_id: { S: 'dead' },
      written_at: { N: String(clock.now()) },
    });
    const before = clock.now();
    expect(await writer.create('ours', 'theirs')).toHaveProperty('etag');
    expect(clock.now() - before).toBeGreaterThan(6000);
    expect(await world.rawRecord('ours')).not.toHaveProperty('commit_id');
    expect((await failure(world.commit({ path: 'ours', ifNoneMatch: '*', body: 'mine' }))).code).toBe(
      'PreconditionFailed',
    );
  });
});

const vanished: Fault = async () => {
  throw networkError('ECONNRESET', 'read');
};

describe('repeats after foreign records', () => {
  const world = () => commitWorld({ commitTimeoutMs: 2000 });
  type World = Awaited<ReturnType<typeof world>>;
  const path = 'foreign';
  const first = { path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
  const other = { ...first, commitId: 'never-used' };
  const codeOf = async (w: World, input: object) => (await failure(w.commit(input))).code;
  const writer = (w: World) => new ObjectStoreWriter({ ...w, clock: w.clock, timeoutMs: 2000 });
  /** A writer of the Rust crate takes the record over from `generation`, and crashes. */
  const takesOver = (w: World, generation?: number) => writer(w).lock(path, undefined, generation);
  /** A call of Holdfast meets the record, and does not wait for it. */
  const meets = async (w: World, input: object = first) => expect(await codeOf(w, input)).toBe('CommitInProgress');
  /** A commit of Holdfast that never arrives, and whose outcome stays unknown. */
  const tries = async (w: World, input: object) => {
    const dying = w.another();
    dying.objects.faultsOf.PutObject = [vanished, vanished, vanished, vanished];
    expect((await failure(dying.commit(input))).code).toBe('OutcomeUnknown');
  };
  const expectBoth = async (w: World, mine: string, unused: string) =>
    expect([await codeOf(w, first), await codeOf(w, other)]).toEqual([mine, unused]);

  it.each([
    ['taken over by another one', 1],
    ['taken over twice, each time seen', 2],
    ['taken over three times, each time seen', 3],
  ])('a repeat is definite if a foreign record that was seen is %s', async (_, takeOvers) => {
    const w = await world();
    await takesOver(w);
    for (let generation = 0; generation < takeOvers; generation++) {
      await meets(w);
      await takesOver(w, generation);
    }
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'PreconditionFailed', 'PreconditionFailed');
  });

  it('a repeat is definite if a record of Holdfast came after foreign records', async () => {
    const w = await world();
    await takesOver(w);
    await meets(w);
    await takesOver(w, 0);
    const { retryAfterMs } = (await failure(w.commit(first))).context;
    w.clock.advance(Number(retryAfterMs));
    expect(await w.commit(first)).toMatchObject({ generation: 2 });
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'OutcomeUnknown', 'PreconditionFailed');
  });

  it('a repeat has an unknown outcome if no call saw the foreign record before', async () => {
    const w = await world();
    await tries(w, first);
    await takesOver(w, 0);
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'OutcomeUnknown', 'OutcomeUnknown');
  });

  it('a repeat is unknown if the foreign record replaced a record of Holdfast', async () => {
    const w = await world();
    await tries(w, first);
    await takesOver(w, 0);
    await meets(w, other);
    await takesOver(w, 1);
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'OutcomeUnknown', 'OutcomeUnknown');
  });

  it('a repeat is unknown if a record of Holdfast came between foreign records', async () => {
    const w = await world();
    await takesOver(w);
    const { retryAfterMs } = (await failure(w.commit(first))).context;
    w.clock.advance(Number(retryAfterMs));
    await tries(w, first);
    await takesOver(w, 1);
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'OutcomeUnknown', 'OutcomeUnknown');
  });

  it.each([3599, 3601])('a repeat is unknown if TTL may have deleted the record (%i s later)', async (seconds) => {
    const w = await world();
    await takesOver(w);
    await meets(w);
    const isOver = seconds > 3600;
    w.clock.advance(seconds * 1000);
    if (isOver) {
      // Another record takes its place, and its successor looks like the successor of the record that was seen.
      await w.deleteRecord(path);
      await tries(w, first);
    }
    await takesOver(w, 0);
    await w.rawPut(path, 'foreign');
    const expected = isOver ? 'OutcomeUnknown' : 'PreconditionFailed';
    await expectBoth(w, expected, expected);
  });

  const TTL = 1_900_000_000;
  const SKEW_MS = 500;
  const seconds = { ttl: TTL };
  const later = { generation: 1 };

  it.each([
    ['that was seen', seconds, later],
    ['that stands there', {}, { ...later, ...seconds }],
  ])('a repeat is definite while no clock shows that TTL may have deleted %s', async (_, first, second) => {
    for (const [before, code] of [
      [1, 'PreconditionFailed'],
      [0, 'OutcomeUnknown'],
    ] as const) {
      const w = await world();
      await w.putRecord(foreignRecord(path, first));
      await meets(w);
      await w.putRecord(foreignRecord(path, second));
      await w.rawPut(path, 'foreign');
      w.clock.set(TTL * 1000 - SKEW_MS - before);
      await expectBoth(w, code, code);
    }
  });

  it('a repeat is definite after several foreign records if each was seen in time', async () => {
    for (const [before, code] of [
      [1, 'PreconditionFailed'],
      [0, 'OutcomeUnknown'],
    ] as const) {
      const w = await world();
      await w.putRecord(foreignRecord(path, seconds));
      await meets(w);
      w.clock.set(TTL * 1000 - SKEW_MS - before);
      await w.putRecord(foreignRecord(path, later));
      await meets(w);
      await w.putRecord(foreignRecord(path, { generation: 2 }));
      await w.rawPut(path, 'foreign');
      await expectBoth(w, code, code);
    }
  });

  it('a repeat is unknown if a record lacks its end, or was not seen', async () => {
    const { ttl: _, ...endless } = foreignRecord(path, later);
    for (const records of [
      [foreignRecord(path), endless],
      [foreignRecord(path), foreignRecord(path, { generation: 2 })],
      [foreignRecord(path), foreignRecord(path, later), foreignRecord(path, { generation: 3 })],
    ]) {
      const w = await world();
      for (const [index, record] of records.entries()) {
        if (index > 0) await meets(w);
        await w.putRecord(record);
      }
      await w.rawPut(path, 'foreign');
      await expectBoth(w, 'OutcomeUnknown', 'OutcomeUnknown');
    }
  });
});
