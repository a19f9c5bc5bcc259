import { afterAll, expect, it } from 'vitest';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { acquire as acquireOrPark } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { call } from '../support/emulators/aws.ts';
import { startCallbackDouble } from '../support/emulators/callbacks.ts';
import { before, stepped } from '../support/faults/mortal.ts';
import { aFew } from '../support/time/rounds.ts';
import type { Grant, LineWorld } from './world.ts';

/** More requests than these calls send, so that the race before each of them is played. */
const MAX_STEPS = 30;

const MEETS_RELEASE = 'the second park before each step of a release';

/** Two parks of one callback, and one release of the holder before them between each pair of steps. */
export async function racesOfCallbacks(lineWorld: LineWorld) {
  let now = () => 0;
  const double = await startCallbackDouble(() => now());
  const { callbacks } = double;
  const lambda = durableFunctions({ endpoint: double.endpoint, region: 'us-east-1' });
  const world = await lineWorld({
    durableFunctions: async () => lambda,
    executions: { ...ANY_EXECUTION, durableFunctions: '*' },
  });
  const { acquire, release, repair, see, rows, newKey, terms, timeline, dependencies, heartbeat } = world;
  now = () => timeline.now();
  stepped(dependencies.dynamodb);
  stepped(lambda.client);
  afterAll(() => double.stop());
  const input = acquireInput();
  const inLine = acquireOrPark(dependencies);

  const newCallback = (key: string, holder: string) => {
    const execution = callbacks.begin().arn;
    const callback = callbacks.create(execution);
    const submit = async () => {
      timeline.advance(1);
      const asked = { key, holder, execution, ttlSeconds: 60, callbackId: callback.id, ...terms };
      return inLine(input.parse(asked), call());
    };
    return { callback, submit };
  };
  type Parties = Awaited<ReturnType<typeof parties>>;
  /** A holder, a callback that is submitted twice, and another callback. */
  const parties = async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 600 });
    const [twice, next] = [newCallback(key, 'twice'), newCallback(key, 'next')];
    return { key, twice, next, ends: () => release(first) };
  };
  const grantOf = ({ callback }: ReturnType<typeof newCallback>): Grant => {
    if (callback.result?.outcome !== 'succeeded') throw new Error(`no grant: ${JSON.stringify(callback.result)}`);
    return JSON.parse(callback.result.result);
  };

  const RACES: Record<string, (race: Parties, at: number) => Promise<boolean>> = {
    'a release before each step of the first park': async ({ twice, next, ends }, at) => {
      const met = await before(at, ends, twice.submit);
      await next.submit();
      await twice.submit();
      return met;
    },
    'a release before each step of the second park': async ({ twice, next, ends }, at) => {
      await twice.submit();
      await next.submit();
      return before(at, ends, twice.submit);
    },
    [MEETS_RELEASE]: async ({ twice, next, ends }, at) => {
      await twice.submit();
      await next.submit();
      return before(at, twice.submit, ends);
    },
  };

  it.each(aFew(1, Object.keys(RACES)))('%s grants the callback once, and then the next one', async (name) => {
    const race = RACES[name] as (typeof RACES)[string];
    let steps = 0;
    for (let goesOn = true; goesOn && steps < MAX_STEPS; steps++) {
      const all = await parties();
      const { key, twice, next } = all;
      goesOn = await race(all, steps);
      if (!goesOn && name !== MEETS_RELEASE) await all.ends();
      timeline.advance(11_000); // the schedule now notifies those whom the calls have left out
      await repair(key);
      const grant = grantOf(twice);
      const context = `${name}, step ${steps}`;
      expect([(await see(key)).fence, next.callback.result], context).toEqual([grant.fence, undefined]);
      expect(await heartbeat(grant), context).toMatchObject({ holder: 'twice' });
      await release(grant);
      await repair(key);
      const other = grantOf(next);
      expect(other.fence, context).toBeGreaterThan(grant.fence);
      await release(other);
      expect([await rows(key), (await see(key)).holder], context).toEqual([[], undefined]);
    }
    expect(steps).toBeGreaterThan(2);
  });
}
