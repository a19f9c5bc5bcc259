import { HoldfastError, invalidRequest } from '../../errors.ts';
import { logLine } from '../../surroundings/log.ts';
import { ASK_EVERY_MS } from '../times.ts';
import { type Looked, NOTHING } from './questions.ts';

/** Calls in line that are not next leave the question to the next waiter for up to this long, or all of them would ask at the same moment. */
export const LOOK_PATIENCE_MS = 15_000;

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
