import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { type Committed, commitOutcomeUnknown, found } from './answers.ts';
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

/** The conflicts that S3 reports pass. After this many, something else is wrong. */
const MAX_WRITES = 10;

/** Another writer won each of these tries, and one of that many has landed long since. */
const MAX_LOST_INTENTS = 50;

/**
 * Commits an object on a precondition: nothing is there, or exactly that ETag is. One writer wins. A repeat with the
 * same commit id, also after a lost reply or a crash, is answered with the outcome of the commit. See
 * docs/protocols/commits.md, "Steps".
 * @throws HoldfastError PreconditionFailed, FenceRejected, CommitInProgress, NotFound (source), PayloadTooLarge,
 *   InvalidRequest (commit id used otherwise, bytes that are there already), Throttled, Unavailable, OutcomeUnknown
 */
export function committer(dependencies: CommitDependencies) {
  return (input: CommitInput, call: Call): Promise<Committed> =>
    run(dependencies, commitRequest(dependencies, input, call.principal), call);
}

/**
 * Replaces or lifts the fence of an object, for an administrator who saw its ETag and its fence. It commits the
 * bytes that are there again, with the same headers and metadata, if the fence is still the one that was seen. The object
 * gets another ETag, so that no commit that was decided on the old fence lands after it. See
 * docs/protocols/commits.md, "Fences".
 * @throws HoldfastError PreconditionFailed (another ETag or fence, or replaced since the last commit),
 *   CommitInProgress, InvalidRequest, Throttled, Unavailable, OutcomeUnknown
 */
export function fenceResetter(dependencies: CommitDependencies) {
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
  #held: WonIntent | undefined;
  #writes = 0;
  #lostIntents = 0;
  /** Whether a try of the write was sent and got no answer: it may have landed, or may still land. */
  #unanswered = false;
  /** Whether a look has shown that the commit had not landed before this call. */
  #isFirst: boolean;
  /** Written with the object if the write goes out before any look: it tells this call's write from an earlier one's. */
  #callId: string | undefined;
  /** Why the object itself refuses this commit. This is certain, whatever else may be under way. */
  #refusal: HoldfastError | undefined;
  /** Whether the last write was one that may be tried again although an earlier one is unanswered. */
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
      for (let looks = this.#intents.readsFirst; ; looks = true) {
        const object = looks ? await this.#read() : undefined;
        const committed = (looks && (await this.#decide(object))) || (await this.#try(object));
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

  /** The answer if the object has it. Undefined if the precondition holds and the write may be sent. */
  async #decide(object: StoredObject | undefined): Promise<Committed | undefined> {
    const verdict = judgeObject(object, this.#request);
    const { protocol } = this.#dependencies;
    switch (verdict.state) {
      case 'landed':
        return found(this.#request, verdict.object, {
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

  /** Whether this call is known to have written the commit that the object shows. */
  #isOwnWrite({ serviceMetadata }: StoredObject): boolean {
    const hasCallId = this.#callId !== undefined && serviceMetadata?.call === this.#callId;
    return this.#unanswered && (this.#isFirst || hasCallId);
  }

  async #mayHaveLanded(): Promise<boolean> {
    return this.#unanswered || (this.#request.idWasGiven && (await this.#intents.triedBefore(this.#call)));
  }

  /** One intent and, if it is won, one write. Undefined if both begin again with a look at the object. */
  async #try(object: StoredObject | undefined): Promise<Committed | undefined> {
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
      await this.#makeWay(intent);
      return undefined;
    }

    this.#held = intent;
    const content = this.#content;
    this.#writes += 1;
    const { sendBefore } = intent;
    const asked = { request: this.#request, content, metadata, sendBefore };
    const written = await writeObject(this.#dependencies, asked, this.#call);
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

  async #makeWay(intent: Intent & { won: false }): Promise<void> {
    if (intent.obstacle) return this.#pauses.wait(intent.obstacle);
    this.#lostIntents += 1;
    // The first record in the way may be a dead writer's. A look shows that, and a wait does not.
    if (intent.underWay || this.#lostIntents > 1) await this.#pauses.rest();
  }

  /** Sleeps between two tries, so that writers that met once do not meet again. */
  async #pause(): Promise<void> {
    const tooLate = this.#pauses.tooLate && 'no time is left in this invocation: send the same call again';
    const tooOften = this.#writes >= MAX_WRITES || this.#lostIntents >= MAX_LOST_INTENTS;
    const why = tooLate || (tooOften && 'too many conflicting requests met the commit: send the same call again');
    if (why) throw new HoldfastError('Unavailable', why, { retryAfterMs: 1000 });
    if (this.#writes > 0) await this.#pauses.rest();
  }

  /** The next try looks at the source again and copies parts again, as S3 demands after a conflict. */
  async #dropContent(): Promise<void> {
    const content = this.#content;
    this.#content = undefined;
    // A completion without an answer may still be under way. The bucket's lifecycle removes what stays of it.
    if (content && 'parts' in content && !this.#unanswered)
      await abortParts(this.#dependencies, { path: this.#request.path, uploadId: content.uploadId }, this.#call);
  }

  /** Reports only what is certain as certain, and lets no other writer wait for a write that will never be sent. */
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
    await this.#held?.abandon();
    return error;
  }
}
