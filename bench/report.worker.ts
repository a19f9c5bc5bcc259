import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import type { LambdaHandler } from '../local/lambda.ts';
import { abandonedLease, livingLease, seed } from './seed.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface ReportTask {
  /** The rows of the table, which only grows, and the segments in which they are scanned. */
  runs: { rows: number; segments: number }[];
  /** How many reports each run makes. */
  repetitions: number;
  s3Endpoint: string;
}

export type ReportResult = {
  rows: number;
  segments: number;
  reported: number;
  readUnits: number;
  /** The time of each report, in milliseconds. */
  ms: number[];
  /** The peak memory of each report, beyond that of the process after one empty report. */
  peakMib: number[];
}[];

const BUNDLE = '../dist/expiry/report/index.mjs';
const MIB = 1024 ** 2;
/** One row in this many has expired. */
const ONE_OF = 10;

const { runs, repetitions, s3Endpoint } = await receiveTask<ReportTask>();
Object.assign(process.env, { AWS_ENDPOINT_URL_S3: s3Endpoint, REPORT_READ_UNITS_PER_SECOND: '0' });
// Nothing listens there, so the event is not sent. It costs one refused connection and a log line.
Object.assign(process.env, { AWS_ENDPOINT_URL_EVENTBRIDGE: 'http://127.0.0.1:9', LOG_LEVEL: 'SILENT' });

interface Made {
  complete: boolean;
  scanned: number;
  readUnits: number;
  expired: Record<string, { count: number }>;
}
await (await reporting(1))();
const idle = process.memoryUsage.rss();
const results: ReportResult = [];
let seeded = 0;
for (const { rows, segments } of runs) {
  await fill(seeded, rows);
  seeded = rows;
  const found: ReportResult[number] = { rows, segments, reported: rows / ONE_OF, readUnits: 0, ms: [], peakMib: [] };
  for (let repetition = 1; repetition <= repetitions; repetition++) {
    sendProgress(`report: ${repetition} of ${repetitions} over ${rows} rows in ${segments} segments`);
    const { ms, peak, readUnits } = await measureReport(found);
    found.ms.push(ms);
    found.peakMib.push((peak - idle) / MIB);
    found.readUnits = readUnits;
  }
  results.push(found);
}
sendResult(results);

async function measureReport({ rows, segments, reported }: { rows: number; segments: number; reported: number }) {
  const report = await reporting(segments);
  let peak = 0;
  const sampler = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 10);
  const startedAt = performance.now();
  const { complete, expired, readUnits, scanned } = await report();
  const ms = performance.now() - startedAt;
  clearInterval(sampler);
  const found = expired.abandonedLease?.count;
  if (!complete || scanned < rows || found !== reported) throw new Error(`${found} of ${rows} were reported`);
  return { ms, peak, readUnits };
}

/** Loads the built function, as a deployment with this many segments does. */
async function reporting(segments: number): Promise<() => Promise<Made>> {
  process.env.REPORT_SEGMENTS = String(segments);
  const { report } = (await import(BUNDLE)) as { report(): LambdaHandler };
  const handler = report();
  return () => handler({}, context()) as Promise<Made>;
}

async function fill(from: number, to: number): Promise<void> {
  const dynamodb = new DynamoDBClient({});
  const item = (at: number) => (at % ONE_OF === 0 ? abandonedLease(from + at) : livingLease(from + at));
  const progress = (done: number) => sendProgress(`report: ${from + done} of ${to} rows written`);
  await seed(dynamodb, { table: process.env.LEASES_TABLE ?? '', count: to - from, item }, progress);
  dynamodb.destroy();
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
