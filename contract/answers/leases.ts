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
import { always, component, count, flag, instant, json, list, nullable, number, oneOf, text } from '../schema.ts';
import { mode, used, weight } from './pools.ts';
import { waiter } from './waiters.ts';

const key = () => text('The name of the resource.');
const nextCursor = () => nullable(text('Passed as `cursor`, it gets the next page. Null on the last page.'));

const grantFields = () => ({
  key: key(),
  holder: text('Who holds the lease, as the caller named itself.'),
  leaseId: text("The holder's proof, for heartbeat and release. It stays the same over heartbeats. A secret."),
  version: text('New at every heartbeat. A secret.'),
  fence: count('The fencing token. It rises with every new grant of the key.'),
  acquiredAt: instant('When the lease was granted.'),
  expiresAt: instant('When the lease ends unless a heartbeat extends it.'),
  remainingMs: count('How much of the lease was left when the service answered, in milliseconds.'),
  data: z.exactOptional(json<Json>('What the holder left for others to see.')),
});

export const grant = component<LeaseGrant>()('Grant', 'A lease as its holder sees it.', z.strictObject(grantFields()));

const previous = component<Previous>()(
  'PreviousHolder',
  'Who had the lease before, and how that ended. Null where the record does not tell: there was none, it was a client of another make, or the answer to a first try was lost.',
  z.strictObject({
    holder: text('Who had it, as that caller named itself.'),
    fence: count('The fencing token of that grant.'),
    ended: oneOf(
      ENDINGS,
      'Its holder released it, its time was over, an operator broke it, or the execution that held it ended.',
    ),
    at: instant('When it ended.'),
    by: z.exactOptional(
      text(
        'Of a broken lease: the operator that broke it, an IAM ARN or the subject of a JWT, up to 256 characters. Absent if the record does not say.',
      ),
    ),
  }),
);

export const acquired = component<Acquired>()(
  'AcquiredGrant',
  'A lease that the caller has acquired, or a permit of a pool.',
  z.strictObject({
    ...grantFields(),
    waitedMs: count(
      'From the arrival of the call to its answer; of a task, from when it was parked to the message of its grant. One reading of the clock ends it and begins remainingMs: deadline = sentAt + waitedMs + remainingMs on the clock of the caller.',
    ),
    repeated: flag('Whether the service had granted this request before: a retry, or a lost reply.'),
    previous: z.nullable(previous),
    mode: z.exactOptional(mode()),
    limit: z.exactOptional(
      nullable(
        count(
          'Of a permit: how much all holders may weigh together, as this caller asked for it. Null for `exclusive`.',
        ),
      ),
    ),
    weight: z.exactOptional(weight()),
    used: z.exactOptional(used()),
    limitChanged: z.exactOptional(
      z.strictObject({
        from: count('The limit that the grant before named.'),
        to: count('The limit of this permit. `limitChanged` is absent if the two limits are the same.'),
      }),
    ),
  }),
);

export const parked = component<Parked>()(
  'Parked',
  'A task that waits in the queue, or that the service has answered through Step Functions already.',
  z.strictObject({
    key: key(),
    holder: text('Who waits.'),
    ticket: text('The place in the queue.'),
    parked: flag('False where the task was notified at once, or is being notified by another call.'),
  }),
);

const wasReleased = component<Extract<Released, { released: true }>>()(
  'Released',
  'The lease is free, or the next in the queue holds it.',
  z.strictObject({ key: key(), released: always(true) }),
);
const wasNotReleased = component<Extract<Released, { released: false }>>()(
  'NotReleased',
  'The caller did not hold the lease. That is no error, because releases stand in cleanup code.',
  z.strictObject({
    key: key(),
    released: always(false),
    reason: oneOf(
      ['taken', 'broken', 'unknown'],
      'Another caller has it, an operator broke it, or there is no trace of it.',
    ),
  }),
);
export const released = z.union([wasReleased, wasNotReleased]);

export const broken = component<Broken>()(
  'Broken',
  'The lease or the permit that an operator has broken.',
  z.strictObject({
    key: key(),
    broken: always(true),
    fence: count('The fence of the lease or the permit that was broken.'),
    holder: nullable(text('The holder, which is to end its work. Null if the record does not say.')),
    ended: flag(
      'True if the key is free for the next caller already. False with `wait`: the key waits for the release of the holder, or for `holderUntil`.',
    ),
    holderUntil: nullable(
      instant(
        'The expiry on record when the lease was broken. The holder may go on until then, unless a heartbeat fails earlier. Null if the record does not say.',
      ),
    ),
    lastHeartbeatAt: nullable(
      instant(
        'The last heartbeat. Null if no heartbeat came since the grant, or the record does not say: then `holderUntil` is the bound.',
      ),
    ),
  }),
);

