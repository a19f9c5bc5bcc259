import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/conditions.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { fenceRises } from '../conditions.ts';
import { type LeaseDependencies, leaseTable } from '../dependencies.ts';
import { type Grant, grantItem, integer, type LeaseRecord, parseRecord, text } from '../record.ts';
import { risingFence } from '../rules.ts';
import { both, grantUnchanged, isCounter, queueUnchanged, raising, type Written } from './marks.ts';
import type { Ticket } from './tickets.ts';

/** What a record may carry of the grant before, and a new grant need not have. */
const OPTIONAL = ['principal', 'data', 'execution', 'target', 'released_at', 'broken_at'];

/**
 * From one holder to the next, or from nobody, in one write, so that nobody comes in between. Everything of the grant
 * before is replaced or removed: its execution, left behind, would free its successor's lease when it ends.
 * @param others whether more are parked; where none are, the mark goes, on condition that none has come since
 */
export async function transfer(
  dependencies: LeaseDependencies,
  from: LeaseRecord,
  ticket: Ticket,
  others: boolean,
  call: Call,
): Promise<Written> {
  const { dynamodb, clock, table } = dependencies;
  const grant = grantTo(dependencies, from, ticket, clock.now());
  const { key: _, ...attributes } = grantItem(grant);
  const keepsCounting = others && isCounter(from);
  const guard = keepsCounting ? grantUnchanged(from) : both(grantUnchanged(from), queueUnchanged(from));
  const raised = others ? raising(from) : undefined;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(grant.key) },
    ...replacing(attributes, raised?.expression),
    ConditionExpression: all(guard.condition, fenceRises),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  Object.assign(command.input.ExpressionAttributeValues ?? {}, guard.values, raised?.values, {
    ':fence': integer(grant.fence),
  });
  const outcome = await conditionalWrite(dynamodb, command, leaseTable(table, 'write'), call);
  const item = outcome.won ? outcome.item : outcome.old;
  const standing = parseRecord(item ?? { key: text(grant.key) });
  // A try of the SDK's own may have landed before the one that lost.
  return { won: outcome.won || standing.version === grant.version, standing };
}

function grantTo({ ids }: LeaseDependencies, from: LeaseRecord, ticket: Ticket, now: number): Grant {
  return {
    key: ticket.key,
    version: ids.uuid(),
    leaseId: ids.uuid(),
    ttlSeconds: ticket.ttlSeconds,
    holder: ticket.holder,
    principal: ticket.principal,
    requestId: ticket.requestId,
    fence: risingFence(from, now),
    data: ticket.data,
    execution: ticket.execution,
    target: ticket.target,
    ticket: ticket.ticket,
    acquiredAt: now,
  };
}

/** Aliases for all: some of the names are reserved words. */
function replacing(attributes: Item, mark: string | undefined) {
  const set = Object.keys(attributes);
  const removed = OPTIONAL.filter((name) => !set.includes(name));
  return {
    UpdateExpression:
      `SET ${set.map((name) => `#${name} = :${name}`).join(', ')}${mark ? `, ${mark}` : ''} ` +
      `REMOVE ${removed.map((name) => `#${name}`).join(', ')}${mark ? '' : ', waiters'}`,
    ExpressionAttributeNames: Object.fromEntries([...set, ...removed].map((name) => [`#${name}`, name])),
    ExpressionAttributeValues: Object.fromEntries(
      set.map((name) => [`:${name}`, attributes[name] as NonNullable<Item[string]>]),
    ),
  };
}
