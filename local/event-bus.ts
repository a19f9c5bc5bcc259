import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
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

/** The most events of one request, as on AWS. */
const MAX_ENTRIES = 10;

/**
 * The part of EventBridge's API that the service uses: PutEvents to the default bus. As on AWS, the sender does not wait
 * for the functions that an event starts.
 */
export async function startEventBus(dispatch: (event: BusEvent) => void, port = 0): Promise<Emulator> {
  const answerPut = async (request: IncomingMessage, response: ServerResponse) => {
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' });
      response.end(JSON.stringify(body));
    };
    // A sender that stops in the middle of its request must not end the whole stack.
    const sent = await json(request).catch(() => undefined);
    const { Entries: entries } = Object(sent) as { Entries?: Entry[] };
    if (!Array.isArray(entries) || !entries.every((entry) => Object(entry) === entry))
      return answer(400, { __type: 'SerializationException', message: 'Entries must be a list of events' });
    if (entries.length > MAX_ENTRIES)
      return answer(400, { __type: 'ValidationException', message: `more than ${MAX_ENTRIES} entries` });
    const events = entries.map(busEvent);
    const results = events.map((event) => ('ErrorCode' in event ? event : { EventId: randomUUID() }));
    answer(200, { FailedEntryCount: events.filter((event) => 'ErrorCode' in event).length, Entries: results });
    for (const event of events) if (!('ErrorCode' in event)) dispatch(event);
  };
  const { url, stop } = await listen(answerPut, port);
  return { endpoint: url, stop };
}

interface Refused {
  ErrorCode: string;
  ErrorMessage: string;
}

const MALFORMED: Refused = { ErrorCode: 'MalformedDetail', ErrorMessage: 'Detail is malformed.' };
const NOT_AUTHORIZED: Refused = {
  ErrorCode: 'NotAuthorizedForSourceException',
  ErrorMessage: 'Not authorized for the source.',
};

/** The sources that only AWS may use. Otherwise any caller could claim that an execution has ended. */
const RESERVED = /^aws\./i;

/** The event, or an error as on AWS: its detail is not the JSON of an object, or its source is an AWS service. */
function busEvent({ Source, DetailType, Detail, Resources = [] }: Entry): BusEvent | Refused {
  if (RESERVED.test(Source)) return NOT_AUTHORIZED;
  try {
    const detail = JSON.parse(Detail) as BusEvent['detail'];
    const isObject = typeof detail === 'object' && detail !== null && !Array.isArray(detail);
    return isObject ? { source: Source, 'detail-type': DetailType, detail, resources: Resources } : MALFORMED;
  } catch {
    return MALFORMED;
  }
}
