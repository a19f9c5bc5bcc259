import { execFile } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { type Listening, listen } from '../../local/listen.ts';
import { isFull } from '../support/time/rounds.ts';

const MIB = 1024 ** 2;

/** The API and the bucket in one server, which keeps no bytes and counts them. */
let site: Listening;
let puts: { length: string | undefined; type: string | undefined; received: number }[] = [];
let calls: Record<string, unknown>[] = [];
let putStatus: (attempt: number) => number;

beforeAll(async () => {
  site = await listen((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
});
beforeEach(() => {
  puts = [];
  calls = [];
  putStatus = () => 200;
});
afterAll(() => site.stop());

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'PUT') {
    const put = { length: request.headers['content-length'], type: request.headers['content-type'], received: 0 };
    const status = putStatus(puts.push(put));
    for await (const chunk of request) put.received += chunk.length;
    response.writeHead(status);
    response.end();
    return;
  }
  const payload = JSON.parse(String(await buffer(request)));
  calls.push({ call: request.url?.replace('/v1/', ''), ...payload });
  const headers: Record<string, string> = payload.contentType ? { 'content-type': payload.contentType } : {};
  if (payload.sizeBytes !== undefined) headers['content-length'] = String(payload.sizeBytes);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ uploadId: 'up', url: `${site.url}/bucket`, method: 'PUT', headers, etag: 'e' }));
}

const holdfast = () => new Holdfast({ endpoint: site.url, holder: 'x' });

/** A stream with a size, and whether its reader has cancelled it. */
function streamOf(bytes: number, chunk = 64 * 1024) {
  const state = { left: bytes, cancelled: false };
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(to) {
      if (state.left <= 0) return to.close();
      const size = Math.min(chunk, state.left);
      state.left -= size;
      to.enqueue(new Uint8Array(size));
    },
    cancel() {
      state.cancelled = true;
    },
  });
  return { stream, state };
}

/** Several times as much as may be held. */
const LARGE_MIB = isFull ? 200 : 48;

const request = { path: 'p', ifNoneMatch: '*' as const };

it('a stream is sent with its length, and is committed', async () => {
  const { stream } = streamOf(3 * MIB);
  await holdfast().commit({ ...request, body: stream, sizeBytes: 3 * MIB, contentType: 'a/b' });
  expect(puts).toEqual([{ length: String(3 * MIB), type: 'a/b', received: 3 * MIB }]);
  expect(calls).toEqual([
    { call: 'uploads', contentType: 'a/b', sizeBytes: 3 * MIB },
    { call: 'commits', ...request, contentType: 'a/b', source: 'up', commitId: expect.any(String) },
  ]);
});

it.runIf(isFull)('a stream is not held in memory', async () => {
  const index = join(import.meta.dirname, '../../clients/typescript/src/index.ts');
  const program = `
    import { Holdfast } from ${JSON.stringify(index)};
    const holdfast = new Holdfast({ endpoint: '${site.url}', holder: 'x' });
    let [base, peak] = [Infinity, 0];
    const send = (bytes) => {
      let left = bytes;
      const body = new ReadableStream({
        pull(to) {
          // Memory that is free to be collected does not count.
          if (left % (4 * 1024 ** 2) === 0) gc();
          peak = Math.max(peak, process.memoryUsage().arrayBuffers);
          if (left === 0) return to.close();
          left -= 65536;
          to.enqueue(new Uint8Array(65536));
        },
      });
      return holdfast.commit({ path: 'p', ifNoneMatch: '*', body, sizeBytes: bytes });
    };
    await send(16 * 1024 ** 2);
    gc();
    base = process.memoryUsage().arrayBuffers;
    peak = 0;
    await send(${LARGE_MIB} * 1024 ** 2);
    console.log(JSON.stringify({ grownMib: (peak - base) / 1024 ** 2 }));
  `;
  const options = ['--expose-gc', '--input-type=module', '--no-warnings', '-e', program];
  const { stdout } = await promisify(execFile)(process.execPath, options);
  expect(puts.map(({ received }) => received)).toEqual([16 * MIB, LARGE_MIB * MIB]);
  expect(JSON.parse(stdout).grownMib).toBeLessThan(LARGE_MIB / 4);
});

it.each([
  ['longer', 2 * MIB + 1, 'has more'],
  ['shorter', 2 * MIB - 1, 'has less'],
])('a stream that is %s than it should be is refused, and not committed', async (_, bytes, message) => {
  const { stream } = streamOf(bytes);
  await expect(holdfast().commit({ ...request, body: stream, sizeBytes: 2 * MIB })).rejects.toMatchObject({
    code: 'InvalidRequest',
    issues: [{ path: 'sizeBytes', message: `the stream ${message}` }],
  });
  expect(calls.map(({ call }) => call)).toEqual(['uploads']);
});

it.each([
  ['longer', 2001],
  ['shorter', 1999],
])('a short stream that is %s than it should be is refused before sending', async (_, bytes) => {
  const { stream } = streamOf(bytes);
  const refused = holdfast().commit({ ...request, body: stream, sizeBytes: 2000 });
  await expect(refused).rejects.toMatchObject({ code: 'InvalidRequest' });
  expect(calls).toEqual([]);
});

it('a stream of unknown length is held up to 16 MiB, and cancelled above', async () => {
  await holdfast().commit({ ...request, body: streamOf(16 * MIB, MIB).stream });
  expect(puts).toContainEqual({ length: String(16 * MIB), type: undefined, received: 16 * MIB });
  calls = [];
  const { stream, state } = streamOf(1024 * MIB, MIB);
  await expect(holdfast().upload(stream)).rejects.toMatchObject({
    code: 'InvalidRequest',
    issues: [{ path: 'sizeBytes', message: 'the stream is above 16 MiB: pass its length' }],
  });
  expect(calls).toEqual([]);
  expect(state.left).toBeGreaterThan(1000 * MIB);
  await expect.poll(() => state.cancelled).toBe(true);
});

it('a stream is sent once, but a Blob again after a temporary failure', async () => {
  putStatus = (attempt) => (attempt < 3 ? 503 : 200);
  const blob = new Blob([new Uint8Array(2 * MIB)], { type: 'not/signed' });
  expect(await holdfast().upload(blob)).toBe('up');
  expect(puts.map(({ received, type }) => [received, type])).toEqual(Array(3).fill([2 * MIB, undefined]));
  puts = [];
  const { stream } = streamOf(2 * MIB);
  await expect(holdfast().upload(stream, { sizeBytes: 2 * MIB })).rejects.toMatchObject({
    code: 'Unreachable',
    status: 503,
  });
  expect(puts.length).toBe(1);
  putStatus = () => 403;
  await expect(holdfast().upload(blob)).rejects.toMatchObject({ code: 'Refused', status: 403 });
});

it('an upload whose source fails is not sent, and the error is the cause', async () => {
  const mine = new Error('the disk');
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({ pull: (to) => to.error(mine) });
  const error = await holdfast()
    .upload(stream, { sizeBytes: 2 * MIB })
    .catch((reason) => reason);
  expect(error).toMatchObject({ code: 'Unreachable', message: 'the upload failed' });
});
