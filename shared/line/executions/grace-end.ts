import type { LeaseDependencies } from '../dependencies.ts';
import type { Work } from './state.ts';

/** A grant of a lease or a permit whose execution has ended. */
export interface EndingGrant {
  /** Epoch milliseconds. */
  endsAt: number;
  graceMs?: number | undefined;
  claimTtlMs?: number | undefined;
}

/**
 * The instant until which such a grant goes on (docs/protocols/executions.md#grace). Step Functions stops no function that an execution has started, so
 * after an abnormal end that function may still work, and count on the expiry that it received. No call has been answered with a grant that was not
 * claimed, so nothing works under that grant.
 * @returns undefined if the grant ends at once
 */
export function graceEnd(
  { clock, clockSkewMs }: LeaseDependencies,
  grant: EndingGrant,
  work: Exclude<Work, 'running' | 'unknown'>,
): number | undefined {
  const now = clock.now();
  const { graceMs = 0, claimTtlMs, endsAt: expiry } = grant;
  const isOver = expiry + clockSkewMs < now;
  if (work !== 'failed' || graceMs <= 0 || claimTtlMs !== undefined || isOver) return undefined;
  return Math.min(expiry, now + graceMs);
}
