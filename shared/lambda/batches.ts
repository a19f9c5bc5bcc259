import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { parseJson } from './payload.ts';

type Handler = (event: unknown, context: Context) => Promise<unknown>;

/**
 * Lets an SQS queue start the function too, with a payload in the body of each message. The event source must have
 * ReportBatchItemFailures: messages that failed then stay in the queue, until they have had as many tries as the queue
 * allows.
 */
export function batches(handler: Handler): Handler {
  return async (event, context) => {
    if (!isBatch(event)) return handler(event, context);
    const answer: SQSBatchResponse = { batchItemFailures: [] };
    // The handler logs and counts the failure itself.
    for (const record of event.Records)
      await handler(record, context).catch(() => {
        answer.batchItemFailures.push({ itemIdentifier: record.messageId });
      });
    return answer;
  };
}

/** The most messages that SQS sends at once by default. A caller who invents such an event could send thousands. */
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
