import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import { type Entry, isUnknown, saysNothing, timed } from '../history.ts';
import type { Model, Timed } from '../linearizability.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { nameOf } from './line.model.ts';

/** A lock with fences, as far as callers know it. Null stands for any value, because no answer has shown it. */
export interface LeaseState {
  held: Held | null;
  /** The ended leases of this service, which the record may remember. */
  ended: (Pick<Held, 'holder' | 'leaseId' | 'fence' | 'settled'> & { broken: boolean })[];
  /** The holder whose lease was the last to end, until the next grant: the record remembers it. */
  last: string | null;
  /** The highest fence so far. */
  highest: number;
  /** Whether a third-party client has deleted the record, and the highest fence with it. */
  forgotten: boolean;
}

interface Held {
  foreign: boolean;
  /** Unique for each acquisition, as the workload makes them. */
  holder: string;
  /** The lease id, or the version of a third-party client's lease. */
  leaseId: string | null;
  fence: number | null;
  /** In epoch milliseconds, by a clock of the service. */
  expiresAt: number | null;
  /** Whether the call that wrote or claimed the grant was answered, so that the fence does not change any more. */
  settled?: boolean;
  /** Whether the grant of a call in line is perhaps not claimed. It then lasts only for the grant window. */
  unclaimed?: boolean;
}

/** A call of the history, or what a stray request of the call may do besides. */
export interface LeaseOperation extends Timed {
  entry: Entry;
  stray: boolean;
  /** Whether this is a stray request with a lower fence than that of the answer. */
  before?: boolean;
  /** Whether the answer must be about the grant of the stray request, whose fence was then raised. */
  raised?: boolean;
}

/** @param history with all calls that may have written a grant */
export function leaseOperations(
  entries: readonly Entry[],
  { foreignLeases, sweeps }: Pick<WorldFacts, 'foreignLeases' | 'sweeps'>,
  history: readonly Entry[] = entries,
): LeaseOperation[] {
  const servedBeside = servedInLine(history);
  return (
    entries
      // A call in line that failed has left its ticket there, and may still be granted the window.
      .filter((entry) => !saysNothing(entry) || entry.strays > 0 || entry.call === 'clean' || isInLine(entry))
      .flatMap((entry) => {
        const operation = { entry, stray: false, ...timed(entry) };
        const stray = { ...operation, stray: true, answeredAt: Number.POSITIVE_INFINITY };
        // A call in line may have received earlier grants, and not claimed them in time.
        const grants = isInLine(entry) ? new Array<LeaseOperation>(servedBeside(entry)).fill(stray) : [];
        if (saysNothing(entry)) return isInLine(entry) ? grants : [stray];
        if (entry.call === 'clean') return cleaned(entry) ? [operation] : [stray];
        // A try without an answer may have been granted, and broken before the next try.
        const isRefused = ['LeaseLost', 'LeaseHeld', 'Superseded'].includes(entry.outcome ?? '');
        // The record refuses a late try of a granted request, unless another client or a clean-up has removed the record.
        const mayBeGrantedAgain = entry.outcome !== 'ok' || foreignLeases || sweeps;
        const mayBeGranted =
          entry.call === 'acquire' &&
          !isInLine(entry) &&
          ((entry.strays > 0 && mayBeGrantedAgain) || (isRefused && entry.faults.length > 0));
        // The answer `unknown` means that an earlier try may have released.
        const mayHaveReleased = entry.call === 'release' && entry.body?.reason === 'unknown' && entry.faults.length > 0;
        // A try without an answer may have extended the lease before the lease was lost.
        const mayHaveBeaten = entry.call === 'heartbeat' && entry.outcome === 'LeaseLost' && entry.faults.length > 0;
        // If the SDK of a third-party client tries again and fails on its first try, the client reports the lease as lost. It does not refuse late tries.
        const mayBeForeign = entry.foreign && entry.faults.length > 0;
        if (isShownBefore(entry, entries))
          return [
            { ...operation, raised: entry.faults.length === 0 },
            { ...stray, before: true },
          ];
        return !isUnknown(entry) && (mayBeGranted || mayHaveReleased || mayHaveBeaten || mayBeForeign)
          ? [operation, stray]
          : [operation, ...grants];
      })
  );
}

