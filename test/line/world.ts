import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import type { Parked } from '../../shared/locks/calls/types.ts';
import type { LeaseDependencies, RepairMessage } from '../../shared/locks/dependencies.ts';
import { handOff } from '../../shared/locks/line/hand-off.ts';
import { readKey } from '../../shared/locks/record/requests.ts';
import { call } from '../support/emulators/aws.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { type Overrides, type queueWorld, resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// The line in front of a lease is the same as the line in front of the only permit of a key. The suite in this
// folder sees a lock through World alone: no attribute of a record, and no sequence of requests.

type Terms = { key: string } & Record<string, unknown>;

export interface Grant {
  key: string;
  holder: string;
  leaseId: string;
  fence: number;
  acquiredAt: string;
  expiresAt: string;
  remainingMs: number;
  waitedMs: number;
  repeated: boolean;
}

/** What a reader sees of a key. */
interface Seen {
  holder: string | undefined;
  fence: number | undefined;
  execution?: string | null;
  inGrace?: boolean;
  remainingMs?: number;
  expiresAt?: string;
  waiting: number;
  waiters: { ticket: string; kind: string; holder: string }[];
  /** True if an operator has broken the grant, and the holder may still use it. */
  ending?: boolean;
}

interface Counts {
  waiters: number;
  out: number;
}

type Lines = Awaited<ReturnType<typeof queueWorld>>;
type Caller = ReturnType<typeof call>;
type Shared =
  | 'as'
  | 'precededBy'
  | 'answeredLate'
  | 'lostAfter'
  | 'leavingOut'
  | 'requests'
  | 'steps'
  | 'messages'
  | 'withdraw'
  | 'executionEnded'
  | 'putTickets';

interface World extends Pick<Lines, Shared> {
  dependencies: LeaseDependencies;
  timeline: Timeline;
  /** What a call asks for, besides a key. */
  terms: object;
  /** A key of its own each time. */
  newKey(): string;
  acquire(input: object, as?: Caller): Promise<Grant>;
  /** A new key that is held, and its grant. */
  heldKey(input?: object): Promise<{ key: string; first: Grant }>;
  /** A call that meets the same chance each time. With the least it looks each 25 milliseconds from its arrival on. */
  steady(key: string, more?: object, chance?: number): Promise<Grant>;
  /** How a steady call fails, and how long after it came. */
  refusedAfter(key: string, more?: object): Promise<Awaited<ReturnType<typeof failure>> & { afterMs: number }>;
  /** A task of its own each time. Within a millisecond, chance decides who comes first. */
  park(input: object, task?: Task): Promise<Parked & { task: Task }>;
  /** The grant of a task. The test fails if there is none. */
  grantOf(task: Task): Grant;
  heartbeat(input: { key: string; leaseId: string; ttlSeconds?: number }): Promise<{ holder: string }>;
  release(grant: { key: string; leaseId: string }, as?: Caller): Promise<{ released: boolean; reason?: string }>;
  breakGrant(grant: { key: string; fence: number; wait?: boolean }): Promise<unknown>;
  cancel(key: string, ticket: string): Promise<{ cancelled: boolean }>;
  /** What the schedule does for a key. */
  repair(key: string): Promise<{ granted: number; told: number; unanswered: number }>;
  /** What a message does that looks at the key again. */
  lookAgain(message: RepairMessage | undefined): Promise<unknown>;
  /** Reads the record. @returns a hand-off by it, as of a call that was paused since */
  handOffLater(key: string): Promise<() => Promise<unknown>>;
  see(key: string): Promise<Seen>;
  /** The rows of a key in the table of waiters. */
  rows(key: string): ReturnType<Lines['rows']>;
  isMarked(key: string): Promise<boolean>;
  /** Removes the mark, as another client does. */
  removeMark(key: string): Promise<unknown>;
  /** How many came to the line, as the record counts them, and how many of those have left. */
  countsOf(key: string): Promise<Counts>;
  setCounts(key: string, counts: Partial<Counts>): Promise<unknown>;
  /** The row of a caller that came before all others, and waits for another minute. */
  callerRow: Lines['callerRow'];
  /** A run of the schedule over all keys. */
  repairAll(as?: Caller): Promise<unknown>;
  /** Deletes the record, as TTL does. */
  deleteRecord(key: string): Promise<unknown>;
  /** A task that parks a millisecond after all before. */
  parkNext: World['park'];
  /** A call that joins the line after all before, and then exits. The waiters after it have later tickets. @returns its ticket */
  exitInLine(input: Terms, as?: Caller): Promise<string>;
}

