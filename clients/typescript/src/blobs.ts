import { type CallOptions, inTime, retry } from './attempt.ts';
import { isHoldfastError, refusal, unreachable } from './errors.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf } from './transport.ts';

/** Content up to this size is sent in the body of the commit, without an upload. */
export const MAX_BODY_BYTES = 1024 ** 2;

/** How long one try of an upload may take, in milliseconds. */
const UPLOAD_MS = 600_000;

/** How many bytes become text at a time, because a call can have only a limited number of arguments. */
const CHUNK_BYTES = 0x8000;

/** The content fields of a commit that is small enough for its own body. */
export async function bodyOf(content: Blob): Promise<{ body: string; encoding: 'base64' }> {
  const bytes = new Uint8Array(await content.arrayBuffer());
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES));
  return { body: btoa(binary), encoding: 'base64' };
}

interface Put extends CallOptions {
  surroundings: Surroundings;
  staged: AnswerOf<'stageUpload'>;
  /** Returns what a try sends. The signal cancels a stream. */
  body(signal: AbortSignal): Blob | ReadableStream<Uint8Array<ArrayBuffer>>;
  fetch?: typeof fetch | undefined;
}

/**
 * Sends an upload to its signed URL, with retries.
 * @returns the `uploadId`
 * @throws HoldfastError Refused, Unreachable; the error of the body
 */
export async function put({ surroundings, staged, body, fetch: send = fetch, ...limits }: Put): Promise<string> {
  const { uploadId, url, method, headers } = staged;
  const act = async (signal: AbortSignal) => {
    // Without `redirect` and `window`, Node keeps a copy of the whole body so that it can follow a redirect.
    const part = body(signal);
    const init = { method, headers, body: part, signal, duplex: 'half', redirect: 'error', window: null } as const;
    const response = await send(url, init).catch((error) => {
      throw [error, error.cause].find((one) => isHoldfastError(one)) ?? unreachable('the upload failed', error);
    });
    await response.body?.cancel();
    if (!response.ok) throw refusal(response.status, `S3 answered the upload with ${response.status}`);
  };
  await retry(surroundings, limits, () => inTime(surroundings, { ms: UPLOAD_MS, signal: limits.signal }, act));
  return uploadId;
}
