import { periodSeconds } from '../../../shared/periods.ts';
import type { Rate } from '../../../shared/rates/charge.ts';
import type { Request, Row } from './protocol.ts';

/** Work that starts, at a true time. */
export interface Start {
  real: number;
  request: Request;
}

/** The most starts in a row that are compared, which keeps a run short. */
const MAX_STARTS = 80;

/** Whether more units of a rate start in some time than it allows. @param spread by how much clocks differ */
export function brokenWindow(
  starts: readonly Start[],
  rates: readonly Omit<Rate, 'units'>[],
  spread: number,
): string | undefined {
  const inOrder = starts.toSorted((one, other) => one.real - other.real);
  for (const [from, first] of inOrder.entries()) {
    const units = rates.map(() => 0);
    let ahead = 0;
    for (const { real, request } of inOrder.slice(from, from + MAX_STARTS)) {
      ahead = Math.max(ahead, request.ahead);
      for (const [nth, { limit, per }] of rates.entries()) {
        units[nth] = (units[nth] ?? 0) + (request.units[nth] ?? 0);
        const used = (units[nth] ?? 0) * (periodSeconds(per) ?? 0) * 1_000_000;
        if (used > limit * (real - first.real + spread + ahead)) return 'too many start';
      }
    }
  }
  return undefined;
}

/**
 * Whether the work that starts in some time uses more than that time, the burst, what earlier reservations return in it, and what its own
 * reservations still owe at its end.
 */
export function brokenWhenSettled(
  starts: readonly (Start & { more: number })[],
  changes: Row['changes'],
  { spread, isStrict }: { spread: number; isStrict: boolean },
): string | undefined {
  const begun = new Map(starts.map((start) => [start.request.name, start]));
  /** The last reservation of each request, because an unanswered one may have landed before. */
  const reserved = new Map<string, number>();
  for (const [nth, { name, more }] of changes.entries())
    if (begun.get(name)?.request.charge === more) reserved.set(name, nth);
  const startAt = (nth: number) => {
    const { name = '' } = changes[nth] ?? {};
    return reserved.get(name) === nth ? begun.get(name) : undefined;
  };
  for (const from of changes.keys()) {
    const first = startAt(from);
    if (!first) continue;
    let [used, owed, back] = [0, 0, 0];
    const within = new Set<string>();
    for (let nth = from; nth < Math.min(from + MAX_STARTS, changes.length); nth++) {
      const { name, more } = changes[nth] as Row['changes'][number];
      const start = startAt(nth);
      if (start) {
        within.add(name);
        used += start.request.charge + start.more;
        owed += Math.max(0, start.more);
        const slack = isStrict ? 0 : owed + back;
        if (used > start.real - first.real + start.request.ahead + spread + slack) return 'too much is used';
      } else if (within.has(name)) owed -= Math.max(0, more);
      else if (begun.has(name) && more < 0) back -= more;
    }
  }
  return undefined;
}
