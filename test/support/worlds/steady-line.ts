import { acquireLease } from '../../../shared/leases/acquire.ts';
import { acquireInput } from '../../../shared/locks/inputs.ts';
import { call } from '../emulators/aws.ts';
import { Timeline } from '../time/timeline.ts';
import { failure } from './leases.ts';
import { queueWorld } from './line.ts';

/** queueWorld on a timeline, with calls in line that look at the same moments each time. */
export async function steadyLineWorld() {
  const timeline = new Timeline();
  const world = await queueWorld({ clock: timeline });
  const inputOfAcquire = acquireInput();
  /** A call that meets the same chance each time. With the least it looks each 25 milliseconds from its arrival on. */
  const steady = (key: string, more: object = {}, chance = 0) => {
    const dependencies = { ...world.dependencies, ids: { ...world.dependencies.ids, random: () => chance } };
    const asked = { key, holder: 'b', requestId: 'r', ttlSeconds: 10, waitSeconds: 20 };
    return acquireLease(dependencies)(inputOfAcquire.parse({ ...asked, ...more }), call());
  };
  return {
    ...world,
    timeline,
    steady,
    /** How a steady call fails, and how long after it came. */
    refusedAfter: async (key: string, more: object = {}) => {
      const from = timeline.now();
      const { code, context } = await failure(steady(key, more));
      return { code, context, afterMs: timeline.now() - from };
    },
  };
}
