import { setTimeout as delay } from 'node:timers/promises';

/** What is used of an answer. */
export interface Granted {
  leaseId: string;
  /** ISO 8601. */
  expiresAt: string;
}

/** A call waits for at most 20 seconds. Then, or if the service does not hold it, its caller asks again with the fields of `retryWith`. */
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
