/** What is used of an answer. */
export interface Granted {
  leaseId: string;
  /** ISO 8601. */
  expiresAt: string;
}

/** Waiting inside acquire lasts at most 20 seconds; a caller with more patience calls again. */
export async function untilAcquired<Grant>(acquire: () => Promise<Grant>): Promise<Grant> {
  for (;;)
    try {
      return await acquire();
    } catch (error) {
      if ((error as { code?: string }).code !== 'LeaseHeld') throw error;
    }
}
