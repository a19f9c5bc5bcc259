import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { acquire } from '../../functions/leases/acquire.ts';
import { heartbeat } from '../../functions/leases/heartbeat.ts';
import { release } from '../../functions/leases/release.ts';
import { post } from '../support/stack/adapters.ts';

type Write = Record<string, unknown> & { Item?: object; ExpressionAttributeValues?: object };

const writes: Write[] = [];
/** The `lease_version` of the record that each write answers with. */
let answers = '';
const server = createServer(async (request, response) => {
  writes.push((await json(request)) as Write);
  const attributes = { key: { S: 'k' }, lease_version: { S: answers } };
  response.end(JSON.stringify(answers ? { Attributes: attributes } : {}));
});

beforeAll(async () => {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', `http://127.0.0.1:${port}`);
  vi.stubEnv('LEASES_TABLE', 'leases');
  vi.stubEnv('WAITERS_TABLE', 'waiters');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** A write without its values, which differ from call to call. */
const shape = ({ Item = {}, ExpressionAttributeValues = {}, ...rest }: Write) => ({
  ...rest,
  Item: Object.keys(Item).sort(),
  ExpressionAttributeValues: Object.keys(ExpressionAttributeValues).sort(),
});

async function written(call: () => Promise<unknown>) {
  writes.length = 0;
  await call().catch(() => {}); // the answer is empty, on which a heartbeat fails
  return writes.map(shape);
}

async function expectSame(calls: readonly (readonly [floor: () => Promise<unknown>, ours: () => Promise<unknown>])[]) {
  for (const [floor, ours] of calls) {
    const [expected] = await written(ours); // only the first: without a grant in the answer, a call tries more
    expect(await written(floor)).toEqual([expected]);
  }
}

it('the floor of the benchmark sends what the functions send', async () => {
  const bare = await import('../../bench/bare-sdk.ts');
  const [key, leaseId] = ['k', 'e.AbCdEfGhIjKlMnOp.da91f8eb-f757-4f74-81a5-86d441d75bcf'];
  await expectSame([
    [() => bare.acquire(key), () => post(acquire(), { key, holder: 'bench', requestId: 'r' })],
    [() => bare.heartbeat(key, leaseId), () => post(heartbeat(), { key, leaseId })],
    [() => bare.release(key, leaseId), () => post(release(), { key, leaseId })],
  ]);
});

it('the floor of the benchmark of permits sends what the functions send', async () => {
  answers = 'holdfast';
  const bare = await import('../../bench/bare-permits.ts');
  const [key, leaseId] = ['k', 'p.AbCdEfGhIjKlMnOp.da91f8eb-f757-4f74-81a5-86d441d75bcf'];
  await expectSame([
    [() => bare.acquire(key, 'r'), () => post(acquire(), { key, holder: 'bench', requestId: 'r', limit: 8 })],
    [() => bare.release(key, leaseId), () => post(release(), { key, leaseId })],
  ]);
});
