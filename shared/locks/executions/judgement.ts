import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HolderEntry } from '../record/record.ts';
import { type Described, describeExecution, type End, endBy, SETTLED_MS } from './state.ts';

// Decides whether a grant has ended with its execution (docs/protocols/executions.md#the-judgement): of a key or of a slot, with or without a
// ttl. Every write that ends a grant requires the version that was read before the question, because a redriven execution may have received it since.

/** The status in an answer of AWS is at most this old. */
const MAX_LAG_MS = 60_000;

/** A grant of an execution, or a waiter, which joined at `acquiredAt`. */
type Answered = Pick<HolderEntry, 'acquiredAt' | 'answeredAt'>;

/** When the grant was last answered. The execution was running then, or no caller received the answer. */
const answeredAtOf = ({ acquiredAt, answeredAt = 0 }: Answered): number => Math.max(acquiredAt, answeredAt);

/** What a call knows about an execution that may have ended. */
export interface Reported {
  execution: string;
  /** Whether this is the second pass. */
  settled?: boolean | undefined;
  /** The status of the end and its time in epoch milliseconds, if an event says so. A look knows neither. */
  status?: string | undefined;
  stoppedAt?: number | undefined;
}

/** How the execution of a grant ended. */
export interface EndOfHolder {
  end: End;
  /** Whether every call of the execution has ended, so that a target that does not exist never starts. */
  settled: boolean;
  /** When the execution ended, at the earliest, in epoch milliseconds. */
  endedAt: number;
}

/** @returns undefined if the grant goes on */
export type Judge = (grant: Answered) => EndOfHolder | undefined;

/**
 * Judges grants of an execution that may have ended. Read the grants before you call this. The first pass has the time of the end from the event. It asks AWS
 * only if a grant was answered so shortly before the end that clocks may differ about the order.
 * @throws HoldfastError as `describeExecution`
 */
export async function judgeOf(
  dependencies: LeaseDependencies,
  { grants, ...reported }: Reported & { grants: readonly Answered[] },
  call: Call,
): Promise<Judge> {
  const { execution, settled = false, status, stoppedAt } = reported;
  const { clock, clockSkewMs } = dependencies;
  const isFirstPass = !settled && status !== undefined && stoppedAt !== undefined;
  const surelyBefore = Number(stoppedAt) - clockSkewMs;
  const isClose = (grant: Answered) => answeredAtOf(grant) > surelyBefore && answeredAtOf(grant) <= Number(stoppedAt);
  if (isFirstPass && !grants.some(isClose)) return endsGrant(surelyBefore, { status, stoppedAt });
  const askedAt = clock.now();
  const described = await describeExecution(dependencies, execution, call);
  if (!isFirstPass) return judgeBy(described, { askedAt, settled, status, clockSkewMs });
  const isOneEnd = saysState(described) && !(Number(described.redrivenAt) >= surelyBefore);
  return endsGrant(isOneEnd ? stoppedAt : surelyBefore, { status, stoppedAt });
}

const saysState = ({ state }: Described): boolean => state === 'running' || state === 'ended';

const endsGrant =
  (cut: number, { status, stoppedAt }: { status: string; stoppedAt: number }): Judge =>
  (grant) =>
    answeredAtOf(grant) <= cut ? { end: endBy(status), settled: false, endedAt: stoppedAt } : undefined;

interface JudgedExecution extends Pick<LeaseDependencies, 'clockSkewMs'>, Pick<Reported, 'settled' | 'status'> {
  /** Epoch milliseconds. */
  askedAt: number;
}

/** Judges, by the answer of AWS, the grants that were read before the question. */
export function judgeBy(
  described: Described,
  { askedAt, settled = false, status, clockSkewMs }: JudgedExecution,
): Judge {
  const { state, redrivenAt = Number.NEGATIVE_INFINITY, stoppedAt = Number.NEGATIVE_INFINITY } = described;
  const isSettled = (endedAt: number) => endedAt + SETTLED_MS <= askedAt;
  if (state === 'foreign') return () => undefined;
  if (state === 'running')
    // A redrive shows that the execution had ended before, and its grant ended with it.
    return (grant) =>
      answeredAtOf(grant) <= redrivenAt - clockSkewMs
        ? { end: 'failed', settled: isSettled(redrivenAt), endedAt: redrivenAt }
        : undefined;
  return (grant) => {
    const answeredAt = answeredAtOf(grant);
    if (answeredAt > stoppedAt && askedAt - answeredAt <= MAX_LAG_MS) return undefined;
    const endedAt = Math.max(stoppedAt, answeredAt);
    return { end: endBy(described.status ?? status), settled: settled || isSettled(endedAt), endedAt };
  };
}
