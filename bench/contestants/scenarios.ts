import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** A party that takes locks with its own client, as a process or an invocation would. */
interface Caller {
  /** Waits until it has the lock. */
  acquire(key: string): Promise<Held>;
}

interface Held {
  /** When the lock expires, in epoch milliseconds, if the library says so. Otherwise it is counted from the answer, which favours the library. */
  expiresAt?: number;
  /** Undefined if the library has no fences. */
  fence?: number;
  /** Whether the library says that the lock is held. If it does not say anything, the lock counts as held. */
  isHeld?(): boolean;
  release(): Promise<unknown>;
  /** Undefined if the library has no such call. */
  heartbeat?(): Promise<unknown>;
}

/**
 * A way of taking locks that the bench compares. It does not send heartbeats by itself. The `limit` is for permits, and locks ignore it.
 */
export interface Contestant {
  caller(ttlSeconds: number, limit: number): Caller;
}

/**
 * The tasks for the process of a contestant, one JSON object on each line of its standard input. The process first writes `{"ready": true}`, and then
 * answers each task with a line `{"result": ...}` or `{"error": "..."}`. It writes to descriptor 3, because functions log to standard output. The runners
 * in Java and Rust write to standard output. All times are milliseconds.
 */
export interface Scenarios {
  /** Acquires and releases one key after the other, around the ring of keys. */
  cycles: { takes: { keys: string[]; count: number }; gives: { acquireMs: number[]; releaseMs: number[] } };
  heartbeats: { takes: { key: string; count: number }; gives: { beatMs: number[] } };
  /** On all keys at the same time, one caller holds the key and releases it after a delay, while another waits. Measures from release to grant. */
  handoff: { takes: { keys: string[]; ttlSeconds: number; delaysMs: number[] }; gives: { waitedMs: number[] } };
  /** On all keys at the same time, one caller acquires and falls silent, and another comes `arriveMs` after its grant. Measures from expiry to grant. */
  takeover: { takes: { keys: string[]; ttlSeconds: number; arriveMs: number }; gives: { waitedMs: number[] } };
  /**
   * All callers want the same key, until `ms` have passed or, with `oneTurnEach`, each has had it. Counts the grants of each caller. With `settled`, the count
   * begins when each caller has had a turn, because the first one comes back before the others have joined. The process then says `{"settled": true}`. It
   * cannot be used again.
   */
  contend: {
    takes: {
      key: string;
      contenders: number;
      ttlSeconds: number;
      ms: number;
      holdMs: number;
      oneTurnEach: boolean;
      settled?: boolean;
      limit?: number;
    };
    gives: { grants: number[]; tookMs: number };
  };
  /**
   * Says `{"settled": true}` and waits `HOLD_AFTER_MS`. Then acquires, writes to the store until `ms` have passed or the library says that the lock is lost,
   * and releases. Each write checks the lock, then works, and then writes.
   */
  hold: {
    takes: { key: string; ttlSeconds: number; storeUrl: string; writer: string; ms: number };
    gives: { grantedMs: number; lostMs?: number; releaseError?: string };
  };
}

/** How long a holder holds the lock before the bench breaks the network or the server, in milliseconds. */
export const HOLD_AFTER_MS = 200;

/** How long the work between a check of the lock and the write takes. */
export const WORK_MS = 50;

export type Scenario = keyof Scenarios;
type Takes<Name extends Scenario> = Scenarios[Name]['takes'];
type Gives<Name extends Scenario> = Promise<Scenarios[Name]['gives']>;

/** Long enough for nothing to expire while it is measured. */
const LONG_TTL_SECONDS = 60;

/** How many times `ms` the count waits for contenders that have not had a turn. After that, it begins without them. */
const SETTLED_WITHIN = 2;

/**
 * Plays the tasks of standard input until it ends. A contestant that is bundled must not await this, because files that it loads later would wait for
 * its start to end.
 */
