import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** One party that takes locks, with a client of its own: what a process or an invocation would be. */
interface Caller {
  /** Waits until it has the lock. */
  acquire(key: string): Promise<Held>;
}

interface Held {
  /** Epoch milliseconds, where a grant tells: without it the expiry is counted from the answer, which is to its advantage. */
  expiresAt?: number;
  /** Absent if the library has none. */
  fence?: number;
  /** What the library says; without it the lock counts as held. */
  isHeld?(): boolean;
  release(): Promise<unknown>;
  /** Absent where the library offers no such call. */
  heartbeat?(): Promise<unknown>;
}

/**
 * A way of taking locks that the bench compares. It sends no heartbeats by itself. The `limit` is for permits: a lock takes no notice of it.
 */
export interface Contestant {
  caller(ttlSeconds: number, limit: number): Caller;
}

/**
 * What a contestant's process is asked for, as one JSON object a line on its standard input. It answers each with
 * `{"result": ...}` or `{"error": "..."}` on a line, after a first line `{"ready": true}`: on descriptor 3, because functions log
 * to standard output. The runners in Java and Rust do the same on standard output. All times are milliseconds.
 */
export interface Scenarios {
  /** Acquire and release, one after the other, going round the keys. */
  cycles: { takes: { keys: string[]; count: number }; gives: { acquireMs: number[]; releaseMs: number[] } };
  heartbeats: { takes: { key: string; count: number }; gives: { beatMs: number[] } };
  /** For each key at the same time: one holds and releases after its delay, another waits; from release to grant. */
  handoff: { takes: { keys: string[]; ttlSeconds: number; delaysMs: number[] }; gives: { waitedMs: number[] } };
  /** For each key at the same time: one acquires and falls silent, another arrives `arriveMs` after its grant; from expiry to grant. */
  takeover: { takes: { keys: string[]; ttlSeconds: number; arriveMs: number }; gives: { waitedMs: number[] } };
  /**
   * All want the same key, until `ms` have passed or, with `once`, each has had it; grants of each. With `settled`, from the moment on in
   * which each has had it once, because the first one comes back before the others have joined: it says `{"settled": true}` then. Ends the process's use.
   */
  contend: {
    takes: {
      key: string;
      contenders: number;
      ttlSeconds: number;
      ms: number;
      holdMs: number;
      once: boolean;
      settled?: boolean;
      limit?: number;
    };
    gives: { grants: number[]; tookMs: number };
  };
  /**
   * Says `{"settled": true}` and waits `HOLD_AFTER_MS`. Then it acquires, and writes to the store until `ms` have passed or the library
   * says that the lock is lost, and releases. The work of a write is done between the look at the lock and the write.
   */
  hold: {
    takes: { key: string; ttlSeconds: number; storeUrl: string; writer: string; ms: number };
    gives: { grantedMs: number; lostMs?: number; releaseError?: string };
  };
}

/** Time for the bench to break the network or the server, in milliseconds. */
export const HOLD_AFTER_MS = 200;

/** The work between a look at the lock and the write. */
export const WORK_MS = 50;

export type Scenario = keyof Scenarios;
type Takes<Name extends Scenario> = Scenarios[Name]['takes'];
type Gives<Name extends Scenario> = Promise<Scenarios[Name]['gives']>;

/** Long enough for nothing to expire while it is measured. */
const LONG_TTL_SECONDS = 60;

/** If some contender has had no turn by then, it starves, and the measurement begins all the same. */
const SETTLED_WITHIN = 2;

/**
 * Answers what standard input asks for, until it ends. A contestant that is bundled does not await this: each file that it loads later would wait for the
 * end of its start.
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
    const waiting = acquired(caller(ttlSeconds, 1), key);
    await delay(delayMs);
    const releasedAt = performance.now();
    await held.release();
    const { next, grantedAt } = await waiting;
    await next.release();
    return grantedAt - releasedAt;
  };
  return { waitedMs: await Promise.all(keys.map((key, at) => one(key, delaysMs[at]))) };
}

async function acquired(caller: Caller, key: string): Promise<{ next: Held; grantedAt: number }> {
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
    const { next, grantedAt } = await acquired(caller(ttlSeconds, 1), key);
    await next.release();
    return grantedAt - expiredAt;
  };
  return { waitedMs: await Promise.all(keys.map(one)) };
}

async function contend({ caller }: Contestant, task: Takes<'contend'>): Gives<'contend'> {
  const { key, contenders, ttlSeconds, ms, holdMs, once, settled = false, limit = 1 } = task;
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
    } while (!once && !isOver);
  };
  const time = async () => {
    if (settled) await Promise.race([settle.promise, delay(SETTLED_WITHIN * ms)]);
    await delay(ms);
    isOver = true;
  };
  // A contender that still waits at the end is left waiting: the process is stopped.
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
