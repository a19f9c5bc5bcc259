import { SendTaskFailureCommand, SendTaskSuccessCommand } from '@aws-sdk/client-sfn';
import type { Call } from '../../aws/call.ts';
import { attempt } from '../../aws/send.ts';
import type { HoldfastError } from '../../errors.ts';
import { nameWithin } from '../../namespace.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { Leased, LeaseRecord } from '../record.ts';
import { endsAt, isLeased } from '../rules.ts';
import { grantView, previousView } from '../views.ts';
import { measureHandOff } from './hand-off-time.ts';
import { renew } from './marks.ts';
import type { TaskTicket } from './tickets.ts';

/**
 * What became of a message to a task. `gone`: the task accepts none any more. It timed out, ended, or was notified before.
 * `unanswered`: every other failure. The message may have been delivered.
 */
export type Delivery = 'delivered' | 'gone' | 'unanswered';

const GONE = new Set(['TaskTimedOut', 'TaskDoesNotExist', 'InvalidToken']);

/** A task measures its work by the ttl. So a grant that is short of its whole ttl by more than this is not sent. */
const MAX_SHORTFALL_MS = 500;

/** Each renewal may be as slow as the one before. A grant that is still short after these is left to the schedule. */
const MAX_RENEWALS = 3;

interface GrantMessage {
  ticket: TaskTicket;
  /** The grant, as it stands on record. */
  record: Leased;
  /** Whether the request had this grant before. */
  repeated: boolean;
  /** Whether this call wrote the version on record. Every other call writes a new version before it sends the grant. */
  isOurs: boolean;
}

/** `overtaken`: another call has changed the grant, and nothing was sent. */
export type Notified = { outcome: Delivery | 'overtaken'; standing: LeaseRecord };

/**
 * Wakes the task with its grant, as acquire would have answered, and with its whole ttl ahead
 * (docs/protocols/queue.md#notify). A write may be answered late, so the clock is read again after each one. Sends at most
 * once (aws/step-functions.ts), and nothing if the grant stays short of its ttl: that is `unanswered`.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown of a renewal
 */
export async function notifyGranted(
  dependencies: LeaseDependencies,
  { ticket, record, repeated, isOurs }: GrantMessage,
  call: Call,
): Promise<Notified> {
  const { clock } = dependencies;
  await dependencies.stepFunctions(); // making the client takes time, which must not come off the ttl
  let standing = record;
  for (let renewals = 0; ; renewals++) {
    const now = clock.now();
    if ((isOurs || renewals > 0) && !isShort(standing, now)) {
      const waitedMs = Math.max(0, (standing.acquiredAt ?? now) - ticket.parkedAt);
      const output = JSON.stringify({
        ...grantView(standing, now),
        key: nameWithin(ticket.namespace, standing.key),
        waitedMs,
        repeated,
        previous: previousView(standing.previous),
      });
      const outcome = await send(
        dependencies,
        new SendTaskSuccessCommand({ taskToken: ticket.taskToken, output }),
        call,
      );
      if (outcome === 'delivered' && !repeated) {
        call.measure?.('ParkedMs', waitedMs);
        measureHandOff(standing, clock.now(), call);
      }
      return { outcome, standing };
    }
    if (renewals === MAX_RENEWALS) return { outcome: 'unanswered', standing };
    const renewed = await renew(dependencies, standing, call);
    if (!renewed.won || !isLeased(renewed.standing)) return { outcome: 'overtaken', standing: renewed.standing };
    standing = renewed.standing;
  }
}

function isShort(record: LeaseRecord, now: number): boolean {
  return endsAt(record) - now < (record.ttlMs ?? 0) - MAX_SHORTFALL_MS;
}

/** Ends the task with one of the documented errors. Its problem has the ticket in place of a trace id. */
export function notifyFailed(
  dependencies: LeaseDependencies,
  { ticket, error }: { ticket: TaskTicket; error: HoldfastError },
  call: Call,
): Promise<Delivery> {
  const key = nameWithin(ticket.namespace, ticket.key);
  const cause = JSON.stringify({ ...error.problem(ticket.ticket), key });
  const command = new SendTaskFailureCommand({ taskToken: ticket.taskToken, error: error.code, cause });
  return send(dependencies, command, call);
}

async function send(
  { stepFunctions }: LeaseDependencies,
  command: SendTaskSuccessCommand | SendTaskFailureCommand,
  call: Call,
): Promise<Delivery> {
  const tried = await attempt(await stepFunctions(), { command }, call);
  if ('output' in tried) return 'delivered';
  return GONE.has(tried.error.name) ? 'gone' : 'unanswered';
}
