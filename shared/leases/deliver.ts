import type { Call } from '../aws/call.ts';
import { previousView } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type Deliverable, deliver, measureHandOff, type Notified } from '../line/notify.ts';
import type { WaitingTask } from '../line/waiters.ts';
import { renew } from './marks.ts';
import type { Leased, LeaseRecord } from './record.ts';
import { endsAt, isBound, isLeased } from './rules.ts';
import { grantView } from './views.ts';

interface GrantMessage {
  waiter: WaitingTask;
  /** The grant, as it stands on record. */
  record: Leased;
  /** Whether the request had this grant before. */
  repeated: boolean;
  /** Whether this call wrote the version on record. Every other call writes a new version before it sends the grant. */
  isOurs: boolean;
}

/** Notifies a task of its lease, as acquire would have answered. @throws as `deliver` */
export async function notifyLease(
  dependencies: LeaseDependencies,
  { record, ...message }: GrantMessage,
  call: Call,
): Promise<Notified<LeaseRecord>> {
  const deliverable = (record: Leased): Deliverable<LeaseRecord> => ({
    record,
    expiresAt: endsAt(record),
    ttlMs: isBound(record) ? 0 : (record.ttlMs ?? 0),
    output: (now) => ({ ...grantView(record, now), previous: previousView(record.previous) }),
    renewed: async () => {
      const renewed = await renew(dependencies, { record, isRepeated: message.repeated }, call);
      return renewed.won && isLeased(renewed.record) ? deliverable(renewed.record) : { overtaken: renewed.record };
    },
  });
  const notified = await deliver(dependencies, { ...message, grant: deliverable(record) }, call);
  if (notified.outcome === 'delivered' && !message.repeated)
    measureHandOff(notified.record, dependencies.clock.now(), call);
  return notified;
}
