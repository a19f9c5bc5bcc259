import type { WorldFacts } from '../caller.ts';
import { type Entry, saysNothing, type Violation } from '../history.ts';
import { exclusive } from './leases.ts';

export const ONCE_CALLS = new Set([
  ...['onceBegin', 'onceComplete', 'onceForget', 'readOnce'],
  ...['heartbeat', 'release', 'breakLease', 'effect'],
]);

export const ONE_WORKER = 'one worker at a time works for a slot';
export const ONE_RESULT = 'a slot has one result, and every caller is told that result';
export const DONE_ONCE = 'no caller begins a slot that is done, or an earlier slot';
export const NO_ZOMBIE = 'no worker stores a result after its run has ended';
const FENCES_RISE = 'the fence of each run is higher';

/** What a call was told of a slot that is done. */
interface Told {
  slot: string;
  result: unknown;
  entry: Entry;
}

/** The promises of docs/protocols/once.md that the calls on one key break. */
export function brokenOfOnce(entries: readonly Entry[], facts: WorldFacts): Violation[] {
  return [
    ...(facts.withinBound ? oneWorker(entries) : []),
    ...oneResult(entries),
    ...doneOnce(entries),
    ...noZombie(entries),
    ...fencesRise(entries),
  ];
}

const isRun = ({ call, outcome, body }: Entry): boolean =>
  call === 'onceBegin' && outcome === 'ok' && body?.outcome === 'run';

const oneWorker = (entries: readonly Entry[]): Violation[] =>
  exclusive(entries.flatMap(asLease)).map((one) => ({ ...one, promise: ONE_WORKER }));

/** A run is a lease, and complete ends it. */
function asLease(entry: Entry): Entry[] {
  if (entry.call === 'onceBegin') return isRun(entry) ? [{ ...entry, call: 'acquire' }] : [];
  return [entry.call === 'onceComplete' ? { ...entry, call: 'release' } : entry];
}

/** What callers were told: the result of a slot, or that a later slot is done. */
function toldOf(entries: readonly Entry[]): Told[] {
  return entries.flatMap((entry): Told[] => {
    const { call, input, body = {}, outcome } = entry;
    if (outcome !== 'ok') return [];
    if (call === 'onceComplete' && body.completed) return [{ slot: String(body.slot), result: input.result, entry }];
    if (call === 'onceBegin' && body.outcome === 'done')
      return [{ slot: String(body.slot), result: body.result, entry }];
    return [];
  });
}

const answeredAt = ({ answeredAt: at }: Entry): number => at?.moment ?? Number.POSITIVE_INFINITY;

/** Whether an operator may have forgotten a slot before that moment. */
const mayBeForgotten = (entries: readonly Entry[], before: number): boolean =>
  entries.some((entry) => {
    const { call, calledAt, outcome } = entry;
    const didNothing = saysNothing(entry) || ['NotFound', 'Conflict', 'LeaseHeld'].includes(outcome ?? '');
    return call === 'onceForget' && calledAt.moment < before && !didNothing;
  });

function oneResult(entries: readonly Entry[]): Violation[] {
  const told = toldOf(entries);
  const given = entries.filter(({ call }) => call === 'onceComplete');
  for (const [at, { slot, result, entry }] of told.entries()) {
    if (!given.some(({ input, calledAt }) => input.result === result && calledAt.moment < answeredAt(entry)))
      return [{ promise: ONE_RESULT, detail: `slot ${slot} has ${result}, which no worker stored`, entries: [entry] }];
    const other = told.slice(at + 1).find((one) => one.slot === slot && one.result !== result);
    if (other && !mayBeForgotten(entries, Math.max(answeredAt(entry), answeredAt(other.entry))))
      return [
        {
          promise: ONE_RESULT,
          detail: `slot ${slot} has the results ${result} and ${other.result}`,
          entries: [entry, other.entry],
        },
      ];
  }
  return [];
}

function doneOnce(entries: readonly Entry[]): Violation[] {
  const superseded = entries.flatMap((entry) =>
    entry.outcome === 'ok' && entry.body?.outcome === 'superseded'
      ? [{ slot: String(entry.body.doneSlot), entry }]
      : [],
  );
  const done = [...toldOf(entries), ...superseded];
  for (const run of entries.filter(isRun)) {
    const before = done.find(
      ({ slot, entry }) => String(run.body?.slot) <= slot && answeredAt(entry) < run.calledAt.moment,
    );
    if (before && !mayBeForgotten(entries, answeredAt(run)))
      return [
        {
          promise: DONE_ONCE,
          detail: `${run.actor} begins slot ${run.body?.slot}, and ${before.slot} is done`,
          entries: [before.entry, run],
        },
      ];
  }
  return [];
}

/** A result that a call stored itself: not before, as a repeat is told. */
function noZombie(entries: readonly Entry[]): Violation[] {
  const runs = entries.filter(isRun);
  for (const entry of entries) {
    const { call, outcome, body, input, calledAt } = entry;
    if (call !== 'onceComplete' || outcome !== 'ok' || !body?.completed || body.repeated) continue;
    const fence = runs.find((run) => run.body?.leaseId === input.leaseId)?.body?.fence;
    const successor = runs.find((run) => Number(run.body?.fence) > Number(fence) && answeredAt(run) < calledAt.moment);
    const end = entries.find(
      (one) =>
        one.call === 'release' &&
        one.input.leaseId === input.leaseId &&
        one.body?.released === true &&
        answeredAt(one) < calledAt.moment,
    );
    const before = successor ?? end;
    if (before)
      return [{ promise: NO_ZOMBIE, detail: `${entry.actor} stores the result of ${fence}`, entries: [before, entry] }];
  }
  return [];
}

function fencesRise(entries: readonly Entry[]): Violation[] {
  const runs = entries.filter((entry) => isRun(entry) && entry.body?.repeated === false);
  for (const run of runs) {
    const later = runs.find(
      (one) => answeredAt(run) < one.calledAt.moment && Number(one.body?.fence) <= Number(run.body?.fence),
    );
    if (later)
      return [{ promise: FENCES_RISE, detail: `${later.body?.fence} after ${run.body?.fence}`, entries: [run, later] }];
  }
  return [];
}
