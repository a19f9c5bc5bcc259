import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { beginOnce } from '../../shared/once/begin.ts';
import { completeOnce } from '../../shared/once/complete.ts';
import { beginInput } from '../../shared/once/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { onceWorld } from '../support/worlds/once.ts';

/** A full run plays 1,000 fires of the schedule. */
const FIRES = isFull ? 1000 : 60;
const OFFSETS_MS = [-200, 0, 200];
const EVERY_MS = 60_000;

const timeline = new Timeline(Date.parse('2026-01-01T00:00:00.000Z'));
const { dependencies } = await onceWorld({ clock: timeline });

/** Ignores LeaseHeld, which a call receives while another worker has the slot. */
const unlessHeld = (error: unknown): undefined => {
  if (error instanceof HoldfastError && error.code === 'LeaseHeld') return undefined;
  throw error;
};

const SLOTS: [string, (fire: number) => object][] = [
  ['the fire time is the slot', (fire: number) => ({ slot: new Date(fire).toISOString() })],
  ['the slot is the minute of the clock of the service', () => ({ per: '1m' })],
];

it.each(aFew(1, SLOTS))(
  `three machines with different clocks run each of ${FIRES} fires once, if %s`,
  async (name, slotOf) => {
    const runs = new Map<string, number>();
    const first = timeline.now() + EVERY_MS;
    await timeline.play(
      ...OFFSETS_MS.map((offset) => async () => {
        const clock = { ...timeline, now: () => timeline.now() + offset, sleep: timeline.sleep };
        const machine = { ...dependencies, clock };
        for (let nth = 0; nth < FIRES; nth++) {
          const fire = first + nth * EVERY_MS;
          await timeline.sleep(fire - clock.now());
          const input = beginInput().parse({ key: name, holder: `machine ${offset}`, ttlSeconds: 2, ...slotOf(fire) });
          const begun = await beginOnce(machine)(input, call()).catch(unlessHeld);
          if (begun?.outcome !== 'run') continue;
          runs.set(begun.slot, (runs.get(begun.slot) ?? 0) + 1);
          await timeline.sleep(100);
          await completeOnce(machine)({ key: name, leaseId: begun.leaseId, result: nth }, call());
        }
      }),
    );
    expect(runs.size).toBe(FIRES);
    expect([...runs.values()].filter((count) => count > 1)).toEqual([]);
  },
  400_000,
);
