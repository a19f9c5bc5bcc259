import { Agent, type RequestListener, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { listen } from '../local/listen.ts';

/** What went through: requests, and the units that the emulator says they took. */
export interface Counted {
  requests: number;
  writeUnits: number;
  readUnits: number;
}

/**
 * Stands between a contestant and the emulator, whatever its language, and counts. It asks for the consumed capacity in
 * each request. A lost condition is answered without it, and is counted as DynamoDB charges it: as the write of an item
 * of up to 1 KiB, which all items here are.
 * @param networkMs how much longer each request takes, as if the way were longer
 */
export async function startCounter(dynamodbEndpoint: string, networkMs = 0): Promise<Counter> {
  const counted: Counted = { requests: 0, writeUnits: 0, readUnits: 0 };
  const agent = new Agent({ keepAlive: true });
  const handle: RequestListener = async (incoming, outgoing) => {
    const body = asking(await text(incoming));
    const headers = { ...incoming.headers, 'content-length': String(Buffer.byteLength(body)) };
    const forwarded = request(dynamodbEndpoint, { method: 'POST', agent, headers }, async (response) => {
      const answer = await text(response);
      count(counted, String(incoming.headers['x-amz-target']), answer);
      if (networkMs > 0) await delay(networkMs);
      outgoing.writeHead(response.statusCode ?? 502, { 'content-type': response.headers['content-type'] });
      outgoing.end(answer);
    });
    forwarded.on('error', () => outgoing.destroy()).end(body);
  };
  const { url, stop } = await listen(handle);
  return {
    endpoint: url,
    take: () => {
      const taken = { ...counted };
      Object.assign(counted, { requests: 0, writeUnits: 0, readUnits: 0 });
      return taken;
    },
    stop: async () => {
      await stop();
      agent.destroy();
    },
  };
}

const asking = (body: string) => JSON.stringify({ ...JSON.parse(body), ReturnConsumedCapacity: 'TOTAL' });

export interface Counter {
  endpoint: string;
  /** Since the last time that it was asked. */
  take(): Counted;
  stop(): Promise<void>;
}

/** What callers ask about tables before they start is no part of any operation. */
const OPERATION = /\.(PutItem|UpdateItem|DeleteItem|GetItem|BatchGetItem|Query)$/;
const READS = ['GetItem', 'BatchGetItem', 'Query'];

function count(counted: Counted, target: string, answer: string): void {
  const operation = OPERATION.exec(target)?.[1];
  if (!operation) return;
  counted.requests += 1;
  const consumed = [JSON.parse(answer).ConsumedCapacity].flat(); // of a batch, one for each table
  const units = consumed.reduce((all, one) => all + (one?.CapacityUnits ?? 1), 0);
  counted[READS.includes(operation) ? 'readUnits' : 'writeUnits'] += units;
}

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
