import type { AcquireOptions, LockOptions, PermitOptions } from './acquire.ts';
import { assertTimes } from './attempt.ts';
import { type HoldfastError, invalidRequest } from './errors.ts';
import type { Lease } from './lease.ts';
import { moment, type Surroundings, since, stayAlive, watch } from './surroundings.ts';

/** The options that apply to all entries together. */
type Together = 'waitMs' | 'signal';

/** One of several leases or permits, with the options that override the common options. */
export type LeaseEntry = Omit<LockOptions, Together | 'timeoutMs' | 'waitUntil'> & PermitOptions & { key: string };

/** The common options of all entries. `waitMs` and `signal` apply to all entries together. */
export type LeasesOptions = LockOptions;

/** Several leases or permits that are held together, until the first is lost. */
export interface Leases extends AsyncDisposable {
  /** The leases, in the order of the entries. */
  readonly leases: readonly Lease[];
  /** The fencing token of each key. Pass to a store the fence of the key that protects it. */
  readonly fences: Readonly<Record<string, number>>;
  /** True if all leases are certainly held. */
  readonly held: boolean;
  /** Why the first lost lease was lost, in the order of acquisition. Undefined while all are held. */
  readonly lost: HoldfastError | undefined;
  /** How long all leases are certainly held even if no further heartbeat succeeds, in milliseconds. */
  readonly remainingMs: number;
  /** Aborts shortly before the first of the leases ends, or with the signal of the options. */
  readonly signal: AbortSignal;
  /** Call it before each effect of the work. @throws HoldfastError LeaseLost if any of the leases is lost */
  assertHeld(): void;
  /** Releases all leases in reverse order. Never rejects. @returns true if the service confirmed each release */
  release(): Promise<boolean>;
}

type Acquire = (key: string, options: AcquireOptions) => Promise<Lease>;

const depthOf = (key: string): number => key.split('/').length;

/** The UTF-8 bytes of a key, because strings in JavaScript compare by UTF-16, and clients in other languages must find the same order. */
const bytesOf = (key: string): string => String.fromCharCode(...new TextEncoder().encode(key));

/**
 * The order in which every caller acquires: deeper paths first, then by bytes. Since all callers use the same order, two callers never wait for each other.
 * A caller that waits for the wide key `openai` holds only the narrow key `openai/tenant-a`, which callers of other tenants do not need.
 */
export const inOrder = <Entry extends { key: string }>(entries: readonly Entry[]): Entry[] =>
  [...entries].sort(
    (one, other) => depthOf(other.key) - depthOf(one.key) || (bytesOf(one.key) < bytesOf(other.key) ? -1 : 1),
  );

/**
 * Acquires several leases or permits one after the other, in the same order for all callers, and keeps all of them.
 * @throws HoldfastError InvalidRequest if two entries have the same key; LeaseHeld with the `key` that was refused; LeaseLost if a lease is lost during the
 * wait for another lease; the errors of `acquire`. All acquired leases have then been released
 */
export async function acquireAll(
  surroundings: Surroundings,
  acquire: Acquire,
  entries: readonly LeaseEntry[],
  { waitMs = 0, signal, ...common }: LeasesOptions,
): Promise<Leases> {
  assertTimes({ waitMs });
  for (const [at, { key }] of entries.entries())
    if (entries.findIndex((one) => one.key === key) < at) throw invalidRequest('key', `${key} is in two entries`);
  const startedAt = moment(surroundings);
  const controller = new AbortController();
  const acquired: Lease[] = [];
  const abort = () => controller.abort(signal?.reason);
  /** Checks the clocks of all leases, and passes on a loss. */
  const checkAll = () => {
    for (const { signal: signalOfLease } of acquired) if (signalOfLease.aborted) controller.abort(signalOfLease.reason);
  };
  const stop = stayAlive(surroundings);
  const releaseAll = async () => {
    signal?.removeEventListener('abort', abort);
    let confirmed = true;
    for (const lease of acquired.toReversed()) confirmed = (await lease.release()) && confirmed;
    return confirmed;
  };
  let released: Promise<boolean> | undefined;
  const release = () => {
    released ??= releaseAll();
    return released;
  };
  watch(controller.signal, checkAll);
  signal?.addEventListener('abort', abort);
  if (signal?.aborted) abort();
  try {
    for (const { key, ...entry } of inOrder(entries)) {
      // A request may replace others only if it can wait, even for a moment.
      const leftMs = Math.max(waitMs && 1, waitMs - since(surroundings, startedAt));
      const options = { ...common, ...entry, waitMs: leftMs, signal: controller.signal };
      const lease = await acquire(key, options as AcquireOptions);
      acquired.push(lease);
      lease.signal.addEventListener('abort', checkAll);
    }
    controller.signal.throwIfAborted();
  } catch (error) {
    await release();
    throw error;
  } finally {
    stop();
  }
  return {
    leases: entries.map(({ key }) => acquired.find((lease) => lease.key === key) as Lease),
    fences: Object.fromEntries(acquired.map(({ key, fence }) => [key, fence])),
    get held() {
      return acquired.every(({ held }) => held);
    },
    get lost() {
      return acquired.find(({ lost }) => lost)?.lost;
    },
    get remainingMs() {
      return Math.min(...acquired.map(({ remainingMs }) => remainingMs));
    },
    get signal() {
      checkAll();
      return controller.signal;
    },
    assertHeld() {
      for (const lease of acquired) lease.assertHeld();
    },
    release,
    async [Symbol.asyncDispose]() {
      await release();
    },
  };
}
