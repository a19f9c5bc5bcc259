import { MIN_HAND_OFF_TIME_MS, type RepairMessage } from '../../shared/locks/dependencies.ts';
import { handOff } from '../../shared/locks/line/hand-off.ts';
import { readKey } from '../../shared/locks/record/requests.ts';
import { call } from '../support/emulators/aws.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { type Overrides, resetting, steadyCalls } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// The line in front of a lease is the same as the line in front of the only permit of a key. The suite in this
// folder sees a lock only through World: no attribute of a record, and no sequence of requests.

/** A call with less than MIN_HAND_OFF_TIME_MS left: a release frees the lock, keeps the mark, and leaves the hand-off to others. */
export const callInHurry = call({ timeLeftMs: () => MIN_HAND_OFF_TIME_MS - 1 });

export type LineWorld = (overrides?: Overrides) => ReturnType<typeof lineOf>;
export type Grant = Awaited<ReturnType<Awaited<ReturnType<typeof permitLineWorld>>['acquire']>>;

type Terms = { key: string } & Record<string, unknown>;
/** How many came to the line, as the record counts them, and how many of those have left. */
interface Counts {
  waiters: number;
  out: number;
}

const attributesOf = ({ waiters, out }: Partial<Counts>) => ({
  ...(waiters !== undefined && { arrivals: { N: String(waiters) } }),
  ...(out !== undefined && { line_out: { N: String(out) } }),
});

/** What a call asks for to have a key alone, and what its row in the waiters table says about the request. */
const ONE = { name: 'a permit', terms: { limit: 1 }, row: { weight: { N: '1' }, limit: { N: '1' } } };
const ALONE = { name: 'a lease', terms: {}, row: {} };

/** @param lock the terms of a call, and of the row of a call */
async function lineOf({ name, terms, row }: typeof ONE | typeof ALONE, overrides: Overrides = {}) {
  const timeline = new Timeline();
  const world = await permitLineWorld({ clock: timeline, ...overrides });
  const { dependencies, rawItem, putRaw, callerRow, rows } = world;
  resetting(world);
  let keys = 0;
  /** A key of its own each time. */
  const newKey = () => `${name} ${keys++}`;
  const acquire = (input: object, as = call()) => world.acquire({ ...terms, ...input }, as);
  /** A task of its own each time. Within a millisecond, chance decides who comes first. */
  const park = (input: object, task?: Task) => world.park({ ...terms, ...input }, task);
  /** The times in the row of a caller that waits for another minute. */
  const aMinute = () => ({
    deadline: { N: String(timeline.now() + 60_000) },
    keep_until: { N: String(timeline.now() + 65_000) },
  });
  return {
    ...world,
    timeline,
    terms,
    newKey,
    acquire,
    /** A new key that is held, and its grant. */
    heldKey: async (input: object = {}) => {
      const first = await acquire({ key: newKey(), ...input });
      return { key: first.key, first };
    },
    ...steadyCalls(world, terms),
    park,
    /** A task that parks a millisecond after all before. */
    parkNext: (input: object, task?: Task) => {
      timeline.advance(1);
      return park(input, task);
    },
    /** A call that joins the line after all before, and then exits. The waiters after it have later tickets. @returns its ticket */
    exitInLine: async (input: Terms, as?: ReturnType<typeof call>) => {
      timeline.advance(1);
      // Three requests put a call in line.
      await timeline.play(() => exitingAfter(3, () => acquire({ waitSeconds: 20, ...input }, as)));
      timeline.advance(1);
      return (await rows(input.key)).at(-1)?.ticket?.S ?? '';
    },
    /** The grant of a task. The test fails if there is none. */
    grantOf: (task: Task) => world.grantOf(task) as unknown as Grant,
    breakGrant: ({ key, fence, wait }: { key: string; fence: number; wait?: boolean }) =>
      world.breakPermit({ key, fence, wait }),
    /** What the schedule does for a key. */
    repair: (key: string) => world.repairLine(key),
    /** A run of the schedule over all keys. */
    repairAll: (as = call()) => world.repairWith(as),
    /** What a delayed repair does. */
    runRepair: (message: RepairMessage | undefined) => world.repairKey(message?.key ?? ''),
    /** Reads the record now. @returns starts a hand-off from that record later, as a call does that was paused in between */
    handOffLater: async (key: string) => {
      const record = await readKey(dependencies, key, call());
      return () => handOff(dependencies, { record }, call());
    },
    /** What a reader sees of a key. The last holder of a free key is left out. */
    see: async (key: string) => {
      const { waiting, waiters = [], ...view } = await world.read(key, { waiters: true });
      const isHeld = view.state !== 'released' && view.state !== 'free';
      const { holder, fence, execution, inGrace, remainingMs, expiresAt, ending } = isHeld
        ? view
        : ({} as Partial<typeof view>);
      return {
        holder,
        fence: fence ?? undefined,
        execution,
        inGrace,
        remainingMs,
        expiresAt,
        ending,
        waiting,
        waiters,
      };
    },
    isMarked: async (key: string) => (await rawItem(key))?.mark !== undefined,
    countsOf: async (key: string): Promise<Counts> => {
      const { arrivals, line_out: out } = (await rawItem(key)) ?? {};
      return { waiters: Number(arrivals?.N), out: Number(out?.N ?? 0) };
    },
    setCounts: async (key: string, some: Partial<Counts>) => putRaw({ ...(await rawItem(key)), ...attributesOf(some) }),
    /** The row of a caller that came before all others, and waits for another minute. */
    callerRow: (key: string, of: string, more: object = {}) => callerRow(key, of, { ...row, ...aMinute(), ...more }),
    /** Deletes the record, as TTL does. */
    deleteRecord: world.deleteRaw,
  };
}

/** The line before the only permit of a key: each call has a limit of 1, unless it says otherwise. */
export const permitLine: LineWorld = (overrides) => lineOf(ONE, overrides);

/** The line before a lease: calls name neither a limit nor a mode. */
export const leaseLine: LineWorld = (overrides) => lineOf(ALONE, overrides);
