import { setTimeout as delay } from 'node:timers/promises';
import { type Figure, type Measurement, missed } from './measurement.ts';

/** The longest measurement takes about ten minutes. */
export const LIMIT_MINUTES = 25;

interface Played {
  missedBars: Figure[];
  /** The names of measurements that threw, or took too long. */
  failed: string[];
}

/**
 * Runs the measurements one after the other. If one fails, its error is printed, and the next one runs.
 * @param play measures, and records the figures
 */
export async function inTurn(
  measurements: Measurement[],
  play: (measurement: Measurement) => Promise<Figure[]>,
  limitMs = LIMIT_MINUTES * 60_000,
): Promise<Played> {
  const played: Played = { missedBars: [], failed: [] };
  for (const measurement of measurements) {
    const startedAt = performance.now();
    try {
      const figures = await within(limitMs, play(measurement));
      played.missedBars.push(...figures.filter(missed));
    } catch (error) {
      console.error(`${measurement.name} failed:`, error);
      played.failed.push(measurement.name);
    }
    console.log(`(${measurement.name} took ${((performance.now() - startedAt) / 1000).toFixed(0)} s)`);
  }
  return played;
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = delay(ms, undefined, { signal: over.signal }).then(() => {
    throw new Error(`it took more than ${ms / 1000} s`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    late.catch(() => {}); // The abort ends the delay.
    over.abort();
  }
}
