import { afterAll, describe, expect, it } from 'vitest';
import { acquire as acquireKey } from '../../shared/locks/acquire.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
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
