import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { describeExecution, type End, endBy, type Reported, SETTLED_MS } from './state.ts';

// When a grant ends that lasts as long as its execution (docs/protocols/bound.md). No call extends such a grant. A look ends it: a question about the
// execution, and a write that requires the version that was read before the question.

/** Calls ask about the holder of one grant no more often. */
export const ASK_EVERY_MS = 30_000;

/** No answer about an execution is older than this. */
const MAX_LAG_MS = 60_000;

/** A grant of a lease or a permit that lasts as long as its execution. Instants are epoch milliseconds. */
export interface BoundGrant {
  boundAt: number;
  /** Functions of an earlier version write these two, and not `boundAt`. */
  acquiredAt?: number | undefined;
  answeredAt?: number | undefined;
}

/** When a call or a task was last answered with the grant: its execution was running then, or the answer reached nothing that runs. */
const answeredAtOf = ({ boundAt, acquiredAt = 0, answeredAt = 0 }: BoundGrant): number =>
  Math.max(boundAt, acquiredAt, answeredAt);

/** How the execution of a grant ended. */
export interface EndOfHolder {
  end: End;
  /** Whether every call of the execution has ended, so that a target that does not exist never starts. */
  settled: boolean;
}

/** @returns undefined if the grant goes on */
type Judge = (grant: BoundGrant) => EndOfHolder | undefined;

/**
 * Asks whether the execution of bound grants has ended. The event in the first pass says when the execution ended, so that pass asks nothing.
 * The grants must be as they were read before this question. A grant goes on if the execution runs, if Step Functions says nothing about it, and if the
 * end may be one that was followed by a redrive.
 * @throws HoldfastError as `describeExecution`
 */
export async function judgeOfBound(
  dependencies: LeaseDependencies,
  { execution, settled, status, stoppedAt }: Reported,
  call: Call,
): Promise<Judge> {
  const { clock, clockSkewMs } = dependencies;
  const isAfter = (endedAt: number, grant: BoundGrant) => answeredAtOf(grant) < endedAt - clockSkewMs;
  if (!settled && status !== undefined && stoppedAt !== undefined)
    return (grant) => (isAfter(stoppedAt, grant) ? { end: endBy(status), settled } : undefined);
  const askedAt = clock.now();
  const described = await describeExecution(dependencies, execution, call);
  if (described.state === 'running' || described.state === 'foreign') return () => undefined;
  return (grant) => {
    const answeredAt = answeredAtOf(grant);
    const { stoppedAt: endedAt = Number.NEGATIVE_INFINITY } = described;
    if (!isAfter(endedAt, grant) && askedAt - answeredAt <= MAX_LAG_MS) return undefined;
    const since = Math.max(endedAt, answeredAt);
    return { end: endBy(described.status), settled: settled || since + SETTLED_MS <= askedAt };
  };
}

/** The condition of the write that begins a look: no call has asked for a while, as far as the record shows. @param lookedAt epoch milliseconds */
export const isDue = ({ lookedAt = 0 }: { lookedAt?: number | undefined }, now: number): boolean =>
  lookedAt < now - ASK_EVERY_MS;

/**
 * A caller that is refused is answered all the same, and the next look decides again. So no failure of a look fails the call.
 * @returns undefined in place of the result that a look could not have
 */
export function ifUnanswered(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
  return undefined;
}
