import type { LeaseDependencies } from '../dependencies.ts';

// Remembers which keys had a line a moment ago. A call that wants to wait joins such a line without a first try, which
// would be refused.

const SEEN_FOR_MS = 1000;
const MAX_SEEN_KEYS = 100;

const seenAt = new WeakMap<LeaseDependencies, Map<string, number>>();

export function noteMark(dependencies: LeaseDependencies, { key, mark }: { key: string; mark: unknown }): void {
  const keys = seenAt.get(dependencies) ?? new Map<string, number>();
  seenAt.set(dependencies, keys);
  keys.delete(key);
  if (mark === undefined) return;
  keys.set(key, dependencies.clock.now());
  if (keys.size > MAX_SEEN_KEYS) for (const oldest of keys.keys()) return void keys.delete(oldest);
}

/** Whether the record of the key had a mark within the last second. */
export function sawMark(dependencies: LeaseDependencies, key: string): boolean {
  const lastSeenAt = seenAt.get(dependencies)?.get(key);
  return lastSeenAt !== undefined && Math.abs(dependencies.clock.now() - lastSeenAt) < SEEN_FOR_MS;
}
