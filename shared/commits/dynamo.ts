import { GetItemCommand, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { send } from '../aws/send.ts';
import { type Condition, isNew, isStill, isStillForeign } from './conditions.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import type { Claim, Claimant } from './intents.ts';
import { firstSight, waitMs } from './observations.ts';
import {
  type CommitRecord,
  integer,
  type NewRecord,
  parseRecord,
  recordEtag,
  recordItem,
  showsTry,
  text,
} from './record.ts';
import type { CommitRequest } from './request.ts';

/** Within this time of its record's writing, a commit of ours is more likely under way than dead. */
const UNDER_WAY_MS = 1000;

/**
 * The commit protocol of the Rust crate object_store (DynamoCommit): a record for each path and expected ETag, which a
 * writer creates before it writes. Records are never deleted on success: a slow foreign writer must still run into them.
 * Source: object_store 0.12, aws/dynamo.rs, but for the take-over of our own records and the wait across calls.
 */
export const recordClaims =
  (dependencies: CommitDependencies): Claimant =>
  (request) => {
    const { clock, commitTimeoutMs } = dependencies;
    /** The record that the last write ran into, or that this call has written itself. */
    let standing: CommitRecord | undefined;
    let takeoverAt: number | undefined;
    /** Whether this call wrote it. */
    let standingIsOwn = false;
    let triedBefore: boolean | undefined;
    /** False once this call has taken over another call's record: a write of that one may still be in flight. */
    let undisturbed = true;

    const { commitId } = request.entry;

    const isUnderWay = (record: CommitRecord | undefined) =>
      record?.writtenAt !== undefined && record.commitId !== commitId && clock.now() - record.writtenAt < UNDER_WAY_MS;

    async function put(before: CommitRecord | undefined, condition: Condition, call: Call) {
      const generation = before ? before.generation + 1 : 0;
      const sentAt = clock.now();
      const outcome = await putRecord(
        dependencies,
        request,
        { generation, before, writtenAt: sentAt, condition },
        call,
      );
      const record = outcome.standing;
      standing = record;
      // Only a lost reply makes a call run into its own record; without one it is another call's with the same id.
      const isLostReply = outcome.unanswered && record?.writtenAt === sentAt && record.generation === generation;
      standingIsOwn = outcome.won || (isLostReply && record.commitId === commitId);
      takeoverAt = undefined;
      triedBefore ??= false;
      if (record && !standingIsOwn) triedBefore ||= showsTry(record, commitId);
      const claim: Claim =
        outcome.won && record
          ? {
              state: 'won',
              generation,
              sendBefore: sentAt + commitTimeoutMs,
              abandon: async () => {
                if (undisturbed) await abandon(dependencies, request, record, call);
              },
            }
          : { state: 'lost', underWay: isUnderWay(record) };
      return { claim, standing };
    }

    async function takeOver(record: CommitRecord, condition: Condition, call: Call): Promise<Claim> {
      undisturbed &&= standingIsOwn;
      return (await put(record, condition, call)).claim;
    }

    async function claim(call: Call): Promise<Claim> {
      if (!standing) {
        const first = await put(undefined, isNew, call);
        // A record of ours is taken over at once, unless its writer is likely to be done in a moment: whoever takes over
        // then loses to S3's condition, after three more requests. A foreign record is waited for after another look.
        const inTheWay = first.claim.state === 'lost' && !first.claim.underWay ? first.standing : undefined;
        return inTheWay?.ours ? takeOver(inTheWay, isStill(inTheWay), call) : first.claim;
      }
      if (standing.ours) return takeOver(standing, isStill(standing), call);
      takeoverAt ??=
        (await firstSight(dependencies, keyOf(request), standing, call)) + waitMs(dependencies, standing) + 1;
      if (clock.now() < takeoverAt) return { state: 'blocked', generation: standing.generation, until: takeoverAt };
      return takeOver(standing, isStillForeign(standing), call);
    }

    return {
      looksFirst: true,
      claim,
      triedBefore: async (call) => {
        if (triedBefore !== undefined) return triedBefore;
        const record = await readRecord(dependencies, keyOf(request), call);
        return record !== undefined && showsTry(record, commitId);
      },
    };
  };

const keyOf = ({ path, expectedEtag }: CommitRequest) => ({ path, etag: recordEtag(expectedEtag) });

async function putRecord(
  { dynamodb, table, commitTimeoutMs, commitTtlSeconds }: CommitDependencies,
  { path, expectedEtag, entry }: CommitRequest,
  { condition, ...place }: { condition: Condition } & Pick<NewRecord, 'generation' | 'before' | 'writtenAt'>,
  call: Call,
): Promise<{ won: boolean; unanswered: boolean; standing: CommitRecord | undefined }> {
  const item = recordItem({
    path,
    expectedEtag,
    ...place,
    timeoutMs: commitTimeoutMs,
    ttlSeconds: commitTtlSeconds,
    commitId: entry.commitId,
  });
  const command = new PutItemCommand({
    TableName: table,
    Item: item,
    ...condition,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, command, commitTable(table, 'write', entry.commitId), call);
  const standing = outcome.won ? item : outcome.old;
  return {
    won: outcome.won,
    unanswered: !outcome.won && outcome.unanswered,
    standing: standing && parseRecord(standing),
  };
}

/** Best effort: the failure that is being told matters more, and the record times out on its own. */
async function abandon(
  { dynamodb, table }: CommitDependencies,
  request: CommitRequest,
  record: CommitRecord,
  call: Call,
): Promise<void> {
  const { path, etag } = keyOf(request);
  const { ExpressionAttributeValues, ...condition } = isStill(record);
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { path: text(path), etag: text(etag) },
    UpdateExpression: 'SET #timeout = :zero',
    ...condition,
    ExpressionAttributeNames: { ...condition.ExpressionAttributeNames, '#timeout': 'timeout' },
    ExpressionAttributeValues: { ...ExpressionAttributeValues, ':zero': integer(0) },
  });
  await conditionalWrite(dynamodb, command, commitTable(table, 'write'), call).catch(() => undefined);
}

/** @throws HoldfastError Throttled, Unavailable */
export async function readRecord(
  { dynamodb, table }: CommitDependencies,
  { path, etag }: { path: string; etag: string },
  call: Call,
): Promise<CommitRecord | undefined> {
  const command = new GetItemCommand({
    TableName: table,
    Key: { path: text(path), etag: text(etag) },
    ConsistentRead: true,
  });
  const { Item: item } = await send(dynamodb, command, commitTable(table, 'read'), call);
  return item && parseRecord(item);
}
