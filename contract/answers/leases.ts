import * as z from 'zod/mini';
import type { Json } from '../../shared/aws/attributes.ts';
import type { KeyPage } from '../../shared/locks/calls/list-keys.ts';
import {
  type Acquired,
  type Broken,
  type Capped,
  ENDINGS,
  KEY_STATES,
  type LeaseGrant,
  type MovedToFront,
  type Parked,
  type Previous,
  type Released,
} from '../../shared/locks/calls/types.ts';
import type { Cancelled, Withdrawn } from '../../shared/locks/calls/withdraw.ts';
import { MODES } from '../../shared/locks/record/identity.ts';
import type { HolderView } from '../../shared/locks/record/outcomes.ts';
import type { FullHolderView, KeySummary, KeyView, ListedKey } from '../../shared/locks/record/views.ts';
import { MEANING, orNull } from '../meanings.ts';
import {
  always,
  component,
  count,
  described,
  flag,
  instant,
  json,
  list,
  nullable,
  number,
  oneOf,
  text,
} from '../schema.ts';
import { cap } from './cap.ts';
import { waiter } from './waiters.ts';

const key = () => text(MEANING.key);
const ticket = () => text(MEANING.ticket);
const holder = () => text(MEANING.holder);
const requestId = () => text(MEANING.requestId);
const mode = () => oneOf(MODES, MEANING.mode);
const weight = () => count(MEANING.weight);
const used = () => count(MEANING.used);
const limit = () => nullable(count(MEANING.limit));
const nextCursor = () => nullable(text(MEANING.nextCursor));

export const grantFields = () => ({
  key: key(),
  holder: holder(),
  leaseId: text(MEANING.leaseId),
  version: text('A UUID that changes with each heartbeat. It is a secret.'),
  fence: count(MEANING.fence),
  acquiredAt: instant(MEANING.acquiredAt),
  expiresAt: instant(MEANING.expiresAt),
  remainingMs: count(MEANING.remainingMs),
  bound: z.exactOptional(
    always(true, 'True if the grant lasts as long as its execution, without heartbeats. Absent otherwise.'),
  ),
  data: z.exactOptional(json<Json>(MEANING.data)),
});

export const grant = component<LeaseGrant>()(
  'Grant',
  'A lease or a permit, as its holder sees it.',
  z.strictObject(grantFields()),
);

export const previous = component<Previous>()(
  'PreviousHolder',
  'The holder before. If its grant has `expired`, or was `broken` or `superseded`, its work may be half done. For a shared grant, it is a holder whose room the grant takes. Null if there was no such holder, if it was a third-party client, or if the response to the first try was lost.',
  z.strictObject({
    holder: holder(),
    fence: count(MEANING.fence),
    ended: oneOf(
      ENDINGS,
      'How that grant ended. `superseded`: its holder released it because a newer request had asked the holder to stop. `expired`: the grant expired, even if the holder had been asked to stop.',
    ),
    at: instant('When that grant ended.'),
    by: z.exactOptional(
      text(
        'The operator that broke the grant: an IAM ARN or the subject of a JWT, up to 256 characters. If the grant was `superseded`, the newer holder. Absent if the record does not say.',
      ),
    ),
  }),
);

const limitChanged = described(
  z.strictObject({
    from: count('The limit that the grant before named.'),
    to: count('The limit of this grant.'),
  }),
  { description: 'Present if the grant before named another limit: callers of the key may disagree about its limit.' },
);

export const acquired = component<Acquired>()(
  'AcquiredGrant',
  'The grant of the caller. Only a permit has `mode`, `limit`, `weight` and `used`.',
  z.strictObject({
    ...grantFields(),
    waitedMs: count(
      'From the arrival of the call to its answer, in milliseconds, or for a task from its parking to the message with its grant. On the clock of the caller, the grant lasts until `sentAt + waitedMs + remainingMs`, where `sentAt` is a moment before the call was sent.',
    ),
    repeated: flag('True if the request already had its grant, because the call is a retry or a response was lost.'),
    previous: nullable(previous),
    mode: z.exactOptional(mode()),
    limit: z.exactOptional(nullable(count('The limit that this request names, or 200.'))),
    weight: z.exactOptional(weight()),
    used: z.exactOptional(used()),
    limitChanged: z.exactOptional(limitChanged),
  }),
);

export const parked = component<Parked>()(
  'Parked',
  'A task that waits in line, or already has its grant.',
  z.strictObject({
    key: key(),
    holder: holder(),
    ticket: ticket(),
    parked: flag('True if the task waits in line. False if it was notified at once, or another call is notifying it.'),
  }),
);

