import { isHoldfastError } from '../../../client/src/errors.ts';
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
};

/** The options for the client. @throws Failure that names the wrong option */
export function acquireOptions(args: Arguments) {
  const data = args.json('data');
  return {
    ttlSeconds: args.number('ttl', { least: 2, most: 86_400 }) ?? 60,
    waitMs: waitSeconds(args) * 1000,
    holder: args.text('holder'),
    ...(data !== undefined && { data }),
  };
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

/** Says who holds a lease, since when and until when, as far as the caller may read it. */
export async function holdingLine(
  service: Service,
  known: { key: string; holder: string | null; expiresAt: string | null },
): Promise<string> {
  const { key } = known;
  const lease = await service.readLease(key, {}, { timeoutMs: 2000 }).catch((error) => {
    if (isHoldfastError(error)) return undefined;
    throw error;
  });
  const { holder, expiresAt } = lease?.state === 'held' ? lease : known;
  const since = lease?.state === 'held' && lease.acquiredAt ? ` since ${lease.acquiredAt}` : '';
  const left = lease?.state === 'held' ? ` (${untilText(lease.remainingMs)})` : '';
  const until = expiresAt ? ` until ${expiresAt}${left}` : '';
  // Nobody holds the lease now, but a task in the queue comes first.
  const queue = !holder && lease?.waiting ? `, ${lease.waiting} in line` : '';
  return `${key} is held by ${holder ?? 'another caller'}${since}${until}${queue}`;
}
