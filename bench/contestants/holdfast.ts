import { setTimeout as delay } from 'node:timers/promises';

/** The part of an answer that is used. */
export interface Granted {
  leaseId: string;
  /** ISO 8601. */
  expiresAt: string;
}

/** A call waits for at most 20 seconds. After that, or if the service does not hold it, the caller calls again with the fields of `retryWith`. */
export async function untilAcquired<Grant>(acquire: (retryWith?: object) => Promise<Grant>): Promise<Grant> {
  let again: object | undefined;
  for (;;)
    try {
      return await acquire(again);
    } catch (error) {
      const { code, context = {} } = error as { code?: string; context?: { comeBackMs?: number; retryWith?: object } };
      if (code !== 'LeaseHeld') throw error;
      again = context.retryWith;
      await delay(context.comeBackMs ?? 0);
    }
}
