import { afterAll, describe, expect, it } from 'vitest';
import { look } from '../../shared/leases/holder-look.ts';
import { readRecord } from '../../shared/leases/read-record.ts';
import { acquire as acquireKey } from '../../shared/locks/acquire.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { lookAtPermits } from '../../shared/permits/holder-look.ts';
import { readPool } from '../../shared/permits/read.ts';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
afterAll(() => world.steps.stop());
const { dependencies, clock, steps } = world;
const input = acquireInput();
const enter = acquireKey(dependencies);
const acquire = (asked: object) => enter(input.parse({ holder: 'tester', ...asked }), call());

/** What the holder asks for, and what a caller of the other kind asks for. */
const KINDS: [name: string, own: object, other: object][] = [
  ['lease', {}, { limit: 2 }],
  ['permit', { limit: 2 }, {}],
];

describe('a bound grant of the other kind', () => {
  it.each(KINDS)(
    'a caller whose look frees a bound %s of the other kind changes the kind, if the event is lost',
    async (name, own, other) => {
      const key = `dead bound ${name}`;
      const execution = steps.newExecution('RUNNING');
      await acquire({ key, holder: 'wf', execution, bound: true, taskToken: steps.newTask().token, ...own });
      clock.advance(1000);
      expect(await failure(acquire({ key, ...other }))).toMatchObject({ code: 'WrongKind', context: { holder: 'wf' } });
      steps.end(execution, 'SUCCEEDED');
      clock.advance(60_001);
      expect(await acquire({ key, ...other })).toMatchObject({ holder: 'tester' });
    },
  );
});

describe('a grant that its caller has not claimed yet', () => {
  const unclaimed = { claimTtlMs: 600_000 };
  const LOOKS: [name: string, own: object, look: (key: string, more: object) => Promise<{ ended: number }>][] = [
    [
      'lease',
      {},
      async (key, more) => look(dependencies, { ...(await readRecord(dependencies, key, call())), ...more }, call()),
    ],
    [
      'permit',
      { limit: 2 },
      async (key, more) => {
        const pool = await readPool(dependencies, key, call());
        const entries = pool.entries.map((entry) => ({ ...entry, ...more }));
        return lookAtPermits(dependencies, { record: { ...pool, entries } }, call());
      },
    ],
  ];

  it.each(LOOKS)(
    'a look asks nothing about an unclaimed %s, which ends with the grant window',
    async (name, own, looks) => {
      const key = `unclaimed ${name}`;
      const execution = steps.newExecution('RUNNING');
      await acquire({ key, holder: 'wf', execution, bound: true, taskToken: steps.newTask().token, ...own });
      steps.end(execution, 'SUCCEEDED');
      clock.advance(60_001);
      steps.described.length = 0;
      expect([await looks(key, unclaimed), steps.described]).toMatchObject([{ ended: 0 }, []]);
      expect([await looks(key, {}), steps.described]).toMatchObject([{ ended: 1 }, [execution]]);
    },
  );
});