export async function serve(contestant: Contestant): Promise<void> {
  const scenarios: { [Name in Scenario]: (task: Takes<Name>) => Gives<Name> } = {
    cycles: (task) => cycles(contestant, task),
    heartbeats: (task) => heartbeats(contestant, task),
    handoff: (task) => handoff(contestant, task),
    takeover: (task) => takeover(contestant, task),
    contend: (task) => contend(contestant, task),
    hold: (task) => hold(contestant, task),
  };
  say({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const { scenario, ...task } = JSON.parse(line) as { scenario: Scenario };
    const run = scenarios[scenario] as (task: object) => Promise<object>;
    say(await answer(run(task)));
  }
  process.exit(0);
}

let answers: Socket | undefined;

function say(message: object): void {
  answers ??= new Socket({ fd: 3 });
  answers.write(`${JSON.stringify(message)}\n`);
}

const answer = (running: Promise<object>): Promise<object> =>
  running.then(
    (result) => ({ result }),
    (error: Error) => ({ error: String(error.stack) }),
  );

async function cycles({ caller }: Contestant, { keys, count }: Takes<'cycles'>): Gives<'cycles'> {
  const own = caller(LONG_TTL_SECONDS, 1);
  const times = { acquireMs: [] as number[], releaseMs: [] as number[] };
  for (let at = 0; at < count; at++) {
    const startedAt = performance.now();
    const held = await own.acquire(keys[at % keys.length] ?? '');
    const acquiredAt = performance.now();
    await held.release();
    times.acquireMs.push(acquiredAt - startedAt);
    times.releaseMs.push(performance.now() - acquiredAt);
  }
  return times;
}

async function heartbeats({ caller }: Contestant, { key, count }: Takes<'heartbeats'>): Gives<'heartbeats'> {
  const held = await caller(LONG_TTL_SECONDS, 1).acquire(key);
  const beatMs: number[] = [];
  for (let at = 0; at < count; at++) {
    const startedAt = performance.now();
    await held.heartbeat?.();
    beatMs.push(performance.now() - startedAt);
  }
  await held.release();
  return { beatMs };
}

async function handoff({ caller }: Contestant, { keys, ttlSeconds, delaysMs }: Takes<'handoff'>): Gives<'handoff'> {
  const one = async (key: string, delayMs = 0) => {
    const held = await caller(ttlSeconds, 1).acquire(key);
    const waiting = acquireTimed(caller(ttlSeconds, 1), key);
    await delay(delayMs);
    const releasedAt = performance.now();
    await held.release();
    const { next, grantedAt } = await waiting;
    await next.release();
    return grantedAt - releasedAt;
  };
  return { waitedMs: await Promise.all(keys.map((key, at) => one(key, delaysMs[at]))) };
}

async function acquireTimed(caller: Caller, key: string): Promise<{ next: Held; grantedAt: number }> {
  const next = await caller.acquire(key);
  return { next, grantedAt: performance.now() };
}

async function takeover({ caller }: Contestant, { keys, ttlSeconds, arriveMs }: Takes<'takeover'>): Gives<'takeover'> {
  const one = async (key: string) => {
    const ttlMs = ttlSeconds * 1000;
    const { expiresAt } = await caller(ttlSeconds, 1).acquire(key);
    const answeredAt = performance.now();
    const expiredAt = expiresAt === undefined ? answeredAt + ttlMs : expiresAt - performance.timeOrigin;
    await delay(expiredAt - ttlMs + arriveMs - answeredAt);
    const { next, grantedAt } = await acquireTimed(caller(ttlSeconds, 1), key);
    await next.release();
    return grantedAt - expiredAt;
  };
  return { waitedMs: await Promise.all(keys.map(one)) };
}

async function contend({ caller }: Contestant, task: Takes<'contend'>): Gives<'contend'> {
  const { key, contenders, ttlSeconds, ms, holdMs, oneTurnEach, settled = false, limit = 1 } = task;
  const grants = Array<number>(contenders).fill(0);
  let startedAt = performance.now();
  const settle = Promise.withResolvers<void>();
  let isSettled = !settled;
  let isOver = false;
  const turns = async (_: unknown, contender: number) => {
    const own = caller(ttlSeconds, limit);
    do {
      const held = await own.acquire(key);
      await delay(holdMs);
      await held.release();
      grants[contender] = (grants[contender] ?? 0) + 1;
      if (isSettled || grants.includes(0)) continue;
      isSettled = true;
      grants.fill(0);
      startedAt = performance.now();
      say({ settled: true });
      settle.resolve();
    } while (!oneTurnEach && !isOver);
  };
  const time = async () => {
    if (settled) await Promise.race([settle.promise, delay(SETTLED_WITHIN * ms)]);
    await delay(ms);
    isOver = true;
  };
  // Contenders that still wait at the end are left waiting, because the process is stopped.
  await Promise.race([Promise.all(grants.map(turns)), time()]);
  return { grants: [...grants], tookMs: performance.now() - startedAt };
}

async function hold({ caller }: Contestant, task: Takes<'hold'>): Gives<'hold'> {
  const { key, ttlSeconds, storeUrl, writer, ms } = task;
  const own = caller(ttlSeconds, 1);
  say({ settled: true });
  await delay(HOLD_AFTER_MS);
  const startedAt = performance.now();
  const held = await own.acquire(key);
  const grantedAt = performance.now();
  const isHeld = () => held.isHeld?.() ?? true;
  const body = JSON.stringify({ writer, fence: held.fence });
  while (isHeld() && performance.now() - grantedAt < ms) {
    await delay(WORK_MS);
    const { ok, status } = await fetch(storeUrl, { method: 'POST', body });
    if (!ok) throw new Error(`the store answered ${status}`);
  }
  const grantedMs = grantedAt - startedAt;
  if (!isHeld()) return { grantedMs, lostMs: performance.now() - grantedAt };
  return held.release().then(
    () => ({ grantedMs }),
    (error: Error) => ({ grantedMs, releaseError: error.message }),
  );
}
