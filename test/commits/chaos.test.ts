import { describe, expect, it } from 'vitest';
import { systemClock } from '../../shared/clock.ts';
import type { Fault, Requests } from '../support/aws.ts';
import { commitWorld } from '../support/commits.ts';
import { seededRandom, testSeed } from '../support/seed.ts';

const WRITERS = 3;
const COMMITS_EACH = 12;

/** When a repeat is asked no more: of a commit that others displaced and outran, nothing tells. */
const MAX_DOUBTS = 20;

const CHAIN = 8;

/** One try in four goes wrong, in a way that seed decides. */
function chaos(requests: Requests, random: () => number): void {
  const lost =
    (sent: boolean): Fault =>
    async (send) => {
      if (sent) await send();
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    };
  const faults: Fault[] = [
    lost(true),
    lost(false),
    'error500',
    { name: 'SlowDown', status: 503 },
    { name: 'ConditionalRequestConflict', status: 409 },
  ];
  const pick = (): Fault => (random() < 0.25 ? (faults[Math.floor(random() * faults.length)] ?? 'none') : 'none');
  // A list that never runs out.
  requests.faults = { shift: pick } as unknown as Fault[];
}

describe.each(['dynamo', 'native'] as const)('writers of one log under faults, protocol %s', async (protocol) => {
  const world = await commitWorld({ protocol, clock: systemClock });

  it('find every commit that was told to have landed in it once, and no other', async () => {
    const seed = testSeed();
    const path = `log/${seed}`;
    await world.commit({ path, ifNoneMatch: '*', body: 'begin' });
    const told = { landed: [] as string[], refused: [] as string[], nothing: [] as string[] };
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => append(writer, seededRandom(seed + writer))));

    const lines = (await world.body(path))?.split('\n').slice(1) ?? [];
    const untold = told.nothing.filter((id) => lines.includes(id));
    expect([seed, lines.toSorted()]).toEqual([seed, [...told.landed, ...untold].toSorted()]);
    expect([seed, told.refused.filter((id) => lines.includes(id))]).toEqual([seed, []]);
    expect(lines.length).toBeGreaterThanOrEqual(COMMITS_EACH * WRITERS);

    /** Without records nothing tells of a commit that landed, once its object's chain of eight has forgotten it. */
    async function isOutrun(commitId: string): Promise<boolean> {
      if (protocol !== 'native') return false;
      const standing = (await world.body(path))?.split('\n') ?? [];
      return standing.includes(commitId) && standing.length - standing.indexOf(commitId) > CHAIN;
    }

    async function append(writer: number, random: () => number): Promise<void> {
      const service = world.another();
      chaos(service.objects, random);
      chaos(service.records, random);
      for (let done = 0, tries = 0; done < COMMITS_EACH; tries++) {
        const commitId = `${writer}-${tries}`;
        const { etag } = await world.read(path);
        const before = await world.body(path);
        const what = await outcome({ path, ifMatch: etag, body: `${before}\n${commitId}`, commitId });
        told[what].push(commitId);
        if (what === 'landed') done += 1;
      }

      /** Asks again with the same commit id until it is told, or clearly never will be. */
      async function outcome(input: { commitId: string; [field: string]: unknown }): Promise<keyof typeof told> {
        for (let doubts = 0; ; ) {
          try {
            await service.commit(input);
            return 'landed';
          } catch (error) {
            const { code } = error as { code: string };
            if (code === 'PreconditionFailed') return (await isOutrun(input.commitId)) ? 'nothing' : 'refused';
            if (code === 'OutcomeUnknown' && ++doubts === MAX_DOUBTS) return 'nothing';
            expect([seed, ['OutcomeUnknown', 'Unavailable', 'Throttled']]).toEqual([
              seed,
              expect.arrayContaining([code]),
            ]);
          }
        }
      }
    }
  });
});
