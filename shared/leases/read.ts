import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { reading, send } from '../aws/send.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { type Previous, previousView } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { WaiterView } from '../line/listed-waiters.ts';
import { parseRecord } from './record.ts';
import { grantedIn } from './rules.ts';
import { type LeaseView, leaseView } from './views.ts';

export interface ReadInput {
  key: string;
  /** Whether to list who is in line. */
  waiters?: boolean | undefined;
  limit?: number | undefined;
}

export interface WaitedForView extends LeaseView {
  kind: 'lease';
  /** Whether the key has a record. A key without one was never used, or was last used before the retention. */
  hasRecord: boolean;
  /** The holder before, if the lease was granted in line. Null if the record does not say. */
  previous: Previous | null;
  /** How many tasks and callers are in line for it, counted up to 100, or up to the limit of `waiters` where that is more. */
  waiting: number;
  /** The oldest of those, if the caller asked for them. */
  waiters?: WaiterView[];
}

/** Reads one key, with a consistent read. @throws OtherKind; HoldfastError Throttled, Unavailable */
export const lookUpLease =
  (dependencies: LeaseDependencies) =>
  (asked: ReadInput, call: Call): Promise<WaitedForView> =>
    readOne(dependencies, asked, call);

async function readOne(
  dependencies: LeaseDependencies,
  { key, waiters, limit = DEFAULT_LIMIT }: ReadInput,
  call: Call,
): Promise<WaitedForView> {
  const { dynamodb, clock, table } = dependencies;
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  const record = item && parseRecord(item);
  const now = clock.now();
  const view = {
    ...leaseView(key, record, now),
    ...{ kind: 'lease' as const, hasRecord: record !== undefined, previous: previousView(record?.previous) },
  };
  // Without the mark no call waits, unless another client dropped the mark. Then the schedule puts it back. Callers that have left may come back.
  if (record?.waiters === undefined && !(Number(record?.lineUntil) > now) && !waiters) return { ...view, waiting: 0 };
  const { readWaiting } = await import('../line/listed-waiters.ts');
  const asked = { key, granted: grantedIn(record ?? { key }), limit: waiters ? limit : 0 };
  const parked = await readWaiting(dependencies, asked, call);
  return { ...view, waiting: parked.waiting, ...(waiters && { waiters: parked.waiters }) };
}
