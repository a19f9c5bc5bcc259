import { GetItemCommand, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { send } from '../aws/send.ts';
import type { Claim, Claimant } from './claims.ts';
import { type Condition, isNew, isStill, isStillForeign } from './conditions.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import { type CommitRecord, integer, parseRecord, recordEtag, recordItem, text } from './record.ts';
import type { CommitRequest } from './request.ts';
import { firstSight, waitMs } from './sights.ts';

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
    /** When this call wrote its own records: one that is met again tells of a lost reply, not of an earlier call. */
    const ownWrites = new Set<number | undefined>();
    let triedBefore: boolean | undefined;
    /** False once this call has taken over another call's record: a write of that one may still be in flight. */
    let undisturbed = true;

    const isOfThisCommit = (record: CommitRecord | undefined) => record?.commitId === request.entry.commitId;
    const isOfThisCall = (record: CommitRecord) => isOfThisCommit(record) && ownWrites.has(record.writtenAt);
    const isOfEarlierCall = (record: CommitRecord | undefined) =>
      record !== undefined && isOfThisCommit(record) && !isOfThisCall(record);

    const isUnderWay = (record: CommitRecord | undefined) =>
      record?.writtenAt !== undefined && !isOfThisCommit(record) && clock.now() - record.writtenAt < UNDER_WAY_MS;

    async function put(generation: number, condition: Condition, call: Call) {
      const sentAt = clock.now();
      ownWrites.add(sentAt);
      const outcome = await putRecord(dependencies, request, { generation, writtenAt: sentAt, condition }, call);
      standing = outcome.standing;
      takeoverAt = undefined;
      triedBefore = (triedBefore ?? false) || isOfEarlierCall(standing);
      const claim: Claim = outcome.won
        ? {
            state: 'won',
            generation,
            sendBefore: sentAt + commitTimeoutMs,
            abandon: async () => {
              if (undisturbed) await abandon(dependencies, request, generation, call);
            },
          }
        : { state: 'lost', underWay: isUnderWay(standing) };
      return { claim, standing };
    }

    async function takeOver(record: CommitRecord, condition: Condition, call: Call): Promise<Claim> {
      undisturbed &&= isOfThisCall(record);
      return (await put(record.generation + 1, condition, call)).claim;
    }

    async function claim(call: Call): Promise<Claim> {
      if (!standing) {
        const first = await put(0, isNew, call);
        // A record of ours is taken over at once, unless its writer is likely to be done in a moment: whoever takes over
        // then loses to S3's condition, after three more requests. A foreign record is waited for after another look.
        const inTheWay = first.claim.state === 'lost' && !first.claim.underWay && first.standing;
        return inTheWay && isOurs(inTheWay) ? takeOver(inTheWay, asItWas(inTheWay), call) : first.claim;
      }
      if (isOurs(standing)) return takeOver(standing, asItWas(standing), call);
      takeoverAt ??=
        (await firstSight(dependencies, keyOf(request), standing, call)) + waitMs(dependencies, standing) + 1;
      if (clock.now() < takeoverAt) return { state: 'blocked', generation: standing.generation, until: takeoverAt };
      return takeOver(standing, isStillForeign(standing), call);
    }

    return {
      looksFirst: true,
      claim,
      triedBefore: async (call) => triedBefore ?? isOfEarlierCall(await readRecord(dependencies, keyOf(request), call)),
    };
  };

const asItWas = ({ generation, commitId = '' }: CommitRecord) => isStill(generation, commitId);

const isOurs = (record: CommitRecord) => record.commitId !== undefined;

const keyOf = ({ path, expectedEtag }: CommitRequest) => ({ path, etag: recordEtag(expectedEtag) });

async function putRecord(
  { dynamodb, table, commitTimeoutMs, commitTtlSeconds }: CommitDependencies,
  { path, expectedEtag, entry }: CommitRequest,
  { generation, writtenAt, condition }: { generation: number; writtenAt: number; condition: Condition },
  call: Call,
): Promise<{ won: boolean; standing: CommitRecord | undefined }> {
  const item = recordItem({
    path,
    expectedEtag,
    generation,
    timeoutMs: commitTimeoutMs,
    ttlSeconds: commitTtlSeconds,
    commitId: entry.commitId,
    writtenAt,
  });
  const command = new PutItemCommand({
    TableName: table,
    Item: item,
    ...condition,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, command, commitTable(table, 'write', entry.commitId), call);
  const standing = outcome.won ? item : outcome.old;
  return { won: outcome.won, standing: standing && parseRecord(standing) };
}

/** Best effort: the failure that is being told matters more, and the record times out on its own. */
async function abandon(
  { dynamodb, table }: CommitDependencies,
  request: CommitRequest,
  generation: number,
  call: Call,
): Promise<void> {
  const { path, etag } = keyOf(request);
  const { ExpressionAttributeValues, ...condition } = isStill(generation, request.entry.commitId);
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
