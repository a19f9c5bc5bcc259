import type { Clock } from '../../shared/surroundings/clock.ts';
import type { Simulation } from './simulation.ts';

/** When simulated time begins, in epoch milliseconds. */
export const BEGIN = Date.parse('2026-01-01T00:00:00.123Z');

/** The clock of one machine: off by an offset, fast or slow by a rate, and stepped by adjustments. */
export class MachineClock implements Clock {
  readonly #simulation: Simulation;
  #offsetMs: number;
  readonly #rate: number;

  /** @param rate 1 is right; 1.0001 gains 0.1 ms in each second */
  constructor(simulation: Simulation, offsetMs: number, rate: number) {
    this.#simulation = simulation;
    this.#offsetMs = offsetMs;
    this.#rate = rate;
  }

  now = (): number => Math.floor(BEGIN + this.#simulation.now * this.#rate + this.#offsetMs);

  sleep = (ms: number): Promise<void> => this.#simulation.sleep(ms / this.#rate);

  /** The time service adjusts it. */
  stepTo(offsetMs: number): void {
    this.#offsetMs = offsetMs;
  }
}
