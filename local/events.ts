import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Emulator } from './dynamodb.ts';
import type { EventPattern } from './service.ts';

/** A function that a rule of serverless.yml starts. */
export interface Subscriber {
  functionName: string;
  pattern: EventPattern;
  /** Settles when the function has ended. */
  invoke(event: object): Promise<unknown>;
}

interface Entry {
  Source?: string;
  DetailType?: string;
  Detail?: string;
  Resources?: string[];
}

/**
 * The default event bus of EventBridge, as far as the service uses it: PutEvents, and the functions whose rules match by
 * equal values. As on AWS the sender does not wait for them; what they fail with is printed.
 */
export async function startEventBus(subscribers: Subscriber[], port = 0): Promise<Emulator> {
  const server = createServer(async (request, response) => {
    const { Entries: entries = [] } = JSON.parse(await body(request)) as { Entries?: Entry[] };
    const events = entries.map(busEvent);
    response.writeHead(200, { 'content-type': 'application/x-amz-json-1.1' });
    response.end(JSON.stringify({ FailedEntryCount: 0, Entries: events.map(({ id }) => ({ EventId: id })) }));
    for (const event of events)
      for (const { functionName, pattern, invoke } of subscribers)
        if (matches(pattern, event))
          invoke(event).catch(({ name, message }: Error) => console.error(`${functionName}: ${name}: ${message}`));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${actual}`,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function body(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const busEvent = ({ Source, DetailType, Detail = '{}', Resources = [] }: Entry) => ({
  version: '0',
  id: randomUUID(),
  'detail-type': DetailType,
  source: Source,
  account: '000000000000',
  time: new Date().toISOString(),
  region: 'us-east-1',
  resources: Resources,
  detail: JSON.parse(Detail),
});

/** Each field of a pattern is a list of values that match, or a pattern for what is inside. */
function matches(pattern: EventPattern, event: object): boolean {
  return Object.entries(pattern).every(([name, wanted]) => {
    const value = Reflect.get(event, name) as unknown;
    if (Array.isArray(wanted)) return wanted.includes(value);
    return typeof value === 'object' && value !== null && matches(wanted, value);
  });
}
