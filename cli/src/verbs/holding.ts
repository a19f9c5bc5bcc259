import type { PermitOptions } from '../../../clients/typescript/src/acquire.ts';
import { type ErrorFields, isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import type { Lease } from '../../../clients/typescript/src/lease.ts';
import type { Arguments } from '../arguments.ts';
import { misuse } from '../failure.ts';
import type { Output } from '../output.ts';
import type { Service } from '../service.ts';
import type { Options } from '../syntax.ts';
import { capText, isShared, untilEnd, untilText, usedText } from './texts.ts';

/** The options of the verbs that acquire a lease. */
export const ACQUIRE_OPTIONS: Options = {
  ttl: { value: 'DURATION', help: 'how long the lease lasts without a heartbeat (60s)' },
  wait: { value: 'DURATION', help: 'how long to wait while another caller holds the key, or forever (0s)' },
  holder: { value: 'NAME', help: 'the name that other callers see (user@machine/process)' },
  data: { value: 'JSON', help: 'what other callers see with the lease' },
  'held-exit-code': {
    value: 'N',
    help: 'the exit code if another caller holds the key, or a newer run has replaced this one (75)',
  },
  limit: { value: 'N', help: 'be one of at most N holders at once (up to 200)' },
  weight: { value: 'N', help: 'count as N holders (1)' },
  shared: { help: 'hold the key together with other readers' },
  exclusive: { help: 'hold the key alone' },
  replace: {
    value: 'WHOM',
    help: 'latest wins: replace older runs that wait, or also the one that runs',
    choices: ['waiting', 'running'],
  },
};

/** The highest limit of a key. */
const MAX_LIMIT = 200;

/** The options of the command line, as the client takes them. @throws Failure that names the wrong option */
export function acquireOptions(args: Arguments) {
  const data = args.json('data');
  const waitMs = waitSeconds(args) * 1000;
  return {
    ttlSeconds: args.seconds('ttl', { min: 2, max: 86_400 }) ?? 60,
    waitMs,
    replace: replaceOption(args, waitMs),
    holder: args.text('holder'),
    ...permitOptions(args),
    ...(data !== undefined && { data }),
  };
}

function permitOptions(args: Arguments): PermitOptions {
  const limit = args.number('limit', { min: 1, max: MAX_LIMIT, whole: true });
  const weight = args.number('weight', { min: 1, max: limit ?? MAX_LIMIT, whole: true });
  const [shared, exclusive] = [args.is('shared'), args.is('exclusive')];
  if (exclusive && (shared || limit || weight)) throw misuse('--exclusive excludes --shared, --limit and --weight');
  if (weight && !limit && !shared) throw misuse('--weight needs --limit or --shared');
  return exclusive ? { mode: 'exclusive' } : { limit, weight, mode: shared ? 'shared' : undefined };
}

/** Which older runs this one replaces. @throws Failure if another option excludes that */
function replaceOption(args: Arguments, waitMs: number): 'waiting' | 'running' | undefined {
  const replace = args.text('replace') as 'waiting' | 'running' | undefined;
  if (replace === undefined) return undefined;
  for (const option of ['limit', 'weight', 'shared'])
    if (args.is(option) || args.text(option) !== undefined)
      throw misuse(`--replace and --${option} exclude each other`);
  if (waitMs === 0) throw misuse('--replace needs --wait');
  return replace;
}

/** The value of `--wait`, in seconds. @throws Failure if it is not a duration */
export function waitSeconds(args: Arguments): number {
  return args.text('wait') === 'forever'
    ? Number.POSITIVE_INFINITY
    : (args.seconds('wait', { min: 0, or: 'forever' }) ?? 0);
}

export const heldExitCode = (args: Arguments): number | undefined =>
  args.number('held-exit-code', { min: 0, max: 255, whole: true });

/**
 * The line to print if an acquisition or a reservation was refused, and the exit code.
 * @param held the exit code if the key is held
 * @param isOnce whether it is a key of `once`
 * @throws `error` if it is neither LeaseHeld nor RateExceeded nor Superseded
 */
export async function refusal(
  service: Service,
  error: unknown,
  { held, isOnce = false }: { held: number; isOnce?: boolean },
): Promise<{ line: string; code: number }> {
  if (isHoldfastError(error, 'Superseded'))
    return { line: `a newer run of ${error.key}, by ${error.by}, has replaced this one`, code: held };
  if (isHoldfastError(error, 'RateExceeded')) return { line: usedUpLine(error), code: held };
  if (!isHoldfastError(error, 'LeaseHeld')) throw error;
  return { line: await holdingLine(service, error, isOnce), code: held };
}

/** The line for a rate that is used up. Its time is rounded up, because an earlier try would be refused again. */
function usedUpLine({ key, boundBy, retryAfterMs, cap }: ErrorFields['RateExceeded']): string {
  if (cap?.limit === 0) return `${key} is ${capText(cap)}`;
  const usedUp = `the rate ${boundBy} of ${key} is used up: try again ${untilText(Math.ceil(retryAfterMs / 1000) * 1000)}`;
  return cap ? `${usedUp} (${capText(cap)})` : usedUp;
}

/** Warns if the previous grant named another limit. */
export function noteLimit(output: Output, { key, limitChanged }: Pick<Lease, 'key' | 'limitChanged'>): void {
  if (!limitChanged) return;
  const { from, to } = limitChanged;
  output.note(`the limit of ${key} was ${from}, and is now ${to}: all callers of a key should pass the same --limit`);
}

/** The line that says who holds a key, since when and until when, if the caller may read that. */
async function holdingLine(service: Service, known: ErrorFields['LeaseHeld'], isOnce: boolean): Promise<string> {
  const { key, cap } = known;
  if (cap?.limit === 0) return `${key} is ${capText(cap)}`;
  if (isShared(known))
    return `${key} is held by ${known.holder}${untilEnd(known.expiresAt)}, in use: ${usedText(known)}${cap ? ` (${capText(cap)})` : ''}`;
  const limits = { timeoutMs: 2000 };
  const reading = isOnce ? service.readOnce(key, limits) : service.readKey(key, {}, limits);
  const read = await reading.catch((error: unknown) => {
    if (isHoldfastError(error)) return undefined;
    throw error;
  });
  const lease = read?.state === 'held' ? read : undefined;
  const { holder, expiresAt } = lease ?? known;
  const since = lease?.acquiredAt ? ` since ${lease.acquiredAt}` : '';
  const isBound = lease && 'bound' in lease && lease.bound;
  const left = lease && expiresAt && !isBound ? ` (${untilText(lease.remainingMs)})` : '';
  const until = `${untilEnd(expiresAt)}${left}`;
  // The key has no holder now, but the next waiter gets the next grant.
  const line = !holder && read && 'waiting' in read && read.waiting ? `, ${read.waiting} in line` : '';
  return `${key} is held by ${holder ?? 'another caller'}${since}${until}${line}`;
}
