import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import { type Entry, isUnknown, saysNothing, timed } from '../history.ts';
import type { Model, Timed } from '../linearizability.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { nameOf } from './line.model.ts';

/** A lock with fences, as callers can know it. Null stands for what no answer has said: it may be anything. */
export interface LeaseState {
  held: Held | null;
  /** How leases of ours have ended. The record may remember them. */
  ended: (Pick<Held, 'holder' | 'leaseId' | 'fence' | 'settled'> & { broken: boolean })[];
  /** The holder whose lease was the last to end, until the next grant: the record remembers it. */
  last: string | null;
  /** The highest fence so far. */
  highest: number;
  /** Whether a third-party client dropped the record that remembers it. */
  forgotten: boolean;
}

interface Held {
  foreign: boolean;
  /** Unique for each acquisition, as the workload makes them. */
  holder: string;
  /** A foreign lease has its version here. */
  leaseId: string | null;
  fence: number | null;
  /** Epoch milliseconds by the service's clock. */
  expiresAt: number | null;
  /** Whether the call that wrote or claimed it was answered: its fence stays as it is. */
  settled?: boolean;
  /** By a call that waited: before its claim the grant lasted for the window, and it may have ended with that. */
  unclaimed?: boolean;
}

/** An entry, or what a stray request of one may do besides. */
export interface LeaseOperation extends Timed {
  entry: Entry;
  stray: boolean;
  /** Of a stray request: whether its fence is lower than that of the answer. */
  before?: boolean;
  /** Whether its answer can only be about the grant of that stray request, whose fence was raised. */
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
        // A call in line may have had grants before that it did not claim in time.
        const grants = isInLine(entry) ? new Array<LeaseOperation>(servedBeside(entry)).fill(stray) : [];
        if (saysNothing(entry)) return isInLine(entry) ? grants : [stray];
        if (entry.call === 'clean') return cleaned(entry) ? [operation] : [stray];
        // A try of it that got no answer may have been granted, and broken before the next one.
        const isRefused = ['LeaseLost', 'LeaseHeld', 'Superseded'].includes(entry.outcome ?? '');
        // What was granted is granted once: its own record refuses a late try, where no other client and no clean-up took that away.
        const mayBeGrantedAgain = entry.outcome !== 'ok' || foreignLeases || sweeps;
        const mayBeGranted =
          entry.call === 'acquire' &&
          !isInLine(entry) &&
          ((entry.strays > 0 && mayBeGrantedAgain) || (isRefused && entry.faults.length > 0));
        // Its answer said that it is unknown whether an earlier try released.
        const mayHaveReleased = entry.call === 'release' && entry.body?.reason === 'unknown' && entry.faults.length > 0;
        // A try of it that got no answer may have extended the lease before it was lost.
        const mayHaveBeaten = entry.call === 'heartbeat' && entry.outcome === 'LeaseLost' && entry.faults.length > 0;
        // A third-party client tells a second try of its SDK that failed on the first one as lost, and has no guard against late ones.
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

/** @returns how many grants of its request, beside that of its answer, a call in line counts for: the first one for all that the record has seen */
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
    // The answer to a reader may be late, and show an earlier grant that its caller was told of.
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

/** Whether its answer says that it deleted the record of this key. */
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
    // What nobody claimed has ended with its window, and the record has forgotten it.
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
  /** Of a third-party client: whether its lease was over by then. */
  isOver?: boolean;
  actual: { fence: number | null };
}

interface Situation {
  state: LeaseState;
  entry: Entry;
  body: Body;
  /** Whether the caller got no answer. */
  unknown: boolean;
  /** Whether it is a try before the one that was answered. */
  before: boolean;
  raised: boolean;
  /** Whether clocks agree better than what is cleaned up is old. */
  withinBound: boolean;
  spreadMs: number;
  /** Whether a fence is higher than all before, as far as the service can promise. */
  rises: (fence: number) => boolean;
}

const fits = <T>(known: T | null, told: T) => known === null || known === told;
/** The call that wrote a late grant raises its fence before it is answered. Others may have been shown the fence from before. */
const fitsOrRose = ({ fence, settled }: Pick<Held, 'fence' | 'settled'>, told: number | null) =>
  fits(fence, told) || (!settled && Number(told) > Number(fence));