/** @returns how many unanswered grants of its request count for a call in line. The first call of a request counts for all that the record has seen. */
function servedInLine(history: readonly Entry[]): (entry: Entry) => number {
  const landed = history.flatMap((entry) => entry.landed ?? []);
  // Histories that are made by hand have no record.
  if (landed.length === 0) return (entry) => (isUnknown(entry) ? 0 : 1);
  const left = new Map<string, number>();
  for (const one of landed) if (one.what === 'grant') left.set(one.request, (left.get(one.request) ?? 0) + 1);
  return (entry) => {
    const grants = left.get(nameOf(entry)) ?? 0;
    left.delete(nameOf(entry));
    return Math.max(0, isUnknown(entry) ? grants - 1 : grants);
  };
}

/**
 * Whether others were shown a grant of this request with a lower fence than that of its answer. The call was late, and raised the fence. Or a try
 * that got no answer was granted, and that grant had ended and was forgotten, because another caller was granted the lease, before the next try.
 */
const isShownBefore = ({ call, outcome, faults, input, body, calledAt }: Entry, entries: readonly Entry[]): boolean =>
  call === 'acquire' &&
  outcome === 'ok' &&
  entries.some(({ body: shown, answeredAt }) => {
    const isLower = shown?.holder === input.holder && Number(shown?.fence) < Number(body?.fence);
    // A late answer to a reader may show an earlier grant that was answered to its caller.
    const lease =
      shown?.leaseId ?? entries.find((one) => one.body?.leaseId && one.body.fence === shown?.fence)?.body?.leaseId;
    const mayBeSame = lease === undefined || lease === body?.leaseId;
    const isMeanwhile = Number(answeredAt?.moment) > calledAt.moment;
    return isLower && ((mayBeSame && isMeanwhile) || faults.length > 0);
  });

/** A call that does not wait takes a key that is left free for callers that sleep by a row in line. */
const waits = ({ input, landed = [] }: Entry): boolean =>
  (Number(input.waitSeconds ?? 0) > 0 && input.fair !== false) || landed.some(({ what }) => what === 'row');

const isInLine = (entry: Entry): boolean => entry.call === 'acquire' && waits(entry);

/** Whether a clean-up was answered that it deleted the record of this key. */
const cleaned = ({ outcome, body }: Entry) => outcome === 'ok' && body?.deleted === true;

export const leaseModel = ({
  spreadMs,
  withinBound,
}: Pick<WorldFacts, 'spreadMs' | 'withinBound'>): Model<LeaseState, LeaseOperation> => ({
  initial: { held: null, ended: [], last: null, highest: 0, forgotten: false },
  step: (state, { entry, stray, before = false, raised = false }) => {
    const step = STEPS[entry.call];
    if (!step) throw new Error(`the model of leases knows no ${entry.call}`);
    const rises = (fence: number) => fence > (state.forgotten ? state.highest - spreadMs - 1 : state.highest);
    const unknown = stray || isUnknown(entry);
    const body = (entry.body ?? {}) as unknown as Body;
    // An unclaimed grant may have ended with its window, and the record does not remember it.
    const lapsed = state.held?.unclaimed && state.held.leaseId === null ? [{ ...state, held: null, last: null }] : [];
    return [state, ...lapsed].flatMap((one) =>
      step({ state: one, entry, withinBound, spreadMs, rises, unknown, before, raised, body }),
    );
  },
});

interface Body {
  leaseId: string;
  fence: number;
  holder: string | null;
  acquiredAt: string;
  expiresAt: string | null;
  retryAfterMs: number;
  cap?: object;
  repeated: boolean;
  released: boolean;
  state: string;
  cancelled: boolean;
  reason?: string;
  version?: string;
  /** Whether the lease of a third-party client had expired by then. */
  isOver?: boolean;
  actual: { fence: number | null };
}