const wasCancelled = component<Extract<Cancelled, { cancelled: true }>>()(
  'Cancelled',
  'The task or the call is out of the queue, and fails with LeaseLost.',
  z.strictObject({ key: key(), ticket: text('The place in the queue that it had.'), cancelled: always(true) }),
);
const wasNotCancelled = component<Extract<Cancelled, { cancelled: false }>>()(
  'NotCancelled',
  'The task or the call was not waiting.',
  z.strictObject({
    key: key(),
    ticket: text('The place in the queue that was asked for.'),
    cancelled: always(false),
    reason: oneOf(
      ['granted', 'gone', 'unknown'],
      'The waiter has its grant already, its task or call no longer waits, or there is no such ticket.',
    ),
  }),
);
export const cancelled = z.union([wasCancelled, wasNotCancelled]);

const wasWithdrawn = component<Extract<Withdrawn, { cancelled: true }>>()(
  'Withdrawn',
  'No call of the request that was in line holds the lease any more.',
  z.strictObject({ key: key(), requestId: text('The request.'), cancelled: always(true) }),
);
const wasNotWithdrawn = component<Extract<Withdrawn, { cancelled: false }>>()(
  'NotWithdrawn',
  'There was no such request to withdraw.',
  z.strictObject({
    key: key(),
    requestId: text('The request.'),
    cancelled: always(false),
    reason: oneOf(['unknown'], "No call of the caller's waits by that request, and it has no lease, or no longer."),
  }),
);
export const withdrawn = z.union([wasWithdrawn, wasNotWithdrawn]);

const leaseFields = () => ({
  key: key(),
  state: oneOf(LEASE_STATES, 'Whether somebody holds the lease.'),
  holder: nullable(text('Who holds it, or held it last. Null where the record does not say.')),
  fence: nullable(count('The fencing token of the last grant.')),
  acquiredAt: nullable(instant('When it was granted.')),
  expiresAt: nullable(instant('When it ends. Null where nobody holds it.')),
  remainingMs: nullable(count('How much of it was left when the service answered, in milliseconds.')),
  ttlSeconds: nullable(number('What each heartbeat extends it by, in seconds. Null where nobody holds it.')),
  execution: nullable(
    text(
      'The ARN of the execution that holds the lease, or held the lease when that execution ended. Null if there is no such execution.',
    ),
  ),
  inGrace: flag(
    'True if that execution has ended, and the holder may go on for its grace, or for as long as the holder sends heartbeats.',
  ),
  ending: flag('True if an operator broke the lease, which stays until its holder releases the lease or its ttl ends.'),
  brokenAt: nullable(
    instant(
      'When an operator broke the lease, or the last lease of a key that has no holder. Null if no operator did, or the record does not say.',
    ),
  ),
  brokenBy: nullable(
    text(
      'The operator that did: an IAM ARN or the subject of a JWT, up to 256 characters. Null also if the API did not authenticate the operator, as `npm start`.',
    ),
  ),
  data: json<Json>('What the holder left for others to see. Null where there is nothing.'),
});

export const lease = component<LeaseView>()('Lease', 'A lease as anybody sees it.', z.strictObject(leaseFields()));

const listedKey = component<ListedKey>()(
  'ListedKey',
  'A key as a list shows it. Of a pool, the fields from `holder` to `data` are those of the permit that ends first, or with `sort` `held` of the oldest permit.',
  z.strictObject({
    ...leaseFields(),
    kind: oneOf(KINDS, 'The kind of the key.'),
    waiting: count(
      'Up to how many tasks and callers are in line: the record counts some that have left too. Reading the key counts the line itself.',
    ),
    used: z.exactOptional(used()),
    limit: z.exactOptional(
      nullable(count('The limit that the last grant of a pool named. Null if no grant has named a limit.')),
    ),
    holders: z.exactOptional(count('The number of holders of a pool.')),
  }),
);

export const leaseWithQueue = component<WaitedForView>()(
  'LeaseWithQueue',
  'A lease, with how many tasks and callers are in line for it.',
  z.strictObject({
    ...leaseFields(),
    kind: always('lease'),
    hasRecord: flag(
      'Whether the key has a record. If not, no caller has used the key, or none since the retention of its record has ended.',
    ),
    previous: z.nullable(previous),
    waiting: count(
      'How many tasks and callers are in line for it, counted up to 100, or up to `limit` where that is more and `waiters` lists them. A lower bound while rows of 200 callers that gave up stand in line.',
    ),
    waiters: z.exactOptional(list(waiter, 'The oldest of those, where the caller asked for them.')),
  }),
);

export const keyPage = component<KeyPage>()(
  'KeyPage',
  'A page of keys. An empty page may have a cursor.',
  z.strictObject({
    leases: list(listedKey, 'In the order of `sort`. Without `sort`, in no particular order.'),
    nextCursor: nextCursor(),
  }),
);
