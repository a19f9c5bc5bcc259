import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import type { Emulator } from './emulator.ts';
import type { BusEvent } from './events.ts';
import { listen } from './listen.ts';

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
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' });
      response.end(JSON.stringify(body));
    };
    // A sender that gives up in the middle of its request must not end the whole stack.
    const sent = await json(request).catch(() => undefined);
    const { Entries: entries } = Object(sent) as { Entries?: Entry[] };
    if (!Array.isArray(entries)) return answer(400, { __type: 'SerializationException', message: 'has no Entries' });
    const events = entries.map(busEvent);
    const results = events.map((event) => (event ? { EventId: randomUUID() } : REFUSED));
    answer(200, { FailedEntryCount: results.filter((result) => result === REFUSED).length, Entries: results });
    for (const event of events) if (event) dispatch(event);
  });
  const { url, stop } = await listen(server, port);
  return { endpoint: url, stop };
}

const REFUSED = { ErrorCode: 'MalformedDetail', ErrorMessage: 'Detail is malformed.' };

/** Undefined where the detail is not the JSON of an object, which EventBridge refuses. */
function busEvent({ Source, DetailType, Detail, Resources = [] }: Entry): BusEvent | undefined {
  try {
    const detail = JSON.parse(Detail) as BusEvent['detail'];
    const isObject = typeof detail === 'object' && detail !== null && !Array.isArray(detail);
    return isObject ? { source: Source, 'detail-type': DetailType, detail, resources: Resources } : undefined;
  } catch {
    return undefined;
  }
}
