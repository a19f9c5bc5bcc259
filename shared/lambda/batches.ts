import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { parseJson } from './payload.ts';

type Handler = (event: unknown, context: Context) => Promise<unknown>;

/**
 * Lets a function take its payloads from an SQS queue too, one from the body of each message. Those that fail stay in the
 * queue (the event source must have ReportBatchItemFailures), which gives them up after its own number of tries.
 */
export function batches(handler: Handler): Handler {
  return async (event, context) => {
    if (!isBatch(event)) return handler(event, context);
    const answer: SQSBatchResponse = { batchItemFailures: [] };
    // The handler has logged and counted the failure.
    for (const record of event.Records)
      await handler(record, context).catch(() => {
        answer.batchItemFailures.push({ itemIdentifier: record.messageId });
      });
    return answer;
  };
}

/** By default SQS sends no more at once. A caller that invents such an event could send thousands. */
const MAX_BATCH = 10;

function isBatch(event: unknown): event is SQSEvent {
  const { Records: records } = (event ?? {}) as Partial<SQSEvent>;
  return Array.isArray(records) && records.length <= MAX_BATCH && records.every(isQueued);
}

export function isQueued(event: unknown): event is SQSRecord {
  const { eventSource, messageId } = (event ?? {}) as Partial<SQSRecord>;
  return eventSource === 'aws:sqs' && typeof messageId === 'string';
}

/** @throws HoldfastError InvalidRequest, PayloadTooLarge */
export function queuedPayload({ body }: SQSRecord, maxBytes: number): unknown {
  return parseJson(String(body), 'body', maxBytes);
}
