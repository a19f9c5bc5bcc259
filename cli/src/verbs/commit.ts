import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { Arguments } from '../arguments.ts';
import { fileFault, misuse } from '../failure.ts';
import type { Progress } from '../progress.ts';
import type { Verb } from '../verb.ts';

export const commit: Verb = {
  summary: 'write a file to S3 if the object there is as expected',
  usage: 'PATH FILE',
  words: [2, 2],
  options: {
    create: { help: 'only if the path has no object' },
    'if-match': { value: 'ETAG', help: 'only if the object at the path has this ETag' },
    fence: { value: 'KEY=TOKEN', help: 'under the fence of a lease' },
    fenced: { help: 'under the fence of the lease of holdfast run' },
    'commit-id': { value: 'ID', help: 'the id of the commit, so that a repeated command has the outcome of the first' },
    'content-type': { value: 'TYPE', help: 'the media type' },
    'cache-control': { value: 'TEXT', help: 'the Cache-Control header of the object' },
    'content-disposition': { value: 'TEXT', help: 'the Content-Disposition header of the object' },
    'content-encoding': { value: 'TEXT', help: 'the Content-Encoding header of the object' },
    metadata: { value: 'NAME=VALUE', help: 'metadata of the object', multiple: true },
    wait: { value: 'DURATION', help: 'how long to wait for the commit of another client, up to 20s (0s)' },
  },
  notes: 'FILE is - for stdin.',
  example: 'holdfast commit reports/42.json report.json --create --content-type application/json',
  async run({ arguments: args, output, connect }) {
    const request = {
      path: args.word(0),
      ...precondition(args),
      ...fence(args),
      ...texts(args, {
        commitId: 'commit-id',
        contentType: 'content-type',
        cacheControl: 'cache-control',
        contentDisposition: 'content-disposition',
        contentEncoding: 'content-encoding',
      }),
      ...metadata(args),
      ...waitSeconds(args),
    };
    const body = await contentOf(args.word(1));
    const { progress } = output;
    const answer = await connect().commit(body, request, withProgress(progress, body.size));
    progress.end();
    if (output.isJson) output.json(answer);
    else {
      const { path, etag, size, commitId, repeated } = answer;
      output.fields({ path, etag, size, commitId, repeated });
    }
    return 0;
  },
};

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** A `fetch` for an upload that shows its progress. */
const withProgress =
  (progress: Progress, size: number): typeof fetch =>
  (url, init = {}) => {
    let sent = 0;
    const show = () => progress.show(`uploading ${megabytes(sent)} of ${megabytes(size)}`);
    show();
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, to) {
        sent += chunk.byteLength;
        show();
        to.enqueue(chunk);
      },
    });
    // S3 refuses a stream without a length.
    const headers = { ...(init.headers as Record<string, string>), 'content-length': String(size) };
    return fetch(url, { ...init, headers, body: (init.body as Blob).stream().pipeThrough(counter) });
  };

function precondition(args: Arguments) {
  const etag = args.text('if-match');
  if (args.is('create') === (etag !== undefined)) throw misuse('one of --create and --if-match must be given');
  return etag === undefined ? { ifNoneMatch: '*' as const } : { ifMatch: etag };
}

function fence(args: Arguments) {
  const given = args.text('fence');
  if (given === undefined && !args.is('fenced')) return {};
  if (given !== undefined && args.is('fenced')) throw misuse('--fence and --fenced exclude each other');
  const { HOLDFAST_KEY, HOLDFAST_FENCE } = process.env;
  if (given === undefined && (!HOLDFAST_KEY || !HOLDFAST_FENCE))
    throw misuse('--fenced needs HOLDFAST_KEY and HOLDFAST_FENCE, which holdfast run sets');
  const at = given?.lastIndexOf('=') ?? -1; // a key may contain = too
  const [key, token] =
    given === undefined ? [HOLDFAST_KEY ?? '', HOLDFAST_FENCE] : [given.slice(0, Math.max(0, at)), given.slice(at + 1)];
  if (!key || !/^\d+$/.test(token ?? '')) throw misuse(`--fence must be KEY=TOKEN, not '${given}'`);
  return { fence: { key, token: Number(token) } };
}

const texts = <Field extends string>(args: Arguments, options: Record<Field, string>): Partial<Record<Field, string>> =>
  Object.fromEntries(
    Object.entries<string>(options).flatMap(([field, option]) => {
      const value = args.text(option);
      return value === undefined ? [] : [[field, value]];
    }),
  ) as Partial<Record<Field, string>>;

function metadata(args: Arguments) {
  const pairs = args.all('metadata').map((pair) => {
    const at = pair.indexOf('=');
    if (at < 1) throw misuse(`--metadata must be NAME=VALUE, not '${pair}'`);
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  return pairs.length > 0 ? { metadata: Object.fromEntries(pairs) as Record<string, string> } : {};
}

function waitSeconds(args: Arguments) {
  const seconds = args.seconds('wait', { min: 0, max: 20 });
  return seconds === undefined ? {} : { waitSeconds: seconds };
}

async function contentOf(file: string): Promise<Blob> {
  if (file === '-') return new Blob([await buffer(process.stdin)]);
  process.removeAllListeners('warning'); // Node 20 warns that openAsBlob is experimental
  try {
    // `openAsBlob` would read a pipe as empty, because a pipe has no length.
    if (!(await stat(file)).isFile()) return new Blob([await buffer(createReadStream(file))]);
    const blob = await openAsBlob(file);
    await blob.slice(0, 1).arrayBuffer(); // the first read opens the file
    return blob;
  } catch (error) {
    throw misuse(`${file} cannot be read: ${fileFault(error as Error)}`);
  }
}
