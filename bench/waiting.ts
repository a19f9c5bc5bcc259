import { type Arena, bestLibrary, type Entry, type Running, withArena } from './contestants.ts';
import { type Figure, type Measurement, milliseconds, type Options, shuffle, statistics } from './measurement.ts';

/** How many keys have a waiting caller at the same time. One process runs this many callers without an effect on the figures. */
const AT_A_TIME = 5;
const REPETITIONS = 4;
/** How many hand-offs this measurement and `servers` count, so that one table can compare them. */
export const HAND_OFF = { atATime: AT_A_TIME, ttlSeconds: 10, heldMs: 3000 };
/** All contestants share the two cores at the same time, because libraries wait for whole leases. */
const QUICK_AT_A_TIME = 2;
const IN_TURN = 'one contestant after the other, in random order';
export const CLOCK_SKEW_MS = 500;
const [CRASHED_TTL_SECONDS, QUICK_CRASHED_TTL_SECONDS] = [3, 2];
const crashedTtl = ({ quick }: Options) => (quick ? QUICK_CRASHED_TTL_SECONDS : CRASHED_TTL_SECONDS);

const handoff: Measurement = {
  name: 'handoff',
  comparesLibraries: true,
  title: 'Hand-off: from sending the release to the grant of the caller who waits',
  method: `The holder releases a lease of ten seconds after three seconds and up to a quarter more. ${AT_A_TIME} keys at a time, each with one holder and one waiting caller; ${IN_TURN}`,
  run: (options) =>
    withWaiters(options, 'hand-off', (running, repetition) => handOffs(running, options, repetition)).then(figures),
};

/** @returns the milliseconds of each key */
async function handOffs({ ask, name }: Running, options: Options, repetition: number): Promise<number[]> {
  const { ttlSeconds, heldMs } = options.quick ? { ttlSeconds: 2, heldMs: 300 } : HAND_OFF;
  const own = keys(options, `hand-off ${name}`, repetition);
  const delaysMs = own.map(() => heldMs + Math.random() * 250);
  return (await ask('handoff', { keys: own, ttlSeconds, delaysMs })).waitedMs;
}

const takeover: Measurement = {
  name: 'takeover',
  comparesLibraries: true,
  title: 'Take-over after a crash: from expiry to the grant of a caller who came in the middle of the lease',
  method: `Leases of ${CRASHED_TTL_SECONDS} seconds that are neither extended nor released, ${AT_A_TIME} keys at a time. The time counts from the expiry that the grant names, or if it names none, from the ttl after the answer. Holdfast waits for ${CLOCK_SKEW_MS} ms more, because clocks differ; ${IN_TURN}`,
  run: (options) =>
    withWaiters(options, 'take-over', (running, repetition) => takeOvers(running, options, repetition)).then(figures),
};

/** @returns for each key, the milliseconds from the expiry */
async function takeOvers({ ask, name }: Running, options: Options, repetition: number): Promise<number[]> {
  const ttlSeconds = crashedTtl(options);
  const task = { keys: keys(options, `take-over ${name}`, repetition), ttlSeconds, arriveMs: ttlSeconds * 500 };
  return (await ask('takeover', task)).waitedMs;
}

/** How long after the expiry the newcomer comes. */
const AFTER_EXPIRY_MS = 1000;

const lateArrival: Measurement = {
  name: 'newcomer',
  comparesLibraries: true,
  title: 'Take-over by a newcomer: from its call to its grant, a second after a crashed holder’s lease expired',
  method: `Leases of ${CRASHED_TTL_SECONDS} seconds that are neither extended nor released, ${AT_A_TIME} keys at a time. The expiry is known as for \`takeover\`; ${IN_TURN}`,
  run: (options) =>
    withWaiters(options, 'newcomer', async ({ ask, name }, repetition) => {
      const ttlSeconds = crashedTtl(options);
      const arriveMs = ttlSeconds * 1000 + AFTER_EXPIRY_MS;
      const { waitedMs } = await ask('takeover', {
        keys: keys(options, `newcomer ${name}`, repetition),
        ttlSeconds,
        arriveMs,
      });
      return waitedMs.map((ms) => ms - AFTER_EXPIRY_MS);
    }).then(figures),
};

const keys = ({ quick }: Options, what: string, repetition: number) =>
  Array.from({ length: quick ? QUICK_AT_A_TIME : AT_A_TIME }, (_, at) => `${what} ${repetition} ${at}`);

type Found = Map<Entry, number[][]>;

function withWaiters(
  options: Options,
  what: string,
  measure: (running: Running, repetition: number) => Promise<number[]>,
): Promise<Found> {
  const { quick, progress } = options;
  return withArena(options, async ({ entries, start }: Arena) => {
    const running = await Promise.all(
      entries.filter(({ waits, expires }) => waits && expires).map((one) => start(one)),
    );
    // The libraries wait for a whole lease.
    const warm = running.filter(({ kind }) => kind === 'ours' || !quick);
    await Promise.all(warm.map((one) => warmUp(one, options)));
    const found: Found = new Map(running.map((one) => [one, []]));
    const repetitions = quick ? 1 : REPETITIONS;
    for (let repetition = 1; repetition <= repetitions; repetition++) {
      const restart = async (one: Running) => {
        progress(`${what}: ${repetition} of ${repetitions}: ${one.name}`);
        found.get(one)?.push(await measure(one, repetition));
      };
      if (quick) await Promise.all(running.map(restart));
      else for (const one of shuffle([...running])) await restart(one);
    }
    return found;
  });
}

/** Opens the connections, and runs all code once. */
function warmUp({ ask, name }: Running, options: Options) {
  const own = keys(options, `warm ${name}`, 0);
  return ask('handoff', { keys: own, ttlSeconds: 2, delaysMs: own.map(() => 1) });
}

/** Our own bars are judged beside a bare write (line.ts). */
function figures(found: Found): Figure[] {
  const best = bestLibrary(found, (times) => -statistics(times).median);
  const bestMedian = best && statistics(found.get(best) ?? []).median;
  return [...found].map(([{ name }, times]) => {
    const figure = milliseconds(name, times);
    return { ...figure, ...(bestMedian !== undefined && { toBestLibrary: figure.median / bestMedian }) };
  });
}

export const waitingMeasurements: Measurement[] = [handoff, takeover, lateArrival];
