import type { Caller } from '../caller.ts';
import { CERTAIN_AFTER_MS, type Other, stuck } from '../capability.ts';
import type { Entry, Violation } from '../history.ts';

// What all capabilities with a line have in common.

const MINUTE_MS = 60_000;
/** Each parked task may end while it has the lease, and the schedule needs a minute to find each end. */
const MAX_MINUTES = 40;

async function repairAfterAMinute(caller: Caller): Promise<void> {
  await caller.sleep(MINUTE_MS);
  await caller.call('repairQueues', {});
}

export const schedule = (name: string, steps: number): Other => ({ name, steps, act: repairAfterAMinute });

const isAnybodyThere = ({ world }: Caller): boolean => {
  const ended = new Set<string>();
  for (const { call, actor } of world.entries)
    if (call === 'executionEnds') ended.add(actor);
    else if (call === 'executionRedriven') ended.delete(actor);
  return world.entries.some(({ call, actor }) => call === 'task' && !ended.has(actor));
};

/** Runs the schedule for at least `least` minutes, and until no task waits. */
export async function repairUntilNobodyWaits(
  caller: Caller,
  { min, max = MAX_MINUTES }: { min: number; max?: number },
): Promise<void> {
  for (let minutes = 1; minutes <= max; minutes++) {
    await repairAfterAMinute(caller);
    if (minutes >= min && !isAnybodyThere(caller)) return;
  }
}

/** After this, no earlier call keeps a caller from a key. All faults must have stopped. */
export async function settleLines(caller: Caller, min: number): Promise<void> {
  await repairUntilNobodyWaits(caller, { min });
  await caller.sleep(CERTAIN_AFTER_MS + caller.world.facts.spreadMs);
  await caller.call('repairQueues', {});
}

export const stuckOn = (entries: readonly Entry[], keys: readonly string[]): Violation[] =>
  stuck(
    entries.filter(({ input, call }) => keys.includes(String(input.key)) || call === 'repairQueues'),
    'no key is stuck',
  );

export const idFor = (caller: Caller): string => Math.floor(caller.random() * 1e9).toString(36);

/** A caller parks a token that no task has. Each caller that may acquire can do that. */
export async function parkJunk(
  caller: Caller,
  key: string,
  ttls: readonly number[],
  terms = () => ({}),
): Promise<void> {
  caller.strikes('junkTicket', 1);
  const id = idFor(caller);
  const request = { key, holder: `junk/${id}`, requestId: id, ttlSeconds: caller.pick(ttls), taskToken: `junk-${id}` };
  await caller.call('acquire', { ...request, ...terms() });
}

/** An operator lists who is in line, and cancels one of them. */
export async function cancelOne(caller: Caller, key: string): Promise<void> {
  const answer = await caller.call('readLeases', { key, waiters: 'true' });
  const { waiters = [] } = (answer?.body ?? {}) as { waiters?: { ticket: string }[] };
  if (waiters.length > 0) await caller.call('cancelWaiter', { key, ticket: caller.pick(waiters).ticket });
}
