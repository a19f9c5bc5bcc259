import type { Call } from '../../aws/call.ts';
import { HoldfastError, invalidRequest } from '../../errors.ts';
import { logLine } from '../../surroundings/log.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ASK_EVERY_MS } from '../times.ts';
import { type Looked, NOTHING } from './questions.ts';
import { type Described, describeExecution, type End, endBy, type Reported, SETTLED_MS } from './state.ts';

// When a bound grant ends (docs/protocols/bound.md). No call extends the grant. A look ends the grant: a question about the execution, then a write that
// requires the version that was read before the question.

/** Calls in line that are not next leave the question to the next waiter for up to this long, or all of them would ask at the same moment. */
export const LOOK_PATIENCE_MS = 15_000;

/** No answer about an execution is older than this. */
const MAX_LAG_MS = 60_000;

/** A grant of a lease or a permit that lasts as long as its execution. Instants are epoch milliseconds. */
interface BoundGrant {
  boundAt: number;
  /** Functions of an earlier version write these two, and not `boundAt`. */
  acquiredAt?: number | undefined;
  answeredAt?: number | undefined;
}

/** When a call or a task last received the grant. The execution was running then, or the answer reached no execution that runs. */
const answeredAtOf = ({ boundAt, acquiredAt = 0, answeredAt = 0 }: BoundGrant): number =>
  Math.max(boundAt, acquiredAt, answeredAt);

/**
 * The error for a request that has a grant which ends otherwise than this call asks for. The answer would mislead its caller about the end.
 * @param boundTo the execution of the bound grant. Undefined for a grant with a ttl
 */
export function otherEnd(
  { bound, execution }: { bound?: boolean | undefined; execution?: string | undefined },
  boundTo: string | undefined,
): HoldfastError | undefined {
  if ((bound ? execution : undefined) === boundTo) return undefined;
  const terms =
    boundTo === undefined
      ? 'has a grant with a ttl: send ttlSeconds in place of bound'
      : 'has a bound grant of another execution or with a ttl: send bound and that execution';
  return invalidRequest([{ path: 'requestId', message: `${terms}, or another requestId` }]);
}

/** How the execution of a grant ended. */
export interface EndOfHolder {
  end: End;
  /** Whether every call of the execution has ended, so that a target that does not exist never starts. */
  settled: boolean;
}

/** `endedAt`: when the execution ended, at the earliest, in epoch milliseconds. */
type Judged = EndOfHolder & { endedAt: number };

/** @returns undefined if the grant goes on */
export type Judge = (grant: BoundGrant) => Judged | undefined;

/**
 * Asks whether the execution of bound grants has ended. The first pass does not ask, because the event has the time of the end. Read the grants before
 * this question. A grant stays if the execution runs, if Step Functions does not say, and if the execution may have been redriven after that end.
 * @throws HoldfastError as `describeExecution`
 */
export async function judgeOfBound(
  dependencies: LeaseDependencies,
  { execution, settled, status, stoppedAt }: Reported,
  call: Call,
): Promise<Judge> {
  const { clock, clockSkewMs } = dependencies;
  if (!settled && status !== undefined && stoppedAt !== undefined)
    return (grant) =>
      isAfter(stoppedAt, grant, clockSkewMs) ? { end: endBy(status), settled, endedAt: stoppedAt } : undefined;
  const askedAt = clock.now();
  const described = await describeExecution(dependencies, execution, call);
  return judgeBy(described, { askedAt, settled, clockSkewMs });
}

/** Whether an end is later than every answer with the grant. */
const isAfter = (endedAt: number, grant: BoundGrant, clockSkewMs: number): boolean =>
  answeredAtOf(grant) < endedAt - clockSkewMs;

interface Question extends Pick<LeaseDependencies, 'clockSkewMs'>, Pick<Reported, 'settled'> {
  /** Epoch milliseconds. */
  askedAt: number;
}

/** What an answer about an execution says of the bound grants that were read before the question. */
export function judgeBy(described: Described, { askedAt, settled, clockSkewMs }: Question): Judge {
  if (described.state === 'running' || described.state === 'foreign') return () => undefined;
  return (grant) => {
    const answeredAt = answeredAtOf(grant);
    const { stoppedAt = Number.NEGATIVE_INFINITY } = described;
    if (!isAfter(stoppedAt, grant, clockSkewMs) && askedAt - answeredAt <= MAX_LAG_MS) return undefined;
    const endedAt = Math.max(stoppedAt, answeredAt);
    return { end: endBy(described.status), settled: settled || endedAt + SETTLED_MS <= askedAt, endedAt };
  };
}

/** Whether no call has asked for a while, as far as the record shows. Instants are epoch milliseconds. */
export const isDue = ({ lookedAt = 0 }: { lookedAt?: number | undefined }, now: number): boolean =>
  lookedAt < now - ASK_EVERY_MS;

/** Logs why the look of a call failed. The call goes on, and the next look decides. @returns what the look has done, as far as the call knows */
export function leftToNextLook(error: unknown): Looked {
  const level = error instanceof HoldfastError ? 'WARN' : 'ERROR';
  logLine(level, {
    message: 'the execution of a bound holder could not be judged',
    cause: error instanceof Error ? error.message : error,
  });
  return NOTHING;
}
