import { describe, expect, it } from 'vitest';
import type { Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { type CommitWorld, commitWorld, foreignRecord } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';

const DENIED: Fault = { name: 'AccessDenied', status: 403 };
const INPUT = { ifNoneMatch: '*', body: 'mine', commitId: 'mine' };

/** A try of the record that lands nowhere, and nobody says so. */
const vanished: Fault = async () => {
  throw networkError('ECONNRESET', 'read');
};

describe('a record that is met after a try without an answer', async () => {
  const world = await commitWorld();

  const rows: [string, Parameters<typeof stand>[2]][] = [
    ['of another time', { age: 1 }],
    ['of another generation', { generation: 1 }],
    ['of another commit', { commitId: 'theirs' }],
  ];

  it.each(rows)(
    'a record (%s) that is met after a try without an answer is another call’s, whose write may still land',
    async (title, record) => {
      const path = `held/${title}`;
      await stand(world, path, record);
      const { commit, records, objects } = world.another();
      records.faultsOf.PutItem = [vanished];
      objects.faultsOf.PutObject = [DENIED];
      expect((await failure(commit({ path, ...INPUT }))).code).toBe('Unavailable');
      // It was taken over, and it has to hold others off.
      expect(await world.rawRecord(path)).toMatchObject({
        generation: { N: String((record.generation ?? 0) + 1) },
        timeout: { N: '20000' },
      });
    },
  );

  it.each(rows)(
    'a record (%s) that is met after a try without an answer shows whether this commit was tried before',
    async (title, record) => {
      const path = `named/${title}`;
      await stand(world, path, record);
      const { commit, records, objects } = world.another();
      records.faultsOf.PutItem = [vanished];
      objects.faultsOf.PutObject = [
        async (send) => {
          await world.rawPut(path, 'foreign');
          return send();
        },
      ];
      const code = record.commitId === 'theirs' ? 'PreconditionFailed' : 'OutcomeUnknown';
      expect((await failure(commit({ path, ...INPUT }))).code).toBe(code);
    },
  );

  it('a record of this very try is the call’s own, and delays no other commit once the write was refused', async () => {
    const path = 'own';
    const { commit, records, objects } = world.another();
    records.faultsOf.PutItem = ['lostReply'];
    objects.faultsOf.PutObject = [DENIED];
    expect((await failure(commit({ path, ...INPUT }))).code).toBe('Unavailable');
    expect(await world.rawRecord(path)).toMatchObject({ timeout: { N: '0' } });
  });
});

describe('a record that takes the place of another', async () => {
  const world = await commitWorld();

  it.each([
    ['theirs', 'mine theirs'],
    ['mine', 'mine'],
    ['theirs mine', 'mine theirs'],
    // The blank at the end stands for commits that are not named.
    ['theirs ', 'mine theirs '],
    ['mine ', 'mine '],
  ])(
    'a record that takes the place of another names each commit once that has a write behind it: %j becomes %j',
    async (before, after) => {
      const path = `names/${before}`;
      await stand(world, path, { commitId: before });
      await world.commit({ path, ...INPUT });
      expect((await world.rawRecord(path))?.commit_id).toEqual({ S: after });
    },
  );

  it.each([
    // The first of a path is nobody's successor.
    [0, 'PreconditionFailed'],
    [1, 'OutcomeUnknown'],
  ])(
    'a record that takes the place of another keeps the doubt of a foreign record of generation %i that no call saw begin',
    async (generation, code) => {
      const path = `hidden/${generation}`;
      await world.putRecord(foreignRecord(path, { generation }));
      const { retryAfterMs } = (await failure(world.commit({ path, ...INPUT, commitId: 'taker' }))).context;
      world.clock.advance(Number(retryAfterMs));
      const taker = world.another();
      taker.objects.faultsOf.PutObject = [DENIED];
      expect((await failure(taker.commit({ path, ...INPUT, commitId: 'taker' }))).code).toBe('Unavailable');
      await world.rawPut(path, 'foreign');
      expect((await failure(world.commit({ path, ...INPUT }))).code).toBe(code);
    },
  );
});

/** A record of ours at the path, by default the one that a commit with the id `mine` would write at this instant. */
function stand(
  { clock, putRecord }: CommitWorld,
  path: string,
  { age = 0, generation = 0, commitId = 'mine' }: { age?: number; generation?: number; commitId?: string },
) {
  const writtenAt = { N: String(clock.now() - age) };
  return putRecord({ ...foreignRecord(path, { generation }), commit_id: { S: commitId }, written_at: writtenAt });
}
