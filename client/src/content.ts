import type { AnswerOf } from './transport.ts';

/** What a commit writes: text, bytes, a Blob or File, or a stream of bytes. */
export type Content = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array<ArrayBuffer>>;

/** What a commit takes in its own body. */
const MAX_BODY_BYTES = 1024 ** 2;

/** Milliseconds for one try to upload. */
const UPLOAD_MS = 600_000;

const PART = 0x8000;

/** The body of a commit where the content is small enough, else what is to be uploaded. */
export async function bodyOrBlob(content: Content): Promise<{ body: string; encoding?: 'base64' } | Blob> {
  if (typeof content === 'string' && content.length * 3 <= MAX_BODY_BYTES) return { body: content };
  const blob = await blobOf(content);
  if (blob.size > MAX_BODY_BYTES) return blob;
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let binary = '';
  for (let at = 0; at < bytes.length; at += PART) binary += String.fromCharCode(...bytes.subarray(at, at + PART));
  return { body: btoa(binary), encoding: 'base64' };
}

/** A stream is read to its end: S3 has to know the length first. */
const blobOf = async (content: Content): Promise<Blob> =>
  content instanceof Blob
    ? content
    : content instanceof ReadableStream
      ? new Response(content).blob()
      : new Blob([content]);

/** Puts what a commit then names as its source. @returns the HTTP status */
export async function put(
  { url, method, headers }: AnswerOf<'stageUpload'>,
  blob: Blob,
  { fetch: send = fetch, signal }: { fetch?: typeof fetch | undefined; signal?: AbortSignal | undefined },
): Promise<number> {
  const limit = AbortSignal.timeout(UPLOAD_MS);
  // A Blob with a type would send that in place of the signed one, or of none.
  const body = blob.slice();
  const response = await send(url, {
    method,
    headers,
    body,
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  });
  await response.body?.cancel();
  return response.status;
}
