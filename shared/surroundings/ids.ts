import { randomUUID } from 'node:crypto';

/** The source of ids and random numbers. Tests pass a seeded one. */
export interface Ids {
  /** A version 4 UUID that cannot be guessed. */
  uuid(): string;
  /** A number in [0, 1), for jitter. */
  random(): number;
}

export const systemIds: Ids = { uuid: randomUUID, random: Math.random };

export function shuffled<Item>(items: readonly Item[], { random }: Ids): Item[] {
  if (items.length < 2) return [...items];
  const lots = items.map((item) => ({ item, lot: random() })).toSorted((one, other) => one.lot - other.lot);
  return lots.map(({ item }) => item);
}
