import { BatchWriteItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import type { LambdaHandler } from '../local/lambda.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface ReportTask {
  /** Rows in the table, one size after the other. */
  sizes: number[];
  s3Endpoint: string;
}

export type ReportResult = {
  rows: number;
  reported: number;
  ms: number;
  readUnits: number;
  /** Over that of the process that has loaded the function and made one empty report. */
  peakMib: number;
}[];

const MIB = 1024 ** 2;
const WRITERS = 4;

const { sizes, s3Endpoint } = await receiveTask<ReportTask>();
Object.assign(process.env, { AWS_ENDPOINT_URL_S3: s3Endpoint, REPORT_READ_UNITS_PER_SECOND: '0' });
// Nothing listens there: the event stays owed, which costs one refused connection, and a line of log.
Object.assign(process.env, { AWS_ENDPOINT_URL_EVENTBRIDGE: 'http://127.0.0.1:9', POWERTOOLS_LOG_LEVEL: 'SILENT' });
const { handler } = (await import('../dist/expiry/report/index.mjs' as string)) as { handler: LambdaHandler };

interface Made {
  complete: boolean;
  scanned: number;
  readUnits: number;
  expired: Record<string, { count: number }>;
}
const report = () => handler({}, context()) as Promise<Made>;

await report();
const idle = process.memoryUsage.rss();
const results: ReportResult = [];
let seeded = 0;
for (const rows of sizes) {
  await seed(seeded, rows);
  seeded = rows;
  let peak = 0;
  const sampler = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 10);
  const startedAt = performance.now();
  const { complete, expired, readUnits, scanned } = await report();
  const ms = performance.now() - startedAt;
  clearInterval(sampler);
  const reported = expired.abandonedLease?.count ?? 0;
  if (!complete || scanned < rows || reported !== rows / 10) throw new Error(`${reported} of ${rows} were reported`);
  results.push({ rows, reported, ms, readUnits, peakMib: (peak - idle) / MIB });
}
sendResult(results);

async function seed(from: number, to: number): Promise<void> {
  const dynamodb = new DynamoDBClient({});
  let next = from;
  const write = async () => {
    while (next < to) {
      const first = next;
      next += 25;
      const puts = Array.from({ length: 25 }, (_, at) => ({ PutRequest: { Item: item(first + at) } }));
      const RequestItems = { [process.env.LEASES_TABLE ?? '']: puts };
      await dynamodb.send(new BatchWriteItemCommand({ RequestItems }));
      if (first % 10_000 === 0) sendProgress(`report: ${first} of ${to} rows written`);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
  dynamodb.destroy();
}

/** A lease; every tenth expired an hour ago. */
function item(at: number) {
  const expiresAt = Date.now() + (at % 10 === 0 ? -3_600_000 : 3_600_000);
  return {
    key: { S: `jobs/nightly/partition-${String(at).padStart(8, '0')}` },
    lease_version: { S: 'da91f8eb-f757-4f74-81a5-86d441d75bcf' },
    lease_id: { S: '32a2edb5-afa8-4793-9a45-f0fc12b37590' },
    lease_expiry: { N: String(Math.ceil(expiresAt / 1000)) },
    expires_at: { N: String(expiresAt) },
    heartbeat_at: { N: String(expiresAt - 60_000) },
    ttl_ms: { N: '60000' },
    ttl_seconds: { N: '60' },
    holder: { S: `worker-${at}` },
    request_id: { S: '32a2edb5-afa8-4793-9a45-f0fc12b37590' },
    fence: { N: String(expiresAt - 60_000) },
    acquired_at: { N: String(expiresAt - 60_000) },
  };
}

function context(): Context {
  const endsAt = performance.now() + 300_000;
  return {
    functionName: 'report',
    awsRequestId: 'bench',
    invokedFunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:report',
    memoryLimitInMB: '512',
    getRemainingTimeInMillis: () => endsAt - performance.now(),
  } as Context;
}
