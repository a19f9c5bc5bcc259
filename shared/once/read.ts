import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { type Json, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { reading, send } from '../aws/send.ts';
import { listRows } from '../listings/list-rows.ts';
import type { CapView } from '../locks/calls/types.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { capAt, capView } from '../locks/record/capped.ts';
import { type KeySummary, keySummary } from '../locks/record/views.ts';
import type { ReadOnceInput } from './inputs.ts';
import { rememberedBy } from './judge-slot.ts';
import { type Done, type OnceRecord, parseOnce } from './record.ts';
import { onceKeyOf, onceRowOf } from './row-key.ts';

/** What every reader may see of a key: who works or worked last, and the last slot that was done. */
export interface OnceView extends Omit<KeySummary, 'bound' | 'inGrace' | 'brokenAt' | 'brokenBy' | 'supersededBy'> {
  kind: 'once';
  /** The slot of the grant. Null if the key has no record. */
  slot: string | null;
  /** Null if no slot is done, or `keepSeconds` are over. */
  done: DoneView | null;
  /** The result, only in the read of one key. Null if no slot is done. */
  result?: Json;
  /** The pause, if an operator has paused the key. */
  cap?: CapView;
}

export interface DoneView {
  slot: string;
  by: string | null;
  /** When the result was stored, in ISO 8601. */
  at: string;
  fence: number | null;
  /** Until when the slot is remembered, in ISO 8601. */
  keptUntil: string;
}

export interface OncePage {
  keys: OnceView[];
  /** Null on the last page. An empty page may have a cursor too. */
  nextCursor: string | null;
}

/** Reads one key, or lists the keys of `once`. @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable */
export const readOnce =
  (dependencies: LeaseDependencies) =>
  ({ key, prefix = '', ...page }: ReadOnceInput, call: Call): Promise<OnceView | OncePage> =>
    key === undefined
      ? listRows(
          dependencies,
          {
            ...page,
            prefix: onceRowOf(prefix),
            viewOf: (item) => {
              const record = parseOnce(item.key?.S ?? '', item);
              const view = viewOf(dependencies, record);
              // A record may have only the time of a lift, which stays because of late commands.
              return record.fence === undefined && !view.cap ? undefined : view;
            },
            abridged: (view) => ({ ...view, data: null }),
          },
          call,
        )
      : readOnceKey(dependencies, key, call);

async function readOnceKey(dependencies: LeaseDependencies, key: string, call: Call): Promise<OnceView> {
  const { dynamodb, table } = dependencies;
  const command = new GetItemCommand({ TableName: table, Key: { key: text(onceRowOf(key)) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  const record = parseOnce(onceRowOf(key), item);
  return { ...viewOf(dependencies, record), result: rememberedBy(record, dependencies)?.result ?? null };
}

function viewOf(dependencies: LeaseDependencies, record: OnceRecord): OnceView {
  const { slot = null } = record;
  const { clock, clockSkewMs } = dependencies;
  const done = rememberedBy(record, dependencies);
  const cap = capAt(record, { now: clock.now(), clockSkewMs });
  const { bound: _, inGrace: __, brokenAt: ___, brokenBy: ____, ...shown } = keySummary(record, clock.now());
  return {
    ...{ ...shown, key: onceKeyOf(record.key), kind: 'once', slot, done: done ? doneView(done) : null },
    ...(cap && { cap: capView(cap) }),
  };
}

const doneView = ({ slot, holder, at, fence, keepUntil }: Done): DoneView => ({
  slot,
  by: holder ?? null,
  at: new Date(at).toISOString(),
  fence: fence ?? null,
  keptUntil: new Date(keepUntil).toISOString(),
});
