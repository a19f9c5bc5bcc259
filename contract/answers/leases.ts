import * as z from 'zod/mini';
import type { Json } from '../../shared/aws/attributes.ts';
import type { WaitedForView } from '../../shared/leases/read.ts';
import { LEASE_STATES } from '../../shared/leases/rules.ts';
import type { LeaseView } from '../../shared/leases/views.ts';
import type { Acquired, Broken, LeaseGrant, Parked, Previous, Released } from '../../shared/line/calls.ts';
import { ENDINGS } from '../../shared/line/ended.ts';
import { KINDS } from '../../shared/line/kind.ts';
import type { Cancelled } from '../../shared/line/withdrawal.ts';
import type { KeyPage, ListedKey } from '../../shared/locks/listed-keys.ts';
import type { Withdrawn } from '../../shared/locks/withdraw.ts';
import { MEANING, orNull } from '../meanings.ts';
import { always, component, count, flag, instant, json, list, nullable, number, oneOf, text } from '../schema.ts';
import { limitChanged, mode, used, weight } from './pools.ts';
import { waiter } from './waiters.ts';

const key = () => text(MEANING.key);
const ticket = () => text(MEANING.ticket);
const holder = () => text(MEANING.holder);
const requestId = () => text(MEANING.requestId);
const nextCursor = () => nullable(text(MEANING.nextCursor));

export const grantFields = () => ({
  key: key(),
  holder: holder(),
  leaseId: text(MEANING.leaseId),
  version: text('A UUID that is new after each heartbeat, and a secret.'),
  fence: count(MEANING.fence),
  acquiredAt: instant(MEANING.acquiredAt),
  expiresAt: instant(MEANING.expiresAt),
  remainingMs: count(MEANING.remainingMs),
  bound: z.exactOptional(
    always(true, 'The grant lasts as long as its execution, without heartbeats. Absent otherwise.'),
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
  'The holder before, whose work may be half done if its grant has `expired` or was `broken`. For a permit, a holder whose room the permit takes. Null if there was no such holder, a third-party client was the holder, or the response to a first try was lost.',
  z.strictObject({
    holder: holder(),
    fence: count(MEANING.fence),
    ended: oneOf(
      ENDINGS,
      'How that grant ended: its holder released it, it expired, an operator broke it, or the execution that held it ended. `expired` also if an operator broke it with `wait` and the holder did not release it.',
    ),
    at: instant('When that grant ended.'),
    by: z.exactOptional(
      text(
        'The operator that broke the grant: an IAM ARN or the subject of a JWT, up to 256 characters. Absent if the record does not say.',
      ),
    ),
  }),
);

export const acquired = component<Acquired>()(
  'AcquiredGrant',
  'A lease or a permit that the caller has acquired.',
  z.strictObject({
    ...grantFields(),
    waitedMs: count(
      'From the arrival of the call to its answer, in milliseconds; for a task, from its parking to the message with its grant. The grant lasts until `sentAt + waitedMs + remainingMs` on the clock of the caller. `sentAt` is a moment before the call was sent.',
    ),
    repeated: flag('True if the request had its grant already: the call is a retry, or a response was lost.'),
    previous: nullable(previous),
    mode: z.exactOptional(mode()),
    limit: z.exactOptional(nullable(count('The limit that this permit names. Null for `exclusive`.'))),
    weight: z.exactOptional(weight()),
    used: z.exactOptional(used()),
    limitChanged: z.exactOptional(limitChanged()),
  }),
);

export const parked = component<Parked>()(
  'Parked',
  'A task that waits in line, or that has its grant already.',
  z.strictObject({
    key: key(),
    holder: holder(),
    ticket: ticket(),
    parked: flag('False if the task was notified at once, or another call is notifying it.'),
  }),
);

const wasReleased = component<Extract<Released, { released: true }>>()(
  'Released',
  'The lease or the permit has ended, and the next waiter has its grant.',
  z.strictObject({ key: key(), released: always(true, 'The caller held it.') }),
);
const wasNotReleased = component<Extract<Released, { released: false }>>()(
  'NotReleased',
  'The caller did not hold the lease or the permit. That is no error, because programs release when they clean up.',
  z.strictObject({
    key: key(),
    released: always(false, 'The caller did not hold it.'),
    reason: oneOf(
      ['taken', 'broken', 'unknown'],
      'Another caller has the key, an operator broke the grant, or the record does not show the grant.',
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
      'True if the next caller can have the key already. False if the holder has it until its release, or until `holderUntil`.',
    ),
    holderUntil: nullable(
      instant(
        'The expiry on record when the grant was broken. The holder may work until then, unless a heartbeat fails earlier. Null if the record does not say, as in the answer to a repeat after the permit has ended.',
      ),
    ),
    lastHeartbeatAt: nullable(
      instant('The last heartbeat. Null if no heartbeat came since the grant, or the record does not say.'),
    ),
  }),
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
    reason: oneOf(
      ['granted', 'gone', 'unknown'],
      'The waiter has its grant already, its task or call no longer waits, or no waiter has the ticket.',
    ),
  }),
);
export const cancelled = z.union([wasCancelled, wasNotCancelled]);

