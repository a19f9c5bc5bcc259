/** A Lambda function behind SQS. It handles the messages of an account one at a time, even in several invocations at once. */

import type { Context, SQSRecord } from 'aws-lambda';
import { leasedRecords } from 'holdfast-client/handlers';
import { holdfast } from './client.ts';

interface Booking {
  account: string;
  amount: number;
}

const bookingOf = ({ body }: SQSRecord): Booking => JSON.parse(body);

/**
 * The wrapper works for standard and FIFO queues, which it tells apart by their ARN. Set ReportBatchItemFailures on the event source.
 */
export const handler = leasedRecords({
  holdfast,
  key: (record: SQSRecord) => `account/${bookingOf(record).account}`,
  onFailure: (error, records) => console.log(`again: ${records.map(({ messageId }) => messageId)}: ${nameOf(error)}`),
})(async (record, _context: Context, lease) => {
  const { account, amount } = bookingOf(record);
  await book(account, amount, lease);
});

async function book(account: string, amount: number, { signal, fence }: { signal: AbortSignal; fence: number }) {
  if (amount <= 0) throw new RangeError('the amount must be positive');
  await new Promise((resolve) => setTimeout(resolve, 500));
  signal.throwIfAborted();
  console.log(`booked ${amount} for ${account}, with a fence: ${fence > 0}`);
}

const nameOf = (error: unknown) => (error as { code?: string }).code ?? (error as Error).message;
