import type { components } from './contract.ts';
import type { HoldfastError, LossReason } from './errors.ts';

/**
 * What the hook `onEvent` receives. Times are ISO 8601.
 * @example
 * const onEvent = (event: HoldfastEvent) => {
 *   if (event.type === 'lost') console.warn(`lost ${event.key}: ${event.reason}`);
 * };
 */
export type HoldfastEvent = { key: string } & (
  | { type: 'acquired'; fence: number; waitedMs: number; expiresAt: string }
  /**
   * Others hold the key, or an operator's `cap` keeps this call out. The call has waited since `since`, and is at the position `place` in line. The other
   * fields are as in the error LeaseHeld.
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
  /** `confirmed` is false if the lease was not held any more, or if no answer came (`error`). Without an answer the lease stays until it expires. */
  | { type: 'released'; confirmed: boolean; error?: unknown }
);

export type Emit = (event: HoldfastEvent) => void;

/** Calls the hook. If the hook throws, the lease must not be lost, so the error is reported as uncaught, like the error of an event listener. */
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