const wasWithdrawn = component<Extract<Withdrawn, { cancelled: true }>>()(
  'Withdrawn',
  'No call of the request is in line, and no call that was in line holds the key.',
  z.strictObject({ key: key(), requestId: requestId(), cancelled: always(true, 'The request is withdrawn.') }),
);
const wasNotWithdrawn = component<Extract<Withdrawn, { cancelled: false }>>()(
  'NotWithdrawn',
  'There was nothing to withdraw.',
  z.strictObject({
    key: key(),
    requestId: requestId(),
    cancelled: always(false, 'There was nothing to withdraw.'),
    reason: oneOf(['unknown'], 'No call of the request waits, and the request has no grant, or no longer.'),
  }),
);
export const withdrawn = z.union([wasWithdrawn, wasNotWithdrawn]);

export const leaseFields = () => ({
  key: key(),
  state: oneOf(LEASE_STATES, 'Whether a caller holds the key. `free`: the key has no record of a release.'),
  holder: nullable(text(`${orNull(MEANING.holder)} After a release, the last holder.`)),
  fence: nullable(count(`${MEANING.fence} Of the last grant.`)),
  acquiredAt: nullable(instant(MEANING.acquiredAt)),
  expiresAt: nullable(instant(`${MEANING.expiresAt} Null if no caller holds the key.`)),
  remainingMs: nullable(count(MEANING.remainingMs)),
  ttlSeconds: nullable(number(`${MEANING.ttlSeconds} Null if no caller holds the key.`)),
  execution: nullable(text(MEANING.execution)),
  bound: flag(MEANING.bound),
  inGrace: flag(MEANING.inGrace),
  ending: flag(MEANING.ending),
  brokenAt: nullable(
    instant(
      'When an operator broke the grant, or the last grant of a key that has no holder. Null if no operator did, or the record does not say.',
    ),
  ),
  brokenBy: nullable(
    text(
      'The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator.',
    ),
  ),
  data: json<Json>(`${MEANING.data} Null if there is none.`),
});

export const lease = component<LeaseView>()(
  'Lease',
  'A lease, as every reader sees it.',
  z.strictObject(leaseFields()),
);

const listedKey = component<ListedKey>()(
  'ListedKey',
  'A key in a list. The row of a pool has, from `holder` to `data`, the permit that expires first, or with `sort` `held` the oldest permit.',
  z.strictObject({
    ...leaseFields(),
    kind: oneOf(KINDS, 'The kind of the key.'),
    waiting: count(
      'How many tasks and calls are in line, or more: the record counts some that have left. Read the key for the number in line.',
    ),
    used: z.exactOptional(used()),
    limit: z.exactOptional(nullable(count(MEANING.limit))),
    holders: z.exactOptional(count('The number of holders of the pool.')),
  }),
);

export const leaseWithQueue = component<WaitedForView>()(
  'LeaseWithQueue',
  'A lease with its line. A key without a record has this form too.',
  z.strictObject({
    ...leaseFields(),
    kind: always('lease', 'The kind of the key.'),
    hasRecord: flag('False if no caller has used the key, or no caller has since the retention of its record ended.'),
    previous: nullable(previous),
    waiting: count(MEANING.waiting),
    waiters: z.exactOptional(list(waiter, 'The oldest of those in line, if the request has `waiters`.')),
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
