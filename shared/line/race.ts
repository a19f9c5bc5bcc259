import type { Ids } from '../surroundings/ids.ts';
import type { LeaseDependencies } from './dependencies.ts';

/** The pauses of a waiting caller grow from about the former to the latter. */
const MIN_PAUSE_MS = 25;
const MAX_PAUSE_MS = 250;

/** What callers race for: a lease, or room in a pool. */
interface Race<Won extends { won: true }, Standing> {
  /** What kept the first try from it. */
  heldBy: Standing;
  /** When patience ends, in epoch milliseconds. */
  deadline: number;
  attempt(): Promise<Won | { won: false; standing: Standing }>;
  /** An eventually consistent read, which costs half a read unit and no write on a hot item. Undefined where nothing is there. */
  look(): Promise<Standing | undefined>;
  /** When another caller can get it, unless its holder extends it. */
  freeAt(standing: Standing, now: number): number;
  /** The error when patience ends. */
  held(standing: Standing): Error;
}

/** Looks whether it has come free, and tries again. @throws what `held` makes when patience ends, and what a try throws */
export async function raceFor<Won extends { won: true }, Standing>(
  dependencies: Pick<LeaseDependencies, 'clock' | 'ids'>,
  race: Race<Won, Standing>,
): Promise<Won> {
  const pauses = jitteredPauses(dependencies.ids);
  let { heldBy } = race;
  for (;;) {
    await untilItLooksFree(dependencies, { ...race, heldBy, pauses });
    const outcome = await race.attempt();
    if (outcome.won) return outcome;
    heldBy = outcome.standing;
  }
}

/** Sleeps until the holder's expiry, or for a jittered pause if that is shorter, and looks. */
async function untilItLooksFree<Won extends { won: true }, Standing>(
  { clock }: Pick<LeaseDependencies, 'clock'>,
  { heldBy, deadline, pauses, ...race }: Race<Won, Standing> & { pauses: Iterator<number, never> },
): Promise<void> {
  let standing = heldBy;
  for (;;) {
    const now = clock.now();
    const patience = deadline - now;
    if (patience <= 0) throw race.held(standing);
    // It may be in the past: the lease is free for its line, and Step Functions cannot be reached to notify the task that is next.
    const toTakeover = race.freeAt(standing, now) - now;
    const pause = pauses.next().value;
    await clock.sleep(Math.min(toTakeover > 0 ? Math.min(pause, toTakeover) : pause, patience));

    const seen = await race.look();
    if (!seen) return;
    standing = seen;
    const seenAt = clock.now();
    if (race.freeAt(standing, seenAt) <= seenAt) return;
  }
}

/** In milliseconds. */
export function* jitteredPauses(ids: Ids): Generator<number, never> {
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS))
    yield Math.round(pause * (0.5 + ids.random() / 2));
}
