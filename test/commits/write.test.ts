import { describe, expect, it } from 'vitest';
import { s3Client } from '../../shared/aws/s3.ts';
import { patient } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { commitWorld } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';

const MIB = 1024 ** 2;

interface Sent {
  method: string;
  headers: Record<string, string | undefined>;
  /** How long the client waits for its answer, where that is not its own time. */
  timeoutMs: number | undefined;
}

/** A client, and what leaves it last of all requests that change something. */
function listened() {
  const s3 = s3Client(patient());
  const sent: Sent[] = [];
  const { requestHandler } = s3.config;
  const handle = requestHandler.handle.bind(requestHandler);
  requestHandler.handle = (request, options) => {
    const { method, headers } = request;
    const timeoutMs = options && 'requestTimeout' in options ? options.requestTimeout : undefined;
    if (method !== 'HEAD') sent.push({ method, headers, timeoutMs });
    return handle(request, options);
  };
  return { s3, last: () => sent.at(-1) };
}

describe('the write of a commit, as S3 gets it', async () => {
  const world = await commitWorld();
  const COPY_MS = 30_000;
  /** In place of those of its source. */
  const replaced = { 'x-amz-metadata-directive': 'REPLACE', 'x-amz-tagging-directive': 'REPLACE' };

  it.each([
    ['of an inline body', 'PUT', undefined, undefined],
    ['of a staged upload', 'PUT', 3, COPY_MS],
    ['of parts', 'POST', 7 * MIB, COPY_MS],
  ])(
    'the write of a commit (%s) has its condition, and the time that it takes',
    async (path, method, size, timeoutMs) => {
      const { s3, last } = listened();
      const { commit } = world.another({ s3 });
      const content = async (byte: string) =>
        size === undefined ? { body: byte } : { source: await world.stage(byte.repeat(size)) };
      const more = size === 3 ? replaced : {};

      const { etag } = await commit({ path, ifNoneMatch: '*', ...(await content('1')) });
      expect(last()).toMatchObject({ method, headers: { 'if-none-match': '*', ...more } });
      expect(last()?.headers).not.toHaveProperty('if-match');
      expect(last()?.timeoutMs).toBe(timeoutMs);

      await commit({ path, ifMatch: etag, ...(await content('2')) });
      expect(last()).toMatchObject({ method, headers: { 'if-match': etag, ...more } });
      expect(last()?.headers).not.toHaveProperty('if-none-match');
      expect(last()?.timeoutMs).toBe(timeoutMs);
    },
  );

  it.each([
    ['PreconditionFailed', 412],
    ['NoSuchKey', 404],
  ])(
    'the write of a commit is not sent again after a lost answer and %s, although the object is as expected: it may still land',
    async (name, status) => {
      const path = `late after ${name}`;
      const { commit, objects } = world.another();
      const { etag } = await world.commit({ path, ifNoneMatch: '*', body: 'before' });
      let late = async (): Promise<unknown> => undefined;
      objects.faultsOf.PutObject = [
        async (send) => {
          late = send;
          throw networkError('ECONNRESET', 'read');
        },
        { name, status },
      ];
      expect((await failure(commit({ path, ifMatch: etag, body: 'mine', commitId: 'mine' }))).code).toBe(
        'OutcomeUnknown',
      );
      expect(await world.body(path)).toBe('before');
      await late();
      expect(await world.body(path)).toBe('mine');
    },
  );
});
