import { type FaultCounts, type FaultKind, noFaults } from './faults.ts';
import { type Entry, table } from './history.ts';
import type { FaultyService } from './service.ts';
import { shrink } from './shrink.ts';
import { type History, type Plan, planWorld, play } from './world.ts';

export interface Campaign {
  /** The seed of the first history. Each later history has the next seed. */
  seed: number;
  /** The campaign ends at the first of these two, or up to ten times later if a kind of fault has not struck yet. */
  maxHistories: number;
  maxMs: number;
  /** Capabilities to take part; all if there are none. */
  only: readonly string[];
  /** Whether writers of the Rust crate send an unanswered PUT again. */
  foreignRetries?: boolean;
}

export interface Result {
  histories: number;
  operations: number;
  /** How many permits were granted and answered. */
  permits: number;
  counts: FaultCounts;
  /** How many histories ran with clocks further apart than CLOCK_SKEW_MS. */
  beyondBound: number;
  failed: History | undefined;
}

/**
 * Plays histories until time is up or one breaks a promise; as many at once as there are services: while one waits for an
 * emulator, another one goes on.
 */
export async function run(
  { seed, maxHistories, maxMs, only, foreignRetries = false }: Campaign,
  services: readonly FaultyService[],
): Promise<Result> {
  const none = { histories: 0, operations: 0, permits: 0, beyondBound: 0 };
  const result: Result = { ...none, counts: noFaults(), failed: undefined };
  const startedAt = performance.now();
  // On a slow machine a rare fault may need more time.
  const isOver = () => {
    const tookMs = performance.now() - startedAt;
    return tookMs > 10 * maxMs || (tookMs > maxMs && (only.length > 0 || missing(result).length === 0));
  };
  let next = 0;
  await Promise.all(
    services.map(async (service) => {
      while (next < maxHistories && !isOver() && !result.failed) {
        const plan = planWorld(seed + next++, only, { foreignRetries });
        const history = await play(plan, service, result.counts).catch((error: Error) => {
          throw new Error(`seed ${plan.seed}: ${error.message}`, { cause: error });
        });
        result.histories += 1;
        result.operations += history.entries.length;
        result.permits += history.entries.filter(isPermit).length;
        if (!history.plan.facts.withinBound) result.beyondBound += 1;
        if (history.violations.length > 0) result.failed ??= history;
      }
    }),
  );
  return result;
}

const isPermit = ({ outcome, body }: Entry): boolean =>
  outcome === 'ok' && body?.mode !== undefined && body.repeated === false;

/** The kinds of faults that never struck, so that the campaign has not shown that the service withstands them. */
export const missing = ({ counts }: Result): FaultKind[] =>
  Object.entries(counts).flatMap(([kind, count]) => (count === 0 ? [kind as FaultKind] : []));

/** The shortest history found that breaks the same promise: first with fewer steps, then with fewer steps struck, then with right clocks. */
export async function shortest(history: History, service: FaultyService): Promise<History> {
  const [violation] = history.violations;
  let found = history;
  const fails = async (plan: Plan): Promise<boolean> => {
    const played = await play(plan, service, noFaults());
    const isSame = played.violations.some(({ promise }) => promise === violation?.promise);
    if (isSame) found = played;
    return isSame;
  };
  const { steps } = history.plan;
  const fewer = await shrink(steps, (some) => fails({ ...history.plan, steps: some }));
  const calmed = (struck: typeof steps) =>
    fewer.map((step) => (struck.includes(step) ? step : { ...step, faultRate: 0 }));
  const struck = await shrink(fewer, (some) => fails({ ...history.plan, steps: calmed(some) }));
  const plan = { ...history.plan, steps: calmed(struck) };
  await fails({ ...plan, clocks: plan.clocks.map(() => ({ offsetMs: 0, rate: 1, steps: [] })) });
  return found;
}

/** What a person needs to see of a broken promise. */
export function report({ plan, entries, violations }: History): string {
  const marked = new Set(violations.flatMap((violation) => violation.entries.map(({ id }) => id)));
  const [violation] = violations;
  // Calls on other keys cannot be the reason. Calls without a key, such as those of the schedule, can.
  const subject = (input: Readonly<Record<string, unknown>>) => input.key ?? input.path ?? input.alias;
  const subjects = new Set([undefined, ...(violation?.entries.map(({ input }) => subject(input)) ?? [])]);
  const shown = entries.filter(({ input }) => subjects.size === 1 || subjects.has(subject(input)));
  const clocks = plan.clocks.map(({ offsetMs, rate, steps }) => {
    const set = steps.map((step) => `, set to ${step.offsetMs.toFixed(0)} ms at ${(step.atMs / 1000).toFixed(3)}`);
    return `${offsetMs.toFixed(0)} ms x ${rate.toFixed(6)}${set.join('')}`;
  });
  return [
    ...violations.map(({ promise, detail }) => `Broken: ${promise}\n  ${detail}`),
    `Clocks of the machines: ${clocks.join('; ')}. Protocol of commits: ${plan.facts.protocol}. Times in seconds; > marks where it shows.`,
    '',
    table(shown, marked),
  ].join('\n');
}