interface Situation {
  state: LeaseState;
  entry: Entry;
  body: Body;
  /** Whether the caller got no answer. */
  unknown: boolean;
  /** Whether this is a try before the answered one. */
  before: boolean;
  raised: boolean;
  /** Whether the clocks agree so well that a clean-up cannot bring back an earlier fence. */
  withinBound: boolean;
  spreadMs: number;
  /** Whether a fence is higher than all before, as far as the service can promise. */
  rises: (fence: number) => boolean;
}

const fits = <T>(known: T | null, shown: T) => known === null || known === shown;
/** The call that wrote a late grant raises its fence before it is answered. Others may have been shown the fence from before. */
const fitsOrRose = ({ fence, settled }: Pick<Held, 'fence' | 'settled'>, shown: number | null) =>
  fits(fence, shown) || (!settled && Number(shown) > Number(fence));
const epoch = (instant: string | null) => (instant === null ? null : Date.parse(instant));

/**
 * Whether a caller is refused because of its own request. That is right only in the margin after the end of its grant, while an operator has paused the key,
 * and for a request that replaces others: it takes its turn in line, and its wait may end before its turn if DynamoDB is slow.
 */
const isLockedOut = ({ entry: { input, faults }, body }: Situation): boolean =>
  body.holder === input.holder &&
  !body.cap &&
  body.retryAfterMs > CLOCK_SKEW_MS + 1 &&
  !(input.replace !== undefined && faults.length > 0);

/** A command of an operator hands off, and so may end an expired lease for callers that sleep. */
const handOff = (situation: Situation): LeaseState[] => {
  const { state, unknown } = situation;
  const mayEnd = state.held && !state.held.foreign && (unknown || isPast(situation, state.held));
  return mayEnd ? [state, { ...state, held: null, last: null }] : [state];
};

