import type { components } from './contract.ts';
import type { HoldfastError, LossReason } from './errors.ts';

/** The argument of the hook `onEvent`. Instants are ISO 8601. */
export type HoldfastEvent = { key: string } & (
  | { type: 'acquired'; fence: number; waitedMs: number; expiresAt: string }
  /**
   * Others hold the lease, or an operator's `cap` keeps this call out. It has waited since `since`, at the position `place` in line. The other
   * fields are those of `LeaseHeld`.
   */
  | {
      type: 'waiting';
      holder: string | null;
      holders: components['schemas']['Holder'][];
      since: string;
      expiresAt: string | null;
      used: number;
      limit: number | null;
      place?: number | undefined;
      waiting?: number | undefined;
      cap?: components['schemas']['Cap'] | undefined;
    }
  /** A heartbeat succeeded, or failed with `error` and is retried. */
  | { type: 'beat'; fence: number; expiresAt: string; error?: unknown }
  | { type: 'lost'; fence: number; reason: LossReason; error: HoldfastError }
  /** `confirmed` is false if the lease was no longer held, or no response came (`error`): the lease then expires. */
  | { type: 'released'; confirmed: boolean; error?: unknown }
);

export type Emit = (event: HoldfastEvent) => void;

/** A hook that throws must not lose a lease. Its error surfaces as an uncaught error, like that of an event listener. */
export const emitter =
  (hook?: Emit): Emit =>
  (event) => {
    try {
      hook?.(event);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
