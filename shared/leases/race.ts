import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { reading, send } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { raceFor } from '../line/race.ts';
import { type Granted, tryOnce } from './first-try.ts';
import type { GrantRequest } from './grant.ts';
import { type LeaseRecord, parseRecord } from './record.ts';
import { isLeased, isRepeatable, takeoverAt } from './rules.ts';
import { leaseHeld } from './views.ts';

interface Racing {
  request: GrantRequest;
  heldBy: LeaseRecord;
  /** When patience ends, in epoch milliseconds. */
  deadline: number;
}

/**
 * Waits outside the line (`fair: false`): looks whether the lease has come free, and tries again. This costs less than a place in line, and
 * the caller that looks first gets the lease.
 * @throws HoldfastError LeaseHeld when patience ends, LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export function race(
  dependencies: LeaseDependencies,
  { request, heldBy, deadline }: Racing,
  call: Call,
): Promise<Granted> {
  const { dynamodb, clock, table, clockSkewMs } = dependencies;
  return raceFor(dependencies, {
    heldBy,
    deadline,
    attempt: () => tryOnce(dependencies, request, call),
    look: async () => {
      const command = new GetItemCommand({ TableName: table, Key: { key: text(request.key) } });
      const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
      return item && parseRecord(item);
    },
    freeAt: (standing, now) =>
      !isLeased(standing) || isRepeatable(standing, request, now)
        ? Number.NEGATIVE_INFINITY
        : takeoverAt(standing, clockSkewMs),
    held: (standing) => leaseHeld(standing, clock.now(), clockSkewMs),
  });
}
