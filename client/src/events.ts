import type { HoldfastError, LossReason } from './errors.ts';

/** What the hook `onEvent` is told. Instants are ISO 8601. */
export type HoldfastEvent = { key: string } & (
  | { type: 'acquired'; fence: number; waitedMs: number; expiresAt: string }
  /** Another caller holds the lease, and this one goes on waiting, as it has since `since`, at that place in line. */
  | { type: 'waiting'; holder: string | null; since: string; expiresAt: string | null; place?: number | undefined }
  /** A heartbeat came through, or failed with `error` and is tried again. */
  | { type: 'beat'; fence: number; expiresAt: string; error?: unknown }
  | { type: 'lost'; fence: number; reason: LossReason; error: HoldfastError }
  /** `confirmed` is false where the lease was no longer held, or no answer came (`error`): it then ends by itself. */
  | { type: 'released'; confirmed: boolean; error?: unknown }
);

export type Emit = (event: HoldfastEvent) => void;

/** A hook that throws must not cost anybody a lease; its error surfaces as an uncaught one, as an event listener's does. */
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
