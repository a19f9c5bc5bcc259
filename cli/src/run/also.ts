import type { AcquireOptions } from '../../../clients/typescript/src/acquire.ts';
import type { Lease } from '../../../clients/typescript/src/lease.ts';
import type { LeaseEntry, Leases } from '../../../clients/typescript/src/several.ts';
import type { Arguments } from '../arguments.ts';
import { misuse } from '../failure.ts';
import type { Service } from '../service.ts';

/** The highest limit of a key. */
const MAX_LIMIT = 200;

/** The keys of --also, each with its limit. @throws Failure that names the wrong value */
export const alsoEntries = (args: Arguments): LeaseEntry[] =>
  args.all('also').map((text) => {
    // A key may contain = too.
    const [, key = '', limit = ''] = /^(.+)=(\d+)$/s.exec(text) ?? [];
    if (Number(limit) >= 1 && Number(limit) <= MAX_LIMIT) return { key, limit: Number(limit) };
    throw misuse(`--also must be a key and a limit from 1 to ${MAX_LIMIT}, such as total=20, not '${text}'`);
  });

/** The lease of a command. With `--also`, it is held while all of the command's leases are held. */
export interface CommandLease extends Lease {
  /** All leases, beginning with the lease of the command's own key. */
  all: readonly Lease[];
}

/** Acquires the lease of a command, and those of `--also`. @throws HoldfastError as `acquire`, with the key that was refused */
export async function acquireWithAlso(
  service: Service,
  { key, ...options }: AcquireOptions & { key: string },
  also: LeaseEntry[],
): Promise<CommandLease> {
  if (also.length === 0) {
    const lease = await service.acquire(key, options);
    return Object.assign(lease, { all: [lease] });
  }
  const { waitMs, signal, ttlSeconds, holder } = options;
  return asOne(await service.acquireAll([{ key, ...options }, ...also], { waitMs, signal, ttlSeconds, holder }));
}

/** Shows several leases as one. */
function asOne(held: Leases): CommandLease {
  const [first] = held.leases as readonly [Lease];
  return {
    ...first,
    all: held.leases,
    /** The expiry of the lease that ends first. */
    get expiresAt() {
      return held.leases.map(({ expiresAt }) => expiresAt).sort()[0] ?? first.expiresAt;
    },
    get remainingMs() {
      return held.remainingMs;
    },
    get held() {
      return held.held;
    },
    get lost() {
      return held.lost;
    },
    get signal() {
      return held.signal;
    },
    assertHeld: () => held.assertHeld(),
    release: () => held.release(),
    [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
  };
}
