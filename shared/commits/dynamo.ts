import { PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { isNew, isStill, isStillForeign } from './conditions.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import type { Intent, Intents, LostIntent, WonIntent } from './intents.ts';
import { type Observation, observe, provesForeign, readObservation, waitMs } from './observations.ts';
import { type CommitRecord, parseRecord, readRecord, recordItem, recordKey, showsTry } from './record.ts';
import type { CommitRequest } from './request.ts';

/** Within this time of its record's writing, a commit of ours is more likely under way than dead. */
const UNDER_WAY_MS = 1000;

/**
 * The commit protocol of the Rust crate object_store (DynamoCommit): a record for each path and expected ETag, which a
 * writer creates before it writes. Records are never deleted on success: a slow foreign writer must still run into them.
 * Source: object_store 0.12, aws/dynamo.rs, except for the take-over of our own records and the wait across calls.
 * See docs/protocols/commits.md, "The record".
 */
export class RecordedIntents implements Intents {
  readonly readsFirst = true;
  readonly #dependencies: CommitDependencies;
  readonly #request: CommitRequest;
  /** The record that the last write ran into, or that this call has written itself. */
  #standing: CommitRecord | undefined;
  /** Whether this call wrote it. */
  #standingIsOwn = false;
  /** The observation of that record, if it is foreign. */
  #observation: Observation | undefined;
  /** Whether a record was met that names this commit. Undefined as long as none was met. */
  #wasNamed: boolean | undefined;
  /** The last foreign record that was met: it may have replaced one that names this commit. */
  #foreign: CommitRecord | undefined;
  /** False once this call has taken over another call's record: a write of that one may still be in flight. */
  #undisturbed = true;

  constructor(dependencies: CommitDependencies, request: CommitRequest) {
    this.#dependencies = dependencies;
    this.#request = request;
  }

  async declare(call: Call): Promise<Intent> {
    const standing = this.#standing;
    if (!standing) {
      const first = await this.#put(undefined, isNew, call);
      // A record of ours is taken over at once, unless its writer is likely to be done in a moment: the writer that
      // takes over then loses to S3's condition, after three more requests. A foreign record is waited for after
      // another look.
      const inTheWay = !first.won && !first.underWay ? this.#standing : undefined;
      return inTheWay?.ours ? this.#takeOver(inTheWay, isStill(inTheWay), call) : first;
    }
    if (standing.ours) return this.#takeOver(standing, isStill(standing), call);
    return this.#waitOrTakeOver(standing, call);
  }

  async triedBefore(call: Call): Promise<boolean> {
    if (this.#wasNamed === undefined) {
      const record = await readRecord(this.#dependencies, this.#request, call);
      this.#wasNamed = false;
      if (record) this.#note(record);
    }
    if (this.#wasNamed || !this.#foreign?.displacedMore) return this.#wasNamed;
    const observation = await readObservation(this.#dependencies, this.#request, call);
    return !(observation && provesForeign(this.#dependencies, observation, this.#foreign));
  }

  async #waitOrTakeOver(standing: CommitRecord, call: Call): Promise<Intent> {
    const { clock } = this.#dependencies;
    this.#observation ??= await observe(this.#dependencies, { key: this.#request, record: standing }, call);
    const takeOverAt = this.#observation.seenAt + waitMs(this.#dependencies, standing) + 1;
    if (clock.now() < takeOverAt) {
      const { generation } = standing;
      return { won: false, obstacle: { generation, until: takeOverAt } };
    }
    // Our record must say of the foreign one what that one cannot say itself.
    const displacedMore = standing.displacedMore && !provesForeign(this.#dependencies, this.#observation, standing);
    return this.#takeOver({ ...standing, displacedMore }, isStillForeign(standing), call);
  }

  #takeOver(record: CommitRecord, condition: Condition, call: Call): Promise<Intent> {
    this.#undisturbed &&= this.#standingIsOwn;
    return this.#put(record, condition, call);
  }

  async #put(before: CommitRecord | undefined, condition: Condition, call: Call): Promise<WonIntent | LostIntent> {
    const { dynamodb, clock, table, commitTimeoutMs: timeoutMs, commitTtlSeconds: ttlSeconds } = this.#dependencies;
    const { path, expectedEtag, entry } = this.#request;
    const { commitId } = entry;
    const generation = before ? before.generation + 1 : 0;
    const sentAt = clock.now();
    const item = recordItem({
      ...{ path, expectedEtag, generation, timeoutMs, ttlSeconds, commitId, before },
      writtenAt: sentAt,
    });
    const command = new PutItemCommand({
      TableName: table,
      Item: item,
      ...conditionFields(condition),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const operation = writing(commitTable(table), { commitId });
    const outcome = await conditionalWrite(dynamodb, { command, operation }, call);
    const found = outcome.won ? item : outcome.old;
    const standing = found && parseRecord(found);

    // Only a lost reply makes a call run into its own record; without one it is another call's with the same id.
    const isLostReply = !outcome.won && outcome.unanswered && standing?.writtenAt === sentAt;
    const isOwn = outcome.won || (isLostReply && standing.generation === generation && standing.commitId === commitId);
    this.#standing = standing;
    this.#standingIsOwn = isOwn;
    this.#observation = undefined;
    this.#wasNamed ??= false;
    if (standing && !isOwn) this.#note(standing);
    if (!outcome.won || !standing) return { won: false, underWay: this.#isUnderWay(standing) };
    const abandon = async () => {
      if (this.#undisturbed) await this.#abandon(standing, call);
    };
    return { won: true, generation, sendBefore: sentAt + timeoutMs, abandon };
  }

  /** What a record of another call or another client says about earlier tries of this commit. */
  #note(record: CommitRecord): void {
    if (record.ours) this.#wasNamed ||= showsTry(record, this.#request.entry.commitId);
    else this.#foreign = record;
  }

  #isUnderWay(record: CommitRecord | undefined): boolean {
    if (record?.writtenAt === undefined || record.commitId === this.#request.entry.commitId) return false;
    return this.#dependencies.clock.now() - record.writtenAt < UNDER_WAY_MS;
  }

  /** Best effort: the failure that is being reported matters more, and the record times out on its own. */
  async #abandon(record: CommitRecord, call: Call): Promise<void> {
    const { dynamodb, table } = this.#dependencies;
    const command = new UpdateItemCommand({
      TableName: table,
      Key: recordKey(this.#request),
      UpdateExpression: 'SET #timeout = :zero',
      ...conditionFields(isStill(record), { names: { '#timeout': 'timeout' }, values: { ':zero': integer(0) } }),
    });
    await conditionalWrite(dynamodb, { command, operation: writing(commitTable(table)) }, call).catch(() => undefined);
  }
}
