import { PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { isNew, isUnchanged, isUnchangedForeign } from './conditions.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import type { Intent, Intents, LostIntent, WonIntent } from './intents.ts';
import { type Observation, observe, provesThirdParty, readObservation, takeOverWaitMs } from './observations.ts';
import { type CommitRecord, parseRecord, readRecord, recordItem, recordKey, showsTry } from './record.ts';
import type { CommitRequest } from './request.ts';

/** A commit of this service whose record is younger than this is probably under way. An older one has probably died. */
const UNDER_WAY_MS = 1000;

/**
 * Intents in the commit protocol of the Rust crate object_store (DynamoCommit): before it writes, a writer creates a
 * record for the path and the expected ETag. A record is not deleted when the commit lands, because a slow client must
 * still find it. The source is aws/dynamo.rs of object_store 0.12. Two things are our own: the take-over of this
 * service's records, and the wait that continues across calls. See docs/protocols/commits.md#the-record.
 */
export class RecordedIntents implements Intents {
  readonly readsFirst = true;
  readonly #dependencies: CommitDependencies;
  readonly #request: CommitRequest;
  /** The record in the table, as the last write of this call found it or left it. */
  #standing: CommitRecord | undefined;
  /** Whether this call wrote the record in the table. */
  #standingIsOwn = false;
  /** The observation of the record in the table, if another client wrote the record. */
  #observation: Observation | undefined;
  /** Whether a record has shown an earlier try of this commit. Undefined until a record was read. */
  #wasTried: boolean | undefined;
  /**
   * The last record of another client that was read. It may have replaced a record that shows an earlier try of this
   * commit.
   */
  #foreign: CommitRecord | undefined;
  /** False after this call has taken over the record of another call, whose write may still be under way. */
  #undisturbed = true;

  constructor(dependencies: CommitDependencies, request: CommitRequest) {
    this.#dependencies = dependencies;
    this.#request = request;
  }

  async declare(call: Call): Promise<Intent> {
    const standing = this.#standing;
    if (!standing) {
      const first = await this.#put(undefined, isNew, call);
      // A record of this service is taken over at once, unless its writer is probably under way: then the take-over
      // would only lose to S3's condition, after three more requests. Before the wait for a record of another client,
      // the object is read again.
      const inTheWay = !first.won && !first.underWay ? this.#standing : undefined;
      return inTheWay?.ours ? this.#takeOver(inTheWay, isUnchanged(inTheWay), call) : first;
    }
    if (standing.ours) return this.#takeOver(standing, isUnchanged(standing), call);
    return this.#waitOrTakeOver(standing, call);
  }

  async triedBefore(call: Call): Promise<boolean> {
    if (this.#wasTried === undefined) {
      const record = await readRecord(this.#dependencies, this.#request, call);
      this.#wasTried = false;
      if (record) this.#note(record);
    }
    if (this.#wasTried || !this.#foreign?.displacedMore) return this.#wasTried;
    const observation = await readObservation(this.#dependencies, this.#request, call);
    return !(observation && provesThirdParty(this.#dependencies, observation, this.#foreign));
  }

  async #waitOrTakeOver(standing: CommitRecord, call: Call): Promise<Intent> {
    const { clock } = this.#dependencies;
    this.#observation ??= await observe(this.#dependencies, { key: this.#request, record: standing }, call);
    const takeOverAt = this.#observation.seenAt + takeOverWaitMs(this.#dependencies, standing) + 1;
    if (clock.now() < takeOverAt) {
      const { generation } = standing;
      return { won: false, obstacle: { generation, until: takeOverAt } };
    }
    // The new record must say whether the record of the other client may hide earlier tries, because that record cannot
    // say it itself.
    const displacedMore = standing.displacedMore && !provesThirdParty(this.#dependencies, this.#observation, standing);
    return this.#takeOver({ ...standing, displacedMore }, isUnchangedForeign(standing), call);
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

    // A call meets its own record only if the reply to its write was lost. Otherwise another call with the same commit
    // id wrote the record.
    const isLostReply = !outcome.won && outcome.unanswered && standing?.writtenAt === sentAt;
    const isOwn = outcome.won || (isLostReply && standing.generation === generation && standing.commitId === commitId);
    this.#standing = standing;
    this.#standingIsOwn = isOwn;
    this.#observation = undefined;
    this.#wasTried ??= false;
    if (standing && !isOwn) this.#note(standing);
    if (!outcome.won || !standing) return { won: false, underWay: this.#isUnderWay(standing) };
    const abandon = async () => {
      if (this.#undisturbed) await this.#abandon(standing, call);
    };
    return { won: true, generation, sendBefore: sentAt + timeoutMs, abandon };
  }

  /** Keeps what the record of another call or another client shows about earlier tries of this commit. */
  #note(record: CommitRecord): void {
    if (record.ours) this.#wasTried ||= showsTry(record, this.#request.entry.commitId);
    else this.#foreign = record;
  }

  #isUnderWay(record: CommitRecord | undefined): boolean {
    if (record?.writtenAt === undefined || record.commitId === this.#request.entry.commitId) return false;
    return this.#dependencies.clock.now() - record.writtenAt < UNDER_WAY_MS;
  }

  /**
   * Marks the record as failed. An error is ignored: the record times out on its own, and the caller already receives
   * the first error.
   */
  async #abandon(record: CommitRecord, call: Call): Promise<void> {
    const { dynamodb, table } = this.#dependencies;
    const command = new UpdateItemCommand({
      TableName: table,
      Key: recordKey(this.#request),
      UpdateExpression: 'SET #timeout = :zero',
      ...conditionFields(isUnchanged(record), { names: { '#timeout': 'timeout' }, values: { ':zero': integer(0) } }),
    });
    await conditionalWrite(dynamodb, { command, operation: writing(commitTable(table)) }, call).catch(() => undefined);
  }
}