const wasReleased = component<Extract<Released, { released: true }>>()(
  'Released',
  'The grant has ended, and the next waiter receives the key.',
  z.strictObject({ key: key(), released: always(true, 'The caller held it.') }),
);
const wasNotReleased = component<Extract<Released, { released: false }>>()(
  'NotReleased',
  'The caller did not hold the lease or the permit, which is not an error.',
  z.strictObject({
    key: key(),
    released: always(false, 'The caller did not hold it.'),
    reason: oneOf(
      ['taken', 'broken', 'superseded', 'unknown'],
      'Why not. `taken`: another caller has the key. `broken`: an operator broke the grant. `superseded`: a newer request has replaced this one. `unknown`: the record does not show the grant.',
    ),
  }),
);
export const released = z.union([wasReleased, wasNotReleased]);

export const broken = component<Broken>()(
  'Broken',
  'The lease or the permit that an operator has broken.',
  z.strictObject({
    key: key(),
    broken: always(true, 'The grant has ended, or is ending.'),
    fence: count('The fence of the grant that was broken.'),
    holder: nullable(text(orNull(MEANING.holder))),
    ended: flag(
      'True if the next caller can already have the key. False if the holder keeps it until its release, or until `holderUntil`.',
    ),
    holderUntil: nullable(
      instant(
        'When the grant would have expired. The holder may work until then, unless its heartbeat fails earlier. Null if the record does not say, for example if you repeat the call after the permit has ended.',
      ),
    ),
    lastHeartbeatAt: nullable(
      instant('When the last heartbeat came. Null if there was none, or the record does not say.'),
    ),
  }),
);

const notInLine = () =>
  oneOf(
    ['granted', 'gone', 'unknown'],
    'Why not. `granted`: the waiter already has its grant. `gone`: its task or call no longer waits. `unknown`: no waiter has this ticket.',
  );

const wasCancelled = component<Extract<Cancelled, { cancelled: true }>>()(
  'Cancelled',
  'The task or the call is out of the line, and fails with `LeaseLost`.',
  z.strictObject({ key: key(), ticket: ticket(), cancelled: always(true, 'The waiter is out of the line.') }),
);
const wasNotCancelled = component<Extract<Cancelled, { cancelled: false }>>()(
  'NotCancelled',
  'The task or the call was not in line.',
  z.strictObject({
    key: key(),
    ticket: ticket(),
    cancelled: always(false, 'The waiter was not in line.'),
    reason: notInLine(),
  }),
);
export const cancelled = z.union([wasCancelled, wasNotCancelled]);

const UP_TO =
  'How many tasks and calls are in line at most: the record still counts some that have left. Read the key for the exact number.';

export const capped = component<Capped>()(
  'Capped',
  'The cap of the key from now on.',
  z.strictObject({
    key: key(),
    cap: described(z.nullable(cap), { description: 'The cap from now on. Null if the key has none.' }),
    before: described(z.nullable(cap), { description: 'The cap before this call. Null if there was none.' }),
    used: used(),
    waiting: count(UP_TO),
  }),
);

const wasMoved = component<Extract<MovedToFront, { moved: true }>>()(
  'Moved',
  'The waiter is now the next one.',
  z.strictObject({
    key: key(),
    ticket: ticket(),
    moved: always(true, 'The next grant of the key is for this waiter, unless it leaves.'),
    before: nullable(
      text(
        'The ticket of the waiter that an earlier call had moved, and that is no longer next. Null if there was none.',
      ),
    ),
  }),
);
const wasNotMoved = component<Extract<MovedToFront, { moved: false }>>()(
  'NotMoved',
  'The waiter was not in line.',
  z.strictObject({
    key: key(),
    ticket: ticket(),
    moved: always(false, 'The waiter was not in line.'),
    reason: notInLine(),
  }),
);
export const moved = z.union([wasMoved, wasNotMoved]);

const wasWithdrawn = component<Extract<Withdrawn, { cancelled: true }>>()(
  'Withdrawn',
  'The request neither waits in line nor holds the key through a call that was in line.',
  z.strictObject({ key: key(), requestId: requestId(), cancelled: always(true, 'The request is withdrawn.') }),
);
const wasNotWithdrawn = component<Extract<Withdrawn, { cancelled: false }>>()(
  'NotWithdrawn',
  'There was nothing to withdraw.',
  z.strictObject({
    key: key(),
    requestId: requestId(),
    cancelled: always(false, 'There was nothing to withdraw.'),
    reason: oneOf(['unknown'], 'No call of the request waits, and the request does not have a grant.'),
  }),
);
export const withdrawn = z.union([wasWithdrawn, wasNotWithdrawn]);

