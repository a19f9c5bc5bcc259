import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Alias } from './alias.ts';
import { hasStatus } from './conditions.ts';
import { type NameserviceDependencies, type Request, writingTable } from './dependencies.ts';
import type { StatusInput } from './inputs.ts';
import { KINDS } from './items.ts';
import { kindOf, type Status, same, statusOf } from './record.ts';
import { conflict, lost, type Published, published } from './results.ts';
import { readRows } from './rows.ts';
import { type Update, updateConcern } from './update.ts';
import { asRead, map } from './values.ts';

/**
 * Sets the status where state and version are as expected, with one conditional UpdateItem. The version must rise.
 * @throws HoldfastError Conflict (`actual` is the status, null where there is no such alias), Throttled, Unavailable, OutcomeUnknown
 */
export async function pushStatus(
  dependencies: NameserviceDependencies,
  alias: Alias,
  { expected, next }: StatusInput,
  request: Request,
  call: Call,
): Promise<Published<Status>> {
  const wanted = statusAsRead(next);
  if (next.v <= expected.v) {
    const rows = await readRows(dependencies, alias, call);
    throw conflict(alias, 'status', kindOf(rows.meta) ? statusOf(rows.status) : null);
  }
  const outcome = await updateConcern(dependencies, alias, statusUpdate(expected, wanted), request, call);
  if (outcome.won) return published(alias, wanted);
  const actual = outcome.old ? statusOf(outcome.old) : null;
  if (actual && same(actual, wanted)) return published(alias, actual, { repeated: true });
  const operation = writingTable(dependencies.table, request);
  throw lost({ alias, what: 'status', actual, unanswered: outcome.unanswered }, operation);
}

/** As readers find it once it is stored. */
export const statusAsRead = ({ state, v, extra }: StatusInput['next']): Status => ({ state, v, extra: asRead(extra) });

export function statusUpdate(expected: StatusInput['expected'], { state, v, extra }: Status): Update {
  const hasExtra = Object.keys(extra).length > 0;
  return {
    concern: 'status',
    condition: hasStatus(expected),
    set: `#status = :state, status_v = :v${hasExtra ? ', status_meta = :extra' : ''}`,
    remove: hasExtra ? [] : ['status_meta'],
    names: { '#status': 'status' },
    values: {
      ':state': text(state),
      ':v': integer(v),
      ...(hasExtra && { ':extra': map(extra) }),
    },
    kinds: KINDS,
  };
}
