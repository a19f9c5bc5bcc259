import { GetObjectCommand, type GetObjectCommandOutput, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import type { Call } from '../aws/call.ts';
import { attempt, reading, type SdkError, toHoldfastError, writing } from '../aws/send.ts';

interface Stored {
  text: string;
  etag: string;
}

interface Replacement {
  /** The new text. It must differ from all texts that were stored under the key before. */
  text: string;
  /** The ETag of the object that is replaced. Undefined if there is none. */
  before: string | undefined;
}

type Replaced = { won: true; etag: string } | { won: false };

export interface ReportStore {
  /** @returns undefined if there is no object @throws HoldfastError Throttled, Unavailable */
  get(key: string, call: Call): Promise<Stored | undefined>;
  /** @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
  put(key: string, text: string, call: Call): Promise<void>;
  /**
   * Replaces exactly the object that was read, or creates it. The write is lost if another writer has replaced the
   * object since.
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  replace(key: string, replacement: Replacement, call: Call): Promise<Replaced>;
}

/** How often a write is tried if it meets another conditional write. S3 then decides neither of them. */
const MAX_STORE_CONFLICTS = 5;

export function reportStore(s3: S3Client, bucket: string): ReportStore {
  const resource = `bucket ${bucket}`;

  async function get(key: string, call: Call): Promise<Stored | undefined> {
    const command = new GetObjectCommand({ Bucket: bucket, Key: key });
    const outcome = await attempt(s3, { command }, call);
    if ('output' in outcome) return { text: await bodyOf(outcome.output), etag: outcome.output.ETag ?? '' };
    if (outcome.error.name === 'NoSuchKey') return undefined;
    throw toHoldfastError(outcome.error, reading(resource), outcome.unanswered);
  }

  /** The text of an answer. The connection can break while the body is read, and the SDK does not try again then. */
  const bodyOf = async ({ Body: stream }: GetObjectCommandOutput): Promise<string> => {
    try {
      return (await stream?.transformToString()) ?? '';
    } catch (error) {
      throw toHoldfastError(error as SdkError, reading(resource), false);
    }
  };

  const putInput = (key: string, text: string) => ({
    Bucket: bucket,
    Key: key,
    Body: text,
    ContentType: key.endsWith('.ndjson') ? 'application/x-ndjson' : 'application/json',
  });

  return {
    get,
    put: async (key, text, call) => {
      const outcome = await attempt(s3, { command: new PutObjectCommand(putInput(key, text)) }, call);
      if ('error' in outcome) throw toHoldfastError(outcome.error, writing(resource), outcome.unanswered);
    },
    replace: async (key, { text, before }, call) => {
      const condition = before === undefined ? { IfNoneMatch: '*' } : { IfMatch: before };
      for (let tries = 1; ; tries++) {
        const command = new PutObjectCommand({ ...putInput(key, text), ...condition });
        const outcome = await attempt(s3, { command }, call);
        if ('output' in outcome) return { won: true, etag: outcome.output.ETag ?? '' };
        const status = outcome.error.$metadata?.httpStatusCode;
        const wasRefused = status === 409 || status === 412 || outcome.error.name === 'NoSuchKey';
        if (!wasRefused && !outcome.unanswered) throw toHoldfastError(outcome.error, writing(resource), false);
        // An earlier, unanswered try may have landed. Then this try failed because of it, and the stored text is this
        // write's.
        const standing = await get(key, call);
        if (standing?.text === text) return { won: true, etag: standing.etag };
        if (standing?.etag !== before) return { won: false };
        if (tries === MAX_STORE_CONFLICTS) throw toHoldfastError(outcome.error, writing(resource), outcome.unanswered);
      }
    },
  };
}