const BROKEN_BY =
  'The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator.';

/** What every reader sees of a grant. Records of third-party clients lack most of these fields. */
const termFields = () => ({
  acquiredAt: nullable(instant(orNull(MEANING.acquiredAt))),
  remainingMs: nullable(count(orNull(MEANING.remainingMs))),
  ttlSeconds: nullable(number(orNull(MEANING.ttlSeconds))),
  execution: nullable(text(MEANING.execution)),
  bound: flag(MEANING.bound),
  inGrace: flag(MEANING.inGrace),
  ending: flag(MEANING.ending),
  brokenAt: nullable(instant('When an operator broke the grant. Null if no operator did, or the record does not say.')),
  brokenBy: nullable(text(BROKEN_BY)),
  supersededBy: z.exactOptional(
    text('The holder of the newer request that has asked this holder to stop. The grant is then `ending`.'),
  ),
  data: json<Json>(`${MEANING.data} Null if there is none.`),
});

const holderFields = () => ({
  holder: nullable(text(`${MEANING.holder} Null for a third-party client.`)),
  fence: nullable(count(`${MEANING.fence} Null for a third-party client.`)),
  mode: mode(),
  weight: weight(),
  expiresAt: nullable(instant(orNull(MEANING.expiresAt))),
});

export const shortHolder = component<HolderView>()(
  'Holder',
  'A holder of a key, in short.',
  z.strictObject(holderFields()),
);

const fullHolder = component<FullHolderView>()(
  'FullHolder',
  'A holder of a key, as every reader sees it.',
  z.strictObject({
    ...holderFields(),
    ...termFields(),
    state: oneOf(
      ['held', 'expired'],
      'Whether the grant has expired. A heartbeat revives an expired grant, until another grant replaces it.',
    ),
  }),
);

export const summaryFields = () => ({
  key: key(),
  state: oneOf(
    KEY_STATES,
    'Whether a caller holds the key. `expired`: all holders have expired. `released`: the last holder had the key alone, and its grant has ended. `free`: none of these.',
  ),
  holder: nullable(text(`${orNull(MEANING.holder)} After a release, the last exclusive holder.`)),
  fence: nullable(count(`${MEANING.fence} If no caller holds the key, it is the fence of the last grant.`)),
  expiresAt: nullable(instant(`${MEANING.expiresAt} Null if no caller holds the key.`)),
  ...termFields(),
});

export const summary = component<KeySummary>()(
  'KeySummary',
  'A key with one of its holders: the exclusive holder, or the shared holder whose grant expires first.',
  z.strictObject(summaryFields()),
);

const listedKey = component<ListedKey>()(
  'ListedKey',
  'A key in a list, with the holder that has had it for the longest time. With `sort` `expiry`, with the holder whose grant expires first.',
  z.strictObject({
    ...summaryFields(),
    used: used(),
    limit: limit(),
    cap: z.exactOptional(cap),
    holders: count('The number of holders.'),
    waiting: count(UP_TO),
  }),
);

export const oneKey = component<KeyView>()(
  'Key',
  'A key with all its holders and its line. From `state` to `data`, the fields are those of one holder, as in `KeySummary`.',
  z.strictObject({
    ...summaryFields(),
    holders: list(fullHolder, 'The holders, in the order of their grants. Empty if no caller holds the key.'),
    used: used(),
    limit: limit(),
    cap: z.exactOptional(cap),
    limitBy: nullable(text(orNull('The holder whose grant named that limit.'))),
    previous: nullable(previous),
    hasRecord: flag(
      'False if the key does not have a record, because no caller has used it, or its record was deleted after the retention.',
    ),
    waiting: count(MEANING.waiting),
    waiters: z.exactOptional(
      list(waiter, 'The first waiters in line, in the order of their arrival. Present if the request has `waiters`.'),
    ),
  }),
);

export const keyPage = component<KeyPage>()(
  'KeyPage',
  'A page of keys. A page may be empty and still have a cursor.',
  z.strictObject({
    leases: list(listedKey, 'The keys, in the order of `sort`. Without `sort`, in no particular order.'),
    nextCursor: nextCursor(),
  }),
);