/** Calls and tasks that come one after the other. */
const arrivals = ({ timeline, acquire, park, rows }: Pick<World, 'timeline' | 'acquire' | 'park' | 'rows'>) => ({
  parkNext: (input: object, task?: Task) => {
    timeline.advance(1);
    return park(input, task);
  },
  exitInLine: async (input: Terms, as?: Caller) => {
    timeline.advance(1);
    // Three requests put a call in line.
    await timeline.play(() => dyingAfter(3, () => acquire({ waitSeconds: 20, ...input }, as)));
    timeline.advance(1);
    return (await rows(input.key)).at(-1)?.ticket?.S ?? '';
  },
});

export type LineWorld = (overrides?: Overrides) => Promise<World>;

const inputOfAcquire = acquireInput();
const STEADY = { holder: 'b', requestId: 'r', ttlSeconds: 10, waitSeconds: 20 };

/** How a steady call fails, and how long after it came. */
const refusal = (timeline: Timeline, steady: World['steady']) => async (key: string, more?: object) => {
  const from = timeline.now();
  const refused = await failure(steady(key, more));
  return { ...refused, code: refused.code, message: refused.message, afterMs: timeline.now() - from };
};

const attributesOf = ({ waiters, out }: Partial<Counts>) => ({
  ...(waiters !== undefined && { arrivals: { N: String(waiters) } }),
  ...(out !== undefined && { line_out: { N: String(out) } }),
});

type Current = Omit<Seen, 'waiting' | 'waiters'>;

const seen = (
  current: Current | undefined,
  { waiting, waiters = [] }: Partial<Pick<Seen, 'waiters'>> & Pick<Seen, 'waiting'>,
) => {
  const { holder, fence, execution, inGrace, remainingMs, expiresAt, ending } = current ?? ({} as Partial<Current>);
  return { holder, fence, execution, inGrace, remainingMs, expiresAt, ending, waiting, waiters } as Seen;
};

/** When a caller leaves that waits for another minute, as its row says. */
const times = ({ now }: Timeline) => ({
  deadline: { N: String(now() + 60_000) },
  keep_until: { N: String(now() + 65_000) },
});

const keysOf = (lock: string) => {
  let keys = 0;
  return () => `${lock} ${keys++}`;
};

/** The terms of a call, and of the row of a call, that has a key alone. */
const ONE = { terms: { limit: 1 }, row: { weight: { N: '1' }, limit: { N: '1' } } };
const ALONE = { terms: {}, row: {} };

const lineOf =
  (lock: string, { terms, row }: { terms: object; row: Record<string, { N: string }> }): LineWorld =>
  async (overrides = {}) => {
    const timeline = new Timeline();
    const world = await permitLineWorld({ clock: timeline, ...overrides });
    const { dependencies, rawItem, putRaw, callerRow } = world;
    const newKey = keysOf(lock);
    resetting(world);
    const acquire: World['acquire'] = (input, as) => world.acquire({ ...terms, ...input }, as);
    const park: World['park'] = (input, task) => world.park({ ...terms, ...input }, task);
    const steady: World['steady'] = (key, more = {}, chance = 0) => {
      const sure = { ...dependencies, ids: { ...dependencies.ids, random: () => chance } };
      return acquireGrant(sure)(inputOfAcquire.parse({ key, ...terms, ...STEADY, ...more }), call());
    };
    return {
      ...world,
      timeline,
      terms,
      newKey,
      acquire,
      heldKey: async (input = {}) => {
        const first = await acquire({ key: newKey(), ...input });
        return { key: first.key, first };
      },
      steady,
      refusedAfter: refusal(timeline, steady),
      park,
      grantOf: (task) => world.grantOf(task) as unknown as Grant,
      breakGrant: ({ key, fence, wait }) => world.breakPermit({ key, fence, wait }),
      repair: (key) => world.repairLine(key),
      lookAgain: async (message) => world.repairKey(message?.key ?? ''),
      handOffLater: async (key) => {
        const record = await readKey(dependencies, key, call());
        return () => handOff(dependencies, { record }, call());
      },
      see: async (key) => {
        const view = await world.read(key, { waiters: true });
        return seen(view.state === 'released' || view.state === 'free' ? undefined : (view as Current), view);
      },
      rows: world.rows,
      isMarked: async (key) => (await rawItem(key))?.mark !== undefined,
      countsOf: async (key) => {
        const { arrivals, line_out: out } = (await rawItem(key)) ?? {};
        return { waiters: Number(arrivals?.N), out: Number(out?.N ?? 0) };
      },
      setCounts: async (key, some) => putRaw({ ...(await rawItem(key)), ...attributesOf(some) }),
      callerRow: (key, name, more = {}) => callerRow(key, name, { ...row, ...times(timeline), ...more }),
      repairAll: (as = call()) => world.repairWith(as),
      deleteRecord: world.deleteRaw,
      ...arrivals({ acquire, park, rows: world.rows, timeline }),
    };
  };

/** With a limit of 1, unless a call asks for other terms. */
export const permitLine = lineOf('a permit', ONE);

/** Without terms. */
export const leaseLine = lineOf('a lease', ALONE);
