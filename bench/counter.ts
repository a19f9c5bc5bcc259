import { Agent, type RequestListener, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { listen } from '../local/listen.ts';
import { itemBytes } from './item-bytes.ts';

/** The requests that were counted, and the units that they took according to the emulator. */
export interface Counted {
  requests: number;
  writeUnits: number;
  readUnits: number;
}

/**
 * Starts a proxy between a contestant of any language and the emulator, which counts requests and units. DynamoDB also charges a write whose condition
 * fails, by the size of the stored item, but the answer does not say so. So the counter asks for that item (ALL_OLD), and hides it from a contestant
 * that did not ask for it.
 * @param networkMs how much longer each request takes, as if the network were slower
 */
export async function startCounter(dynamodbEndpoint: string, networkMs = 0): Promise<Counter> {
  const counted: Counted = { requests: 0, writeUnits: 0, readUnits: 0 };
  const agent = new Agent({ keepAlive: true });
  const handle: RequestListener = async (incoming, outgoing) => {
    const { body, isItemAsked } = asking(await text(incoming));
    const headers = { ...incoming.headers, 'content-length': String(Buffer.byteLength(body)) };
    const forwarded = request(dynamodbEndpoint, { method: 'POST', agent, headers }, async (response) => {
      const { Item: item, ...answer } = JSON.parse(await text(response));
      count(counted, String(incoming.headers['x-amz-target']), { ...answer, Item: item });
      if (networkMs > 0) await delay(networkMs);
      outgoing.writeHead(response.statusCode ?? 502, { 'content-type': response.headers['content-type'] });
      outgoing.end(JSON.stringify({ ...answer, ...(item && (isItemAsked || !isLost(answer)) && { Item: item }) }));
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

function asking(asked: string): { body: string; isItemAsked: boolean } {
  const request = JSON.parse(asked);
  const onFailure = 'ReturnValuesOnConditionCheckFailure';
  const more = { ReturnConsumedCapacity: 'TOTAL', ...(request.ConditionExpression && { [onFailure]: 'ALL_OLD' }) };
  return { body: JSON.stringify({ ...request, ...more }), isItemAsked: request[onFailure] === 'ALL_OLD' };
}

interface Answer {
  __type?: string;
  /** The item that was read, or that a lost condition met. */
  Item?: Parameters<typeof itemBytes>[0];
  ConsumedCapacity?: Consumed | Consumed[];
}

interface Consumed {
  CapacityUnits?: number;
}

const isLost = ({ __type: type = '' }: Answer) => type.endsWith('ConditionalCheckFailedException');

export interface Counter {
  endpoint: string;
  /** What was counted since the last call. */
  take(): Counted;
  stop(): Promise<void>;
}

/** These requests do not count, because callers send them only once, before they start. */
const OPERATION = /\.(PutItem|UpdateItem|DeleteItem|GetItem|BatchGetItem|Query)$/;
const READS = ['GetItem', 'BatchGetItem', 'Query'];

function count(counted: Counted, target: string, answer: Answer): void {
  const operation = OPERATION.exec(target)?.[1];
  if (!operation) return;
  counted.requests += 1;
  counted[READS.includes(operation) ? 'readUnits' : 'writeUnits'] += unitsOf(answer);
}

function unitsOf(answer: Answer): number {
  if (isLost(answer)) return Math.max(1, Math.ceil(itemBytes(answer.Item ?? {}) / 1024));
  const consumed = [answer.ConsumedCapacity].flat(); // a batch has one for each table
  return consumed.reduce((all, one) => all + (one?.CapacityUnits ?? 1), 0);
}

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
