import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { type Committed, commitOutcomeUnknown, landedAnswer } from './answers.ts';
import { type Content, prepareContent } from './content.ts';
import type { CommitDependencies } from './dependencies.ts';
import { RecordedIntents } from './dynamo.ts';
import type { CommitInput, ResetFenceInput } from './inputs.ts';
import type { Intent, Intents, WonIntent } from './intents.ts';
import { newServiceMetadata } from './metadata.ts';
import { abortParts } from './multipart.ts';
import { UnrecordedIntents } from './native.ts';
import { readObject, type StoredObject } from './object.ts';
import { Pauses } from './pauses.ts';
import { type CommitRequest, commitRequest, resetRequest } from './request.ts';
import { judgeObject } from './verdict.ts';
import { writeObject } from './write.ts';

/** How many writes a call sends. S3's conflicts pass quickly, so after this many something else is wrong. */
const MAX_WRITES = 10;

/**
 * How many intents a call may lose. Each lost intent means that another writer went first, and after 50, one of those
 * writers has landed.
 */
const MAX_LOST_INTENTS = 50;

/**
 * Commits an object if the path is empty, or if the object at the path has the expected ETag. One writer wins. A repeat
 * with the same commit id receives the outcome of the commit, even if the first reply was lost or the writer crashed.
 * See docs/protocols/commits.md#steps.
 * @throws HoldfastError PreconditionFailed, FenceRejected, CommitInProgress, NotFound (source), PayloadTooLarge,
 *   InvalidRequest (the commit id has another content, the object has these bytes already), Throttled, Unavailable,
 *   OutcomeUnknown
 */
export function commitObject(dependencies: CommitDependencies) {
  return (input: CommitInput, call: Call): Promise<Committed> =>
    run(dependencies, commitRequest(dependencies, input, call.principal), call);
}

/**
 * Replaces or removes the fence of an object, if the object still has the ETag and the fence that the operator saw. It
 * commits the object's own bytes again, with the same headers and metadata. The object gets another ETag, so that a
 * commit that was decided on the old fence cannot land later. See docs/protocols/commits.md#fences.
 * @throws HoldfastError PreconditionFailed (another ETag or fence, or the fence was replaced after the last commit),
 *   CommitInProgress, InvalidRequest, Throttled, Unavailable, OutcomeUnknown
 */
export function replaceFence(dependencies: CommitDependencies) {
  return (input: ResetFenceInput, call: Call): Promise<Committed> =>
    run(dependencies, resetRequest(dependencies, input, call.principal), call);
}

function run(dependencies: CommitDependencies, request: CommitRequest, call: Call): Promise<Committed> {
  const intents =
    dependencies.protocol === 'dynamo' ? new RecordedIntents(dependencies, request) : new UnrecordedIntents(request);
  return new Commit(dependencies, { request, intents }, call).run();
}

class Commit {
  readonly #dependencies: CommitDependencies;
  readonly #request: CommitRequest;
  readonly #intents: Intents;
  readonly #call: Call;
  readonly #pauses: Pauses;
  #content: Content | undefined;
  #wonIntent: WonIntent | undefined;
  #writes = 0;
  #lostIntents = 0;
  /** Whether a try of the write was sent and got no answer: it may have landed, or may still land. */
  #unanswered = false;
  /** Whether it is known that the commit had not landed before this call. */
  #isFirst: boolean;
  /**
   * Stored with the object if this call writes before it reads: it tells this call's write apart from an earlier call's
   * write.
   */
  #callId: string | undefined;
  /** The error of a commit that can never land, because the object itself shows it. */
  #refusal: HoldfastError | undefined;
  /** Whether the write may be sent again even if an earlier try is unanswered. */
  #mayTryAgain = true;