const epoch = (instant: string | null) => (instant === null ? null : Date.parse(instant));

/**
 * Nobody is locked out by his own request, but for the margin after its end, and while an operator has paused the key. A request that replaces others takes
 * its turn in the line, and its wait may end before that if DynamoDB is slow.
 */
const isLockedOut = ({ entry: { input, faults }, body }: Situation): boolean =>
  body.holder === input.holder &&
  !body.cap &&
  body.retryAfterMs > CLOCK_SKEW_MS + 1 &&
  !(input.replace !== undefined && faults.length > 0);

/** The call of an operator hands off, and ends an expired lease for callers that sleep. */
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
      // A call that waits sends more than one request, each with a fence of its own.
      const hasOneFence = entry.outcome === 'ok' && entry.input.waitSeconds === undefined && !before;
      const fence = hasOneFence ? body.fence : null;
      if (fence !== null && !situation.rises(fence)) return [];
      // Its own released grant is not granted again.
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
          // Others may have seen the end of its window.
          expiresAt: waits(entry) ? null : epoch(body.expiresAt),
          unclaimed: waits(entry),
          settled: !body.repeated || held?.settled === true,
        };
        const isOwn = held && !held.foreign && held.holder === holder;
        const isRaised = isOwn && held.fence !== null && body.fence > held.fence;
        // Its caller comes back for what the line granted meanwhile, perhaps after its window: nobody had the key since.
        const isClaim = isOwn && held.unclaimed === true && held.leaseId === null;
        const repeats = (body.repeated || isRaised || isClaim) && isOwn ? agreeing(situation, grant) : [];
        // A call that is answered as a repeat may repeat its own first try.
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
      // Whether another has replaced it is another rule (`replacedRightly`).
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
    // It never shortens.
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
    // The lease id of a grant that nobody has been told of may be another.
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

/** While nobody takes it over, a foreign lease that is over still stands in the record. A call that clears the line away gives it another version. */
function foreignLost(state: LeaseState, { input }: Entry, { isOver }: Body): LeaseState[] {
  const { held } = state;
  if (held?.leaseId !== input.version) return [state];
  return held?.foreign && isOver ? [{ ...state, held: { ...held, leaseId: 'of no client' } }] : [];
}

function granted(state: LeaseState, held: Held): LeaseState {
  const highest = Math.max(state.highest, held.fence ?? 0);
  return { ...state, held, last: null, highest, forgotten: held.fence === null && state.forgotten };
}

/** Whether some clock says that the lease has expired. A call that meets only callers that sleep ends it for them, and is refused. */
const isPast = ({ entry, spreadMs }: Situation, { expiresAt, foreign }: Held): boolean =>
  !foreign && (expiresAt === null || expiresAt - BEGIN + CLOCK_SKEW_MS <= Number(entry.answeredAt?.ms) + spreadMs);

/**
 * Nobody had the lease, and others were in line, or the wait had just ended. Whether anybody was in line is another rule (`freeLeaseIsHad`). Nobody else may
 * have been told of the fence that its record shows.
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

/** The held lease is the one in the answer. What was unknown of it is known from now on. */
function agreeing({ state, rises }: Situation, told: Held): LeaseState[] {
  const { held } = state;
  if (!held || !fits(held.leaseId, told.leaseId) || !fitsOrRose(held, told.fence)) return [];
  if (held.expiresAt !== null && told.expiresAt !== null && held.expiresAt !== told.expiresAt) return [];
  const isNews = held.fence === null && told.fence !== null;
  // The end that is seen is that of the window, or that of the claim.
  const expiresAt = held.unclaimed ? null : (told.expiresAt ?? held.expiresAt);
  if (isNews && !rises(told.fence as number)) return [];
  const highest = Math.max(state.highest, told.fence ?? 0);
  const forgotten = isNews ? false : state.forgotten;
  return [{ ...state, held: { ...told, expiresAt }, highest, forgotten }];
}

/** Another caller's view of the lease that is held. */
function standing(situation: Situation): LeaseState[] {
  const { state, body } = situation;
  const { held } = state;
  if (!held) return [];
  if (held.foreign || body.fence === null) return held.foreign && body.fence === null ? [state] : [];
  if (held.holder !== body.holder) return [];
  return agreeing(situation, { ...held, fence: body.fence, expiresAt: epoch(body.expiresAt) });
}
