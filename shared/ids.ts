import { randomUUID } from 'node:crypto';

/** The source of identifiers and chance. Tests pass a seeded one. */
export interface Ids {
  /** A version 4 UUID, unguessable. */
  uuid(): string;
  /** A number in [0, 1), for jitter. */
  random(): number;
}

export const systemIds: Ids = { uuid: randomUUID, random: Math.random };
