import * as z from 'zod/mini';
import type { Json } from '../../shared/aws/attributes.ts';
import type { AlreadyDone, Run, Superseded } from '../../shared/once/begin.ts';
import type { Completed } from '../../shared/once/complete.ts';
import type { Forgotten } from '../../shared/once/forget.ts';
import type { DoneView, OncePage, OnceView } from '../../shared/once/read.ts';
import { MEANING, orNull } from '../meanings.ts';
import { always, component, count, flag, instant, json, list, nullable, oneOf, text } from '../schema.ts';
import { cap } from './cap.ts';
import { grantFields, previous, summaryFields } from './leases.ts';

const key = () => text('The key of the call.');
const slot = () => text('The slot of the call.');
const result = () => json<Json>('The stored result.');

const doneFields = () => ({
  doneBy: nullable(text(orNull('The holder that completed the slot.'))),
  doneAt: instant('When the slot was completed.'),
  fence: nullable(count(orNull('The fence of the grant that completed the slot.'))),
});

const { bound: _run, ...runFields } = grantFields();

const run = component<Run>()(
  'OnceRun',
  'The caller is to work for the slot, and then call `complete`.',
  z.strictObject({
    outcome: always('run', 'No other caller works for the slot, and the slot is not done.'),
    ...runFields,
    slot: text('The slot of the grant. For a retry, the slot of the first try.'),
    waitedMs: count(
      'How long the call waited, from its arrival to its answer, in milliseconds. On the clock of the caller, the grant lasts until `sentAt + waitedMs + remainingMs`, where `sentAt` is a moment before the call was sent.',
    ),
    repeated: flag('True if the request already had this grant, because the call is a retry or a response was lost.'),
    previous: nullable(previous),
  }),
);

const alreadyDone = component<AlreadyDone>()(
  'OnceDone',
  'The slot is done.',
  z.strictObject({
    outcome: always('done', 'A caller has completed the slot.'),
    key: key(),
    slot: slot(),
    result: result(),
    ...doneFields(),
  }),
);

const superseded = component<Superseded>()(
  'OnceSuperseded',
  'A later slot is done, so this one is no longer wanted. Results of earlier slots are not kept.',
  z.strictObject({
    outcome: always('superseded', 'A caller has completed a later slot.'),
    key: key(),
    slot: slot(),
    doneSlot: text('The later slot.'),
    ...doneFields(),
  }),
);

export const begun = z.union([run, alreadyDone, superseded]);

const wasCompleted = component<Extract<Completed, { completed: true }>>()(
  'OnceCompleted',
  'The result is stored.',
  z.strictObject({
    key: key(),
    completed: always(true, 'The caller has stored its result.'),
    repeated: flag('True if an earlier try had already stored a result, which stays.'),
    slot: text('The slot that is done.'),
    doneAt: instant('When the result was stored.'),
    fence: nullable(count(orNull(MEANING.fence))),
  }),
);
const wasNotCompleted = component<Extract<Completed, { completed: false }>>()(
  'OnceNotCompleted',
  'No result is stored.',
  z.strictObject({
    key: key(),
    completed: always(false, 'The caller no longer holds the grant.'),
    reason: oneOf(
      ['released', 'taken', 'broken', 'unknown'],
      '`released`: the grant was released, or the execution has ended. `taken`: another caller has begun since. `broken`: an operator broke the grant. `unknown`: the record does not show the grant.',
    ),
  }),
);
export const completed = z.union([wasCompleted, wasNotCompleted]);

export const forgotten = component<Forgotten>()(
  'OnceForgotten',
  'The slot is forgotten.',
  z.strictObject({
    key: key(),
    forgotten: always(true, 'The key remembers no slot now.'),
    fence: count('The fence of the request.'),
    slot: nullable(
      text('The slot that was forgotten. Null if the key did not remember a slot, for example after a retry.'),
    ),
  }),
);

const done = component<DoneView>()(
  'OnceLastSlot',
  'The last slot that was done.',
  z.strictObject({
    slot: text('The slot.'),
    by: nullable(text(orNull('The holder that completed the slot.'))),
    at: instant('When the slot was completed.'),
    fence: nullable(count(orNull('The fence of the grant that completed the slot.'))),
    keptUntil: instant('Until when the result is kept.'),
  }),
);

const { bound: _, inGrace: __, brokenAt: ___, brokenBy: ____, supersededBy: _____, ...ofGrant } = summaryFields();

export const onceKey = component<OnceView>()(
  'OnceKey',
  'A key of `once`: who works or has worked last, and which slot is done.',
  z.strictObject({
    ...ofGrant,
    kind: always('once', 'The kind of the key.'),
    slot: nullable(text('The slot of the last grant. Null if the key has no record.')),
    done: nullable(done),
    result: z.exactOptional(json<Json>('The stored result, in the read of one key. Null if no slot is done.')),
    cap: z.exactOptional(cap),
  }),
);

export const oncePage = component<OncePage>()(
  'OncePage',
  'A page of keys, without results. An empty page may have a cursor.',
  z.strictObject({
    keys: list(onceKey, 'The keys, in no particular order.'),
    nextCursor: nullable(text(MEANING.nextCursor)),
  }),
);
