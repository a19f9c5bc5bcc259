import type { Caller } from '../caller.ts';

export const TTLS = [3, 5, 12, 30];
const MAX_TRIES = 3;
const SECOND_PASS_MS = 90_000;

/** Further terms of the requests of an execution. */
export type Terms = (one: Caller, key: string) => object;

interface End {
  status: 'SUCCEEDED' | 'FAILED' | 'ABORTED' | 'STOPPED' | 'TIMED_OUT';
  /** What the event says about the end. */
  event?: { status?: string; stopDate?: number | string };
  bus?: Bus;
}

/** The share of events that are lost, and the share of the others that come late, each from 0 to 1. */
export interface Bus {
  lost: number;
  late: number;
}

export const USUAL_BUS: Bus = { lost: 0.25, late: 0.3 };

/** Lets AWS show an end within a second. The event of the end may come late, twice, or never. */
export function sendEnd(one: Caller, arn: string, { status, event = {}, bus = USUAL_BUS }: End): void {
  const { simulation, service } = one.world;
  const { random } = one;
  const show =
    status === 'ABORTED' || !arn.includes(':lambda:')
      ? service.stepFunctions.end(arn, status, simulation.now)
      : service.durable.end(arn, status, simulation.now);
  simulation.at(simulation.now + random() * 1000, show);
  if (one.strikes('eventLost', bus.lost)) return;
  const lateMs = one.strikes('eventLate', bus.late) ? 1000 * 40 ** random() : 50 + random() * 500;
  const events: [number, object][] = [[lateMs, {}]];
  if (one.strikes('eventTwice', 0.2)) events.push([lateMs + random() * 20_000, {}]);
  if (random() < 0.6) events.push([SECOND_PASS_MS + lateMs, { again: true }]);
  for (const [afterMs, more] of events)
    one.start('bus', async (caller) => {
      await caller.sleep(afterMs);
      await caller.call('executionEnded', { execution: arn, ...more, ...event });
    });
}

export interface Grant {
  key: string;
  leaseId: string;
  remainingMs: number;
  waitedMs: number;
  /** When the state was entered in which the task received the lease. */
  enteredMs: number;
}

/** Works under a grant for a while, and releases it. @param isOver whether the code has ended */
export async function workUnder(
  one: Caller,
  { key, leaseId, enteredMs, waitedMs, remainingMs }: Grant,
  isOver: () => boolean,
): Promise<void> {
  const { simulation } = one.world;
  const { random } = one;
  const lease = { key, leaseId };
  let until = enteredMs + waitedMs + remainingMs;
  for (let beats = Math.floor(random() * 4); beats > 0 && !isOver(); beats--) {
    await one.sleep(random() * Math.min(9000, Math.max(0, until - simulation.now)));
    if (isOver() || simulation.now >= until) break;
    const sentAt = simulation.now;
    const beat = await one.call('heartbeat', lease);
    if (beat?.outcome === 'LeaseLost') return;
    if (beat?.outcome === 'ok') until = sentAt + Number(beat.body.remainingMs);
  }
  await one.sleep(random() * 1500);
  for (let tries = 0; tries < MAX_TRIES && !isOver(); tries++)
    if ((await one.call('release', lease))?.outcome === 'ok') return;
}