const STEPS: Record<string, (situation: Situation) => LeaseState[]> = {
  capKey: handOff,
  runNext: handOff,

  acquire: (situation) => {
    const { state, entry, body, unknown, before, raised } = situation;
    const { held, ended, last } = state;
    const holder = String(entry.input.holder);
    if (unknown) {
      // A call that waits sends several requests, each with another fence.
      const hasOneFence = entry.outcome === 'ok' && entry.input.waitSeconds === undefined && !before;
      const fence = hasOneFence ? body.fence : null;
      if (fence !== null && !situation.rises(fence)) return [];
      // A request that has released its grant is not granted another one.
      if (!held && last === holder) return [];
      const unclaimed = waits(entry);
      return [granted(state, { foreign: false, holder, leaseId: null, fence, expiresAt: null, unclaimed })];
    }
    switch (entry.outcome) {
      case 'ok': {
        const grant = {
          foreign: false,
          holder,
          leaseId: body.leaseId,
          fence: body.fence,
          // Others may have been shown the end of the grant window.
          expiresAt: waits(entry) ? null : epoch(body.expiresAt),
          unclaimed: waits(entry),
          settled: !body.repeated || held?.settled === true,
        };
        const isOwn = held && !held.foreign && held.holder === holder;
        const isRaised = isOwn && held.fence !== null && body.fence > held.fence;
        // The caller comes back for a grant from the line, perhaps after its window. No other caller has had the key since.
        const isClaim = isOwn && held.unclaimed === true && held.leaseId === null;
        const repeats = (body.repeated || isRaised || isClaim) && isOwn ? agreeing(situation, grant) : [];
        // An answer that is a repeat may repeat the first try of the same call.
        const mayBeNew = !raised && (!body.repeated || entry.faults.length > 0);
        const isOver = !held || held.expiresAt === null || held.expiresAt < Date.parse(body.acquiredAt);
        const isNew = mayBeNew && isOver && situation.rises(body.fence) && (held || last !== holder);
        return isNew ? [...repeats, granted(state, grant)] : repeats;
      }
      case 'LeaseHeld':
        if (!held && body.holder === null) return [metOnlyALine(state, body)];
        if (held && body.holder === null && isPast(situation, held))
          return [metOnlyALine({ ...state, held: null, last: null }, body)];
        return isLockedOut(situation) ? [] : standing(situation);
      case 'LeaseLost':
        if (body.reason === 'cancelled' || body.reason === 'superseded') return [state];
        return ended.some((one) => one.holder === holder) ? [state] : [];
      // `replacedRightly` checks whether another request has replaced it.
      case 'Superseded':
        return [state];
      default:
        return [];
    }
  },

  heartbeat: (situation) => {
    const { state, entry, body, unknown } = situation;
    const { held } = state;
    const isHeld = held && !held.foreign && fits(held.leaseId, String(entry.input.leaseId));
    if (unknown) return isHeld ? [{ ...state, held: { ...held, expiresAt: null } }] : [];
    // A holder that is asked to stop holds the lease until it has released it. A request may also be replaced after its grant has expired.
    if (entry.outcome === 'LeaseLost' && body.reason === 'superseded') return [state];
    if (entry.outcome === 'LeaseLost') return held?.leaseId === entry.input.leaseId ? [] : [state];
    if (entry.outcome !== 'ok' || !isHeld) return [];
    const expiresAt = epoch(body.expiresAt);
    // a heartbeat never shortens a lease
    if (held.expiresAt !== null && expiresAt !== null && expiresAt < held.expiresAt) return [];
    const grant = { ...held, leaseId: body.leaseId, fence: body.fence, expiresAt: null, unclaimed: false };
    return agreeing(situation, grant).map((after) => ({ ...after, held: { ...grant, expiresAt } }));
  },

  release: ({ state, entry, body, unknown }) => {
    const { held, ended } = state;
    const leaseId = String(entry.input.leaseId);
    const isHeld = held && !held.foreign && fits(held.leaseId, leaseId);
    if (unknown) return isHeld ? [over(state, false)] : [];
    if (entry.outcome !== 'ok') return [];
    if (!body.released) return held?.leaseId === leaseId ? [] : [state];
    const repeats = ended.some((one) => !one.broken && fits(one.leaseId, leaseId)) ? [state] : [];
    if (!isHeld) return repeats;
    // A grant that was not answered yet may have another lease id.
    return [over({ ...state, held: { ...held, leaseId } }, false), ...(held.leaseId === null ? repeats : [])];
  },

  withdraw: ({ state, entry, body, unknown }) => {
    const isOwn = state.held && !state.held.foreign && state.held.holder === entry.input.holder;
    if (!unknown && entry.outcome !== 'ok') return [];
    if (!isOwn) return [state];
    return unknown || !body.cancelled ? [state, over(state, false)] : [over(state, false)];
  },

  breakLease: (situation) => {
    const { state, entry, body, unknown } = situation;
    const { held, ended } = state;
    const fence = Number(entry.input.fence);
    const isHeld = held && !held.foreign && fitsOrRose(held, fence);
    if (unknown) return isHeld ? [over(state, true)] : [];
    switch (entry.outcome) {
      case 'ok':
        if (isHeld) return agreeing(situation, { ...held, fence }).map((after) => over(after, true));
        return ended.some((one) => one.broken && fitsOrRose(one, fence)) ? [state] : [];
      case 'NotFound':
        return held ? [] : [state];
      case 'Conflict':
        return held && body.actual.fence !== fence && fitsOrRose(held, body.actual.fence) ? [state] : [];
      default:
        return [];
    }
  },

  readLeases: (situation) => {
    const { state, entry, body, unknown } = situation;
    if (unknown || entry.outcome !== 'ok') return [state];
    const isLeased = body.state === 'held' || body.state === 'expired';
    if (isLeased) return standing(situation);
    return state.held ? [] : [state];
  },

  clean: ({ state, withinBound }) => [
    { ...state, held: null, ended: [], last: null, forgotten: state.forgotten || !withinBound },
  ],

  rustAcquire: ({ state, entry, body, unknown }) => {
    const after = {
      ...state,
      held: {
        foreign: true,
        holder: String(entry.input.lease),
        leaseId: body.version ?? null,
        fence: null,
        expiresAt: null,
      },
      ended: [],
      last: null,
      forgotten: true,
    };
    if (unknown || body.version !== undefined) return [after];
    return state.held ? [state] : [];
  },

  rustExtend: ({ state, entry, body, unknown }) => {
    const { held } = state;
    const isHeld = held?.foreign && fits(held.leaseId, String(entry.input.version));
    if (unknown) return isHeld ? [{ ...state, held: { ...held, leaseId: null } }] : [];
    if (body.version !== undefined) return isHeld ? [{ ...state, held: { ...held, leaseId: body.version } }] : [];
    return foreignLost(state, entry, body);
  },

  rustRelease: ({ state, entry, body, unknown }) => {
    const { held } = state;
    const isHeld = held?.foreign && fits(held.leaseId, String(entry.input.version));
    if (unknown || body.released)
      return isHeld ? [{ ...state, held: null, ended: [], last: null, forgotten: true }] : [];
    return foreignLost(state, entry, body);
  },
};

