import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import { type Entry, isUnknown, saysNothing, type Violation } from '../history.ts';
import { exclusive } from './leases.ts';

export const ONCE_CALLS = new Set([
  ...['onceBegin', 'onceComplete', 'onceForget', 'readOnce'],
  ...['heartbeat', 'release', 'breakLease', 'effect'],
]);

export const ONE_WORKER = 'one worker at a time works for a slot';
export const ONE_RESULT = 'a slot has one result, and every caller receives it';
export const DONE_ONCE = 'no caller begins a slot that is done, or an earlier slot';
export const NO_ZOMBIE = 'no worker stores a result after its run has ended';
export const SLOT_KEPT = 'a caller that waits over the end of a period works for the period of its first call';
export const NOT_SKIPPED = 'a caller that is early at the beginning of a period works for that period';
export const STORED = 'a result is stored, unless the run was taken over, released or broken';
const FENCES_RISE = 'the fence of each run is higher';

/** The result of a slot, as a call was answered. */
interface Answered {
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
    ...slotKept(entries, facts),
    ...(facts.withinBound ? notSkipped(entries) : []),
    ...stored(entries),
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

/** The results of slots, as callers were answered. */
function answersOf(entries: readonly Entry[]): Answered[] {
  return entries.flatMap((entry): Answered[] => {
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
  const answers = answersOf(entries);
  const given = entries.filter(({ call }) => call === 'onceComplete');
  for (const [at, { slot, result, entry }] of answers.entries()) {
    if (!given.some(({ input, calledAt }) => input.result === result && calledAt.moment < answeredAt(entry)))
      return [{ promise: ONE_RESULT, detail: `slot ${slot} has ${result}, which no worker stored`, entries: [entry] }];
    const other = answers.slice(at + 1).find((one) => one.slot === slot && one.result !== result);
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
  const done = [...answersOf(entries), ...superseded];
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

/** No call stores a result after its run was released or another run has begun. A repeat does not store anything. */
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

/** How early a period begins: a tenth of the period. */
const EARLY_MS = 1000;
/** A call without a fault reaches the service within this time. */
const UNDER_WAY_MS = 100;

/** A worker that was refused once works for the slot of its first call. */
function slotKept(entries: readonly Entry[], { spreadMs }: WorldFacts): Violation[] {
  const patient = entries.filter(({ call, input }) => call === 'onceBegin' && input.isPatient === true);
  return patient.flatMap((entry) => {
    const first = patient.find((one) => one.input.requestId === entry.input.requestId && one.outcome === 'LeaseHeld');
    if (!first?.answeredAt || entry.outcome !== 'ok' || first.calledAt.moment >= entry.calledAt.moment) return [];
    const startMs = Date.parse(String(entry.body?.slot)) - BEGIN;
    const arrivedMs = first.faults.length > 0 ? first.answeredAt.ms : first.calledAt.ms + UNDER_WAY_MS;
    if (startMs <= arrivedMs + EARLY_MS + spreadMs) return [];
    const detail = `${entry.actor} waits since ${first.calledAt.ms.toFixed(0)} ms, and is answered for ${entry.body?.slot}`;
    return [{ promise: SLOT_KEPT, detail, entries: [first, entry] }];
  });
}

function notSkipped(entries: readonly Entry[]): Violation[] {
  return entries.flatMap((entry) => {
    const { input, outcome, body } = entry;
    if (input.firedFor === undefined || outcome !== 'ok') return [];
    if (Date.parse(String(body?.slot)) >= Date.parse(String(input.firedFor))) return [];
    const detail = `${entry.actor} was to work for ${input.firedFor}, and was answered for ${body?.slot}`;
    return [{ promise: NOT_SKIPPED, detail, entries: [entry] }];
  });
}

/** The result of finished work is dropped only if another worker may have received the slot, or a call has freed it. */
function stored(entries: readonly Entry[]): Violation[] {
  return entries.flatMap((entry) => {
    const { call, outcome, body, input, answeredAt: at } = entry;
    if (call !== 'onceComplete' || outcome !== 'ok' || body?.completed !== false || !at) return [];
    const run = entries.find((one) => isRun(one) && one.body?.leaseId === input.leaseId);
    const fence = Number(run?.body?.fence);
    const isReason = (one: Entry) => {
      if (one.calledAt.moment > at.moment || one === entry) return false;
      const ends = one.call === 'release' && one.input.leaseId === input.leaseId;
      const mayHold = isRun(one) ? Number(one.body?.fence) > fence : isUnknown(one) || one.strays > 0;
      const isRival = one.call === 'onceBegin' && one !== run && mayHold;
      const stores = one.call === 'onceComplete' && one.input.leaseId === input.leaseId;
      return ends || stores || isRival || one.call === 'breakLease' || one.call === 'onceForget';
    };
    if (!run || entries.some(isReason)) return [];
    const detail = `${entry.actor} did the work of ${fence}, and was answered ${body.reason}`;
    return [{ promise: STORED, detail, entries: [run, entry] }];
  });
}
