import { type ErrorFields, isHoldfastError } from '../../../client/src/errors.ts';
import type { Arguments } from '../arguments.ts';
import { misuse } from '../failure.ts';
import type { Service } from '../service.ts';
import type { Options } from '../syntax.ts';
import { untilText } from './words.ts';

/** The options of the verbs that acquire a lease. */
export const ACQUIRE_OPTIONS: Options = {
  ttl: { value: 'SECONDS', help: 'how long the lease lasts without a heartbeat (60)' },
  wait: { value: 'SECONDS', help: 'how long to wait while another caller holds it, or forever (0)' },
  holder: { value: 'NAME', help: 'who you are, shown to others (user@machine/process)' },
  data: { value: 'JSON', help: 'what others see with the lease' },
  'held-exit-code': { value: 'N', help: 'what to exit with where another caller holds it (75)' },
  limit: { value: 'N', help: 'be one of at most so many holders at once (to 200)' },
  weight: { value: 'N', help: 'count as so many of them (1)' },
  shared: { help: 'hold it beside other readers' },
  exclusive: { help: 'hold it alone, beside no reader' },
};

/** The most that the holders of a pool may weigh. */
const MOST_PERMITS = 200;

/** The options for the client. @throws Failure that names the wrong option */
export function acquireOptions(args: Arguments) {
  const data = args.json('data');
  return {
    ttlSeconds: args.number('ttl', { least: 2, most: 86_400 }) ?? 60,
    waitMs: waitSeconds(args) * 1000,
    holder: args.text('holder'),
    ...permitOptions(args),
    ...(data !== undefined && { data }),
  };
}

function permitOptions(args: Arguments) {
  const limit = args.number('limit', { least: 1, most: MOST_PERMITS, whole: true });
  const weight = args.number('weight', { least: 1, most: limit ?? MOST_PERMITS, whole: true });
  const [shared, exclusive] = [args.is('shared'), args.is('exclusive')];
  if (exclusive && (shared || limit || weight))
    throw misuse('--exclusive goes with none of --shared, --limit, --weight');
  if (weight && !limit && !shared) throw misuse('--weight needs --limit');
  return { limit, weight, mode: exclusive ? ('exclusive' as const) : shared ? ('shared' as const) : undefined };
}

function waitSeconds(args: Arguments): number {
  if (args.text('wait') === 'forever') return Number.POSITIVE_INFINITY;
  try {
    return args.number('wait', { least: 0 }) ?? 0;
  } catch {
    throw misuse(`--wait must be a number of seconds or forever, not '${args.text('wait')}'`);
  }
}

export const heldExitCode = (args: Arguments): number | undefined =>
  args.number('held-exit-code', { least: 0, most: 255, whole: true });

/** Says who holds a lease or permits, since when and until when, as far as the caller may read it. */
export async function holdingLine(
  service: Service,
  known: Pick<ErrorFields['LeaseHeld'], 'key' | 'holder' | 'expiresAt' | 'used' | 'limit'>,
): Promise<string> {
  const { key, used, limit } = known;
  // Of a pool LeaseHeld says all that there is. A lease by its name would be another one.
  const isPool = used !== undefined;
  const read = isPool ? undefined : service.readLease(key, {}, { timeoutMs: 2000 });
  const lease = await read?.catch((error) => {
    if (isHoldfastError(error)) return undefined;
    throw error;
  });
  const { holder, expiresAt } = lease?.state === 'held' ? lease : known;
  const since = lease?.state === 'held' && lease.acquiredAt ? ` since ${lease.acquiredAt}` : '';
  const left = lease?.state === 'held' ? ` (${untilText(lease.remainingMs)})` : '';
  const until = expiresAt ? ` until ${expiresAt}${left}` : '';
  const inUse = isPool ? `, in use: ${used}${limit ? ` of ${limit}` : ''}` : '';
  // Nobody holds the lease now, but a task in the queue comes first.
  const queue = !holder && lease?.waiting ? `, ${lease.waiting} in line` : '';
  return `${key} is held by ${holder ?? 'another caller'}${since}${until}${inUse}${queue}`;
}