/** An expired lease of a third-party client stays in the record until a take-over. A call that cleans the line changes its version. */
function foreignLost(state: LeaseState, { input }: Entry, { isOver }: Body): LeaseState[] {
  const { held } = state;
  if (held?.leaseId !== input.version) return [state];
  return held?.foreign && isOver ? [{ ...state, held: { ...held, leaseId: 'of no client' } }] : [];
}

function granted(state: LeaseState, held: Held): LeaseState {
  const highest = Math.max(state.highest, held.fence ?? 0);
  return { ...state, held, last: null, highest, forgotten: held.fence === null && state.forgotten };
}

/** Whether the lease has expired by some clock. A call that meets only callers that sleep ends such a lease for them, and is refused. */
const isPast = ({ entry, spreadMs }: Situation, { expiresAt, foreign }: Held): boolean =>
  !foreign && (expiresAt === null || expiresAt - BEGIN + CLOCK_SKEW_MS <= Number(entry.answeredAt?.ms) + spreadMs);

/**
 * A refusal even though the lease was free: others were in line, or the wait had just ended. `freeLeaseIsHad` checks whether a waiter was in line. The fence
 * that the record shows may be one that no caller was answered.
 */
const metOnlyALine = (state: LeaseState, { fence }: Body): LeaseState => ({
  ...state,
  highest: Math.max(state.highest, fence ?? 0),
});

function over(state: LeaseState, broken: boolean): LeaseState {
  const { held } = state;
  if (!held) return state;
  const { holder, leaseId, fence, settled = false } = held;
  const ended = { holder, leaseId, fence, settled, broken };
  return { ...state, held: null, ended: [...state.ended, ended], last: holder };
}

/** The states in which the held lease is that of the answer. From now on, its unknown fields have the answered values. */
function agreeing({ state, rises }: Situation, shown: Held): LeaseState[] {
  const { held } = state;
  if (!held || !fits(held.leaseId, shown.leaseId) || !fitsOrRose(held, shown.fence)) return [];
  if (held.expiresAt !== null && shown.expiresAt !== null && held.expiresAt !== shown.expiresAt) return [];
  const isNews = held.fence === null && shown.fence !== null;
  // The shown end is that of the window or that of the claim.
  const expiresAt = held.unclaimed ? null : (shown.expiresAt ?? held.expiresAt);
  if (isNews && !rises(shown.fence as number)) return [];
  const highest = Math.max(state.highest, shown.fence ?? 0);
  const forgotten = isNews ? false : state.forgotten;
  return [{ ...state, held: { ...shown, expiresAt }, highest, forgotten }];
}

/** The states that agree with what another caller is shown of the held lease. */
function standing(situation: Situation): LeaseState[] {
  const { state, body } = situation;
  const { held } = state;
  if (!held) return [];
  if (held.foreign || body.fence === null) return held.foreign && body.fence === null ? [state] : [];
  if (held.holder !== body.holder) return [];
  return agreeing(situation, { ...held, fence: body.fence, expiresAt: epoch(body.expiresAt) });
}