  constructor(
    dependencies: CommitDependencies,
    { request, intents }: { request: CommitRequest; intents: Intents },
    call: Call,
  ) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#intents = intents;
    this.#call = call;
    this.#pauses = new Pauses(dependencies, request, call);
    this.#isFirst = !request.idWasGiven;
    if (!intents.readsFirst && request.idWasGiven) this.#callId = dependencies.ids.uuid();
  }

  async run(): Promise<Committed> {
    try {
      for (let reads = this.#intents.readsFirst; ; reads = true) {
        const object = reads ? await this.#read() : undefined;
        const committed = (reads && (await this.#decide(object))) || (await this.#tryToWrite(object));
        if (committed) return committed;
        await this.#pause();
      }
    } catch (error) {
      throw await this.#failure(error);
    }
  }

  #read(): Promise<StoredObject | undefined> {
    return readObject(this.#dependencies, this.#request.path, this.#call);
  }

  /**
   * @returns the answer if the object shows that the commit has landed. Undefined if the precondition holds, so that
   *   the write may be sent
   */
  async #decide(object: StoredObject | undefined): Promise<Committed | undefined> {
    const verdict = judgeObject(object, this.#request);
    const { protocol } = this.#dependencies;
    switch (verdict.state) {
      case 'landed':
        return landedAnswer(this.#request, verdict.object, {
          latest: verdict.latest,
          protocol,
          repeated: !this.#isOwnWrite(verdict.object),
        });
      case 'refused': {
        if (verdict.conclusive || !(await this.#mayHaveLanded())) {
          this.#refusal = verdict.error;
          throw verdict.error;
        }
        const why = 'this commit was sent before, and later writes hide whether it landed: read the object';
        throw commitOutcomeUnknown(this.#request, why, verdict.error);
      }
      case 'open':
        if (this.#unanswered && !this.#mayTryAgain)
          throw commitOutcomeUnknown(
            this.#request,
            'the write was sent, has no response, and may still land: send the same call again',
          );
        this.#isFirst = true;
        return undefined;
    }
  }

  /** Whether it is certain that this call, and not an earlier one, wrote the commit that the object shows. */
  #isOwnWrite({ serviceMetadata }: StoredObject): boolean {
    const hasCallId = this.#callId !== undefined && serviceMetadata?.call === this.#callId;
    return this.#unanswered && (this.#isFirst || hasCallId);
  }

  async #mayHaveLanded(): Promise<boolean> {
    return this.#unanswered || (this.#request.idWasGiven && (await this.#intents.triedBefore(this.#call)));
  }

  /**
   * Declares one intent and, if it is won, sends one write.
   * @returns undefined if the call must begin again with a read of the object
   */
  async #tryToWrite(object: StoredObject | undefined): Promise<Committed | undefined> {
    const { path, entry, fence, body } = this.#request;
    const isReset = 'seenFence' in body;
    const before = object ? object.serviceMetadata : null;
    const metadata = {
      ...(isReset ? object?.metadata : this.#request.metadata),
      ...newServiceMetadata(path, { before, entry, fence, call: this.#callId, isReset }),
    };
    const preparation = { request: this.#request, object, metadata };
    this.#content ??= await prepareContent(this.#dependencies, preparation, this.#call);
    if (!this.#content) {
      this.#lostIntents += 1;
      return undefined;
    }
    const intent = await this.#intents.declare(this.#call);
    if (!intent.won) {
      await this.#waitForOthers(intent);
      return undefined;
    }

    this.#wonIntent = intent;
    const content = this.#content;
    this.#writes += 1;
    const { sendBefore } = intent;
    const write = { request: this.#request, content, metadata, sendBefore };
    const written = await writeObject(this.#dependencies, write, this.#call);
    if (written.won) {
      const { protocol } = this.#dependencies;
      const { etag, versionId } = written;
      const { generation } = intent;
      return {
        path,
        etag,
        ...(versionId !== undefined && { versionId }),
        size: content.size,
        commitId: entry.commitId,
        ...(generation !== undefined && { generation }),
        protocol,
        repeated: false,
      };
    }
    this.#unanswered ||= written.unanswered;
    this.#mayTryAgain = written.mayTryAgain;
    if (written.error && !this.#unanswered) throw written.error;
    await this.#dropContent();
    return undefined;
  }

  async #waitForOthers(intent: Intent & { won: false }): Promise<void> {
    if (intent.obstacle) return this.#pauses.wait(intent.obstacle);
    this.#lostIntents += 1;
    // The first record in the way may be a dead writer's. Reading the object shows this, and waiting does not.
    if (intent.underWay || this.#lostIntents > 1) await this.#pauses.rest();
  }

  /**
   * Sleeps between two tries, so that writers that have met do not meet again.
   * @throws HoldfastError Unavailable after too many tries
   */
  async #pause(): Promise<void> {
    const tooLate = this.#pauses.tooLate && 'no time is left in this invocation: send the same call again';
    const tooOften = this.#writes >= MAX_WRITES || this.#lostIntents >= MAX_LOST_INTENTS;
    const why = tooLate || (tooOften && 'too many conflicting requests met the commit: send the same call again');
    if (why) throw new HoldfastError('Unavailable', why, { retryAfterMs: 1000 });
    if (this.#writes > 0) await this.#pauses.rest();
  }

  /**
   * Forgets the prepared content. The next try checks the source and copies parts again, as S3 demands after a
   * conflict.
   */
  async #dropContent(): Promise<void> {
    const content = this.#content;
    this.#content = undefined;
    // If the completion of an upload got no answer, it may still be under way, and must not be aborted. The bucket's
    // lifecycle removes its parts.
    if (content && 'parts' in content && !this.#unanswered)
      await abortParts(this.#dependencies, { path: this.#request.path, uploadId: content.uploadId }, this.#call);
  }

  /**
   * The error that the caller receives: OutcomeUnknown unless it is certain that the commit has not landed. If it has
   * not, the intent is abandoned, so that other writers do not wait for a write that will never be sent.
   */
  async #failure(error: unknown): Promise<unknown> {
    await this.#dropContent();
    const isUnknown = error instanceof HoldfastError && error.code === 'OutcomeUnknown';
    if (error === this.#refusal || isUnknown) return error;
    if (this.#unanswered)
      return commitOutcomeUnknown(
        this.#request,
        'the write was sent, and what became of it could not be learned',
        error,
      );
    await this.#wonIntent?.abandon();
    return error;
  }
}
