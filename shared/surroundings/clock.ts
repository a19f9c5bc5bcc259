import { setTimeout as delay } from 'node:timers/promises';

/** The clock of the domain. Tests pass a clock that they move by hand. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Resolves after `ms` milliseconds. Rejects as soon as `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal ? { signal } : {});
  },
};

/** Whether a Date can hold the instant: dates end at 8.64e15 ms. Other clients may write any number. */
export const isInstant = (epochMs: number): boolean => Math.abs(epochMs) <= 8.64e15;

/** A time in ISO 8601, such as `2026-11-26T15:36:42.273Z`. */
export const instant = (epochMs: number): string => new Date(epochMs).toISOString();
