import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Emulator } from './dynamodb.ts';
import type { BusEvent } from './events.ts';

interface Entry {
  Source: string;
  DetailType: string;
  Detail: string;
  Resources?: string[];
}

/**
 * EventBridge's API as far as the service uses it: PutEvents to the default bus. As on AWS the sender does not wait for
 * whom an event starts.
 */
export async function startEventBus(dispatch: (event: BusEvent) => void, port = 0): Promise<Emulator> {
  const server = createServer(async (request, response) => {
    const { Entries: entries } = (await json(request)) as { Entries: Entry[] };
    response.writeHead(200, { 'content-type': 'application/x-amz-json-1.1' });
    response.end(JSON.stringify({ FailedEntryCount: 0, Entries: entries.map(() => ({ EventId: randomUUID() })) }));
    for (const entry of entries) dispatch(busEvent(entry));
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

const busEvent = ({ Source, DetailType, Detail, Resources = [] }: Entry): BusEvent => ({
  source: Source,
  'detail-type': DetailType,
  detail: JSON.parse(Detail),
  resources: Resources,
});
