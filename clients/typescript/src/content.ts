import type { CallOptions } from './attempt.ts';
import { bodyOf, MAX_BODY_BYTES, put } from './blobs.ts';
import { invalidRequest } from './errors.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf } from './transport.ts';

type ByteStream = ReadableStream<Uint8Array<ArrayBuffer>>;

/** The content that `upload` takes. */
export type Upload = Blob | ByteStream;

/** What a commit writes: text, bytes, a Blob or File, or a stream of bytes. */
export type Content = string | Uint8Array<ArrayBuffer> | Blob | ByteStream;

/** How much of a stream without a length is buffered in memory, in bytes. */
const MAX_HELD_BYTES = 16 * 1024 ** 2;

/** S3 needs the length of an upload, and only the `fetch` of Node and Bun sends the length of a stream. */
const CAN_STREAM = 'process' in globalThis && !('Deno' in globalThis);

/**
 * The body to send: the stream itself if the platform can stream requests, otherwise its whole content.
 * @throws HoldfastError InvalidRequest if the stream has another length, or is long and has no `sizeBytes`
 */
async function sendable(content: Content, sizeBytes = 0): Promise<Upload> {
  if (content instanceof Blob) return content;
  if (!(content instanceof ReadableStream)) return new Blob([content]);
  return CAN_STREAM && sizeBytes > MAX_BODY_BYTES ? content : new Response(checkLength(content, sizeBytes)).blob();
}

/** The content fields of a commit: `body` if the content is small enough, otherwise the `source` that was uploaded. */
export async function contentFieldsOf(
  content: Content,
  sizeBytes: number | undefined,
  upload: (content: Upload) => Promise<string>,
): Promise<{ body: string; encoding?: 'base64' } | { source: string }> {
  if (typeof content === 'string' && content.length * 3 <= MAX_BODY_BYTES) return { body: content };
  const whole = await sendable(content, sizeBytes);
  if (!(whole instanceof Blob) || whole.size > MAX_BODY_BYTES) return { source: await upload(whole) };
  return bodyOf(whole);
}

/** Passes a stream on, and fails unless it has exactly `sizeBytes` bytes. 0 allows up to 16 MiB. The signal cancels the stream. */
function checkLength(stream: ByteStream, sizeBytes: number, signal?: AbortSignal): ByteStream {
  let bytes = 0;
  const fail = (message: string) => {
    throw invalidRequest('sizeBytes', `the stream ${message}`);
  };
  return stream.pipeThrough(
    new TransformStream({
      transform(chunk, to) {
        bytes += chunk.byteLength;
        if (bytes > (sizeBytes || MAX_HELD_BYTES)) fail(sizeBytes ? 'has more' : 'is above 16 MiB: pass its length');
        to.enqueue(chunk);
      },
      flush() {
        if (bytes < sizeBytes) fail('has less');
      },
    }),
    signal && { signal },
  );
}

interface Uploading extends CallOptions {
  surroundings: Surroundings;
  stage(sizeBytes?: number): Promise<AnswerOf<'stageUpload'>>;
  sizeBytes?: number | undefined;
  fetch?: typeof fetch | undefined;
}

/**
 * Uploads content that a commit then names as its source. A stream cannot be sent again after a failure; other content is.
 * @returns the `uploadId`
 * @throws HoldfastError Refused, Unreachable; InvalidRequest if a stream has another length
 */
export async function upload(
  content: Upload,
  { surroundings, stage, sizeBytes, fetch: send, ...limits }: Uploading,
): Promise<string> {
  const whole = await sendable(content, sizeBytes);
  const blob = whole instanceof Blob ? whole : undefined;
  const staged = await stage(blob?.size);
  if (!blob) limits.timeoutMs = 0;
  // `slice` drops the type of the Blob, which `fetch` would send in place of the signed content type.
  const body = (signal: AbortSignal) =>
    whole instanceof Blob ? whole.slice() : checkLength(whole, sizeBytes ?? 0, signal);
  return put({ ...limits, surroundings, staged, body, fetch: send });
}
