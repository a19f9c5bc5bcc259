import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HolderEntry } from '../record/record.ts';
import { CALLS_END_WITHIN_MS, type Described, describeExecution, type End, endOfStatus } from './state.ts';

// Decides whether a grant has ended with its execution (docs/protocols/executions.md#the-judgement), for grants of keys
// and of slots, with or without a ttl. Every write that ends a grant requires the version that was read before the
// question, because a redriven execution may have received the grant again since.
//
//   last answer             end of the execution        question
//        |--------------------------|----------------------|       the grant has ended
//
//   end of the execution    last answer                 question
//        |--------------------------|----------------------|       the execution was redriven, so the grant goes on

/** How far an answer of AWS may lag behind the state of the execution. */
const MAX_LAG_MS = 60_000;

/** A grant of an execution, or a waiter, whose `acquiredAt` is when it joined. */
type Answered = Pick<HolderEntry, 'acquiredAt' | 'answeredAt'>;

/** When a call or a task last received the grant. If the execution read that answer, it was running then. */
const answeredAtOf = ({ acquiredAt, answeredAt = 0 }: Answered): number => Math.max(acquiredAt, answeredAt);

/** What a call knows about an execution that may have ended. */
export interface Reported {
  execution: string;
  /** Whether this is the second pass, when every call of the execution has ended. */
  isSecondPass?: boolean | undefined;
  /** The status at the end, as the event says. A look does not know it. */
  status?: string | undefined;
  /** When the execution ended, in epoch milliseconds, as the event says. A look does not know it. */
  stoppedAt?: number | undefined;
}

export interface EndOfHolder {
  end: End;
  /** Whether every call of the execution has ended, so that a target that does not exist never starts. */
  haveEnded: boolean;
  /** The earliest time at which the execution may have ended, in epoch milliseconds. */
  endedAt: number;
}

/** Judges one grant. @returns undefined if the grant goes on */
export type Judge = (grant: Answered) => EndOfHolder | undefined;

/**
 * Asks AWS about an execution that may have ended, to judge its grants. Read the grants before you call this. The first
 * pass has the time of the end from the event, and asks only if a grant was answered so shortly before the end that
 * clocks may disagree about the order.
 * @throws HoldfastError as `describeExecution`
 */
export async function askAndJudge(
  dependencies: LeaseDependencies,
  { grants, ...reported }: Reported & { grants: readonly Answered[] },
  call: Call,
): Promise<Judge> {
  const { execution, isSecondPass = false, status, stoppedAt } = reported;
  const { clock, clockSkewMs } = dependencies;
  const isFirstPass = !isSecondPass && status !== undefined && stoppedAt !== undefined;
  const surelyBefore = Number(stoppedAt) - clockSkewMs;
  const isClose = (grant: Answered) => answeredAtOf(grant) > surelyBefore && answeredAtOf(grant) <= Number(stoppedAt);
  if (isFirstPass && !grants.some(isClose)) return endsUpTo(surelyBefore, { status, stoppedAt });
  const askedAt = clock.now();
  const described = await describeExecution(dependencies, execution, call);
  if (!isFirstPass) return judgeByAnswer(described, { askedAt, isSecondPass, status, clockSkewMs });
  // If the execution was not redriven since, the answers close to its end came before it too, so those grants have
  // ended.
  const isWithoutRedrive = isStateKnown(described) && !(Number(described.redrivenAt) >= surelyBefore);
  return endsUpTo(isWithoutRedrive ? stoppedAt : surelyBefore, { status, stoppedAt });
}

const isStateKnown = ({ state }: Described): boolean => state === 'running' || state === 'ended';

/** Ends the grants that were last answered at `cut` or before. */
const endsUpTo =
  (cut: number, { status, stoppedAt }: { status: string; stoppedAt: number }): Judge =>
  (grant) =>
    answeredAtOf(grant) <= cut ? { end: endOfStatus(status), haveEnded: false, endedAt: stoppedAt } : undefined;

interface JudgedExecution extends Pick<LeaseDependencies, 'clockSkewMs'>, Pick<Reported, 'isSecondPass' | 'status'> {
  /** Epoch milliseconds. */
  askedAt: number;
}

/** Judges the grants that were read before the question by what AWS answered. */
export function judgeByAnswer(
  described: Described,
  { askedAt, isSecondPass = false, status, clockSkewMs }: JudgedExecution,
): Judge {
  const { state, redrivenAt = Number.NEGATIVE_INFINITY, stoppedAt = Number.NEGATIVE_INFINITY } = described;
  const isSettled = (endedAt: number) => endedAt + CALLS_END_WITHIN_MS <= askedAt;
  if (state === 'foreign') return () => undefined;
  if (state === 'running')
    // Answered before the redrive: the execution had ended before it was redriven, and the grant ended then.
    return (grant) =>
      answeredAtOf(grant) <= redrivenAt - clockSkewMs
        ? { end: 'failed', haveEnded: isSettled(redrivenAt), endedAt: redrivenAt }
        : undefined;
  return (grant) => {
    const answeredAt = answeredAtOf(grant);
    // Answered after the end that AWS reports: the status may be from before a redrive. It cannot be older than
    // MAX_LAG_MS.
    if (answeredAt > stoppedAt && askedAt - answeredAt <= MAX_LAG_MS) return undefined;
    const endedAt = Math.max(stoppedAt, answeredAt);
    return {
      end: endOfStatus(described.status ?? status),
      haveEnded: isSecondPass || isSettled(endedAt),
      endedAt,
    };
  };
}
