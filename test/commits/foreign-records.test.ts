import { describe, expect, it } from 'vitest';
import type { Fault } from '../support/aws.ts';
import { commitWorld } from '../support/commits.ts';
import { failure } from '../support/leases.ts';
import { networkError } from '../support/network.ts';
import { ObjectStoreWriter } from '../support/object-store.ts';

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
  /** A writer of the Rust crate takes the record over from `generation`, and dies. */
  const takesOver = (w: World, generation?: number) => writer(w).lock(path, undefined, generation);
  /** A call of ours meets the record, and does not wait for it. */
  const meets = async (w: World, input: object = first) => expect(await codeOf(w, input)).toBe('CommitInProgress');
  /** A write of ours whose answer never comes, nor is what became of it seen. */
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
  ])('are definite where a record that was seen is %s', async (_, takeOvers) => {
    const w = await world();
    await takesOver(w);
    for (let generation = 0; generation < takeOvers; generation++) {
      await meets(w);
      await takesOver(w, generation);
    }
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'PreconditionFailed', 'PreconditionFailed');
  });

  it('are definite where our own record came after such records', async () => {
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

  it('say that they cannot tell where nobody saw the record before', async () => {
    const w = await world();
    await tries(w, first);
    await takesOver(w, 0);
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'OutcomeUnknown', 'OutcomeUnknown');
  });

  it('say so where the record that was seen had taken the place of one of ours', async () => {
    const w = await world();
    await tries(w, first);
    await takesOver(w, 0);
    await meets(w, other);
    await takesOver(w, 1);
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'OutcomeUnknown', 'OutcomeUnknown');
  });

  it('say so where a record of ours came between', async () => {
    const w = await world();
    await takesOver(w);
    const { retryAfterMs } = (await failure(w.commit(first))).context;
    w.clock.advance(Number(retryAfterMs));
    await tries(w, first);
    await takesOver(w, 1);
    await w.rawPut(path, 'foreign');
    await expectBoth(w, 'OutcomeUnknown', 'OutcomeUnknown');
  });

  it.each([3599, 3601])('say so where TTL may have deleted the record that was seen (%i s later)', async (seconds) => {
    const w = await world();
    await takesOver(w);
    await meets(w);
    const isOver = seconds > 3600;
    w.clock.advance(seconds * 1000);
    if (isOver) {
      // Another one begins in its place, is taken over, and looks as the successor of the one that was seen.
      await w.deleteRecord(path);
      await tries(w, first);
    }
    await takesOver(w, 0);
    await w.rawPut(path, 'foreign');
    const expected = isOver ? 'OutcomeUnknown' : 'PreconditionFailed';
    await expectBoth(w, expected, expected);
  });
});
