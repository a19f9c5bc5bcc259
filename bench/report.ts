import { freePort } from '../local/ports.ts';
import { createBuckets, startS3 } from '../local/s3.ts';
import { readService } from '../local/service.ts';
import { type Figure, type Measurement, ratio } from './measurement.ts';
import type { ReportResult, ReportTask } from './report.worker.ts';
import { inWorker } from './worker.ts';

const SIZES = [50_000, 200_000];
const QUICK_SIZES = [2_000, 8_000];

/** Four times the rows may take four times as long, and what a shared machine adds. */
const MOST_GROWTH = 1.5;
/** Above the idle process, whatever the table's size: a few pages of each segment, and the collector's slack. */
const MOST_MIB = 60;
/** Without a limit the collector lets garbage lie for as long as the machine has room; what is held on to would not fit. */
const SMALL_HEAP = '--max-old-space-size=64 --max-semi-space-size=8';

const report: Measurement = {
  name: 'report',
  title: 'A report of expired records: rows a second, read units, and peak memory',
  method:
    'the built function, every tenth row expired, no limit of read units; over emulators of DynamoDB and S3 on the same cores, so the speed is theirs; memory is sampled every 10 ms, in a heap of 64 MiB',
  run: async (options) => {
    const sizes = options.quick ? QUICK_SIZES : SIZES;
    const s3 = await startS3(await freePort());
    try {
      const { buckets } = await readService('bench');
      process.env.AWS_ENDPOINT_URL_S3 = s3.endpoint;
      await createBuckets(s3.endpoint, buckets);
      const task: ReportTask = { sizes, s3Endpoint: s3.endpoint };
      const script = new URL('report.worker.ts', import.meta.url);
      return figures(await inWorker<ReportTask, ReportResult>(script, task, options, SMALL_HEAP));
    } finally {
      delete process.env.AWS_ENDPOINT_URL_S3;
      await s3.stop();
    }
  },
};

function figures(results: ReportResult): Figure[] {
  const [small, large] = results;
  const growth = perRow(large) / perRow(small);
  return [
    ...results.flatMap(({ rows, reported, ms, readUnits, peakMib }): Figure[] => [
      { what: `${rows} rows, ${reported} reported`, value: `${(ms / 1000).toFixed(2)} s` },
      { what: `${rows} rows a second`, value: String(Math.round((rows / ms) * 1000)) },
      { what: `${rows} rows, read units`, value: String(readUnits) },
      {
        what: `${rows} rows, peak RSS over idle`,
        value: `${peakMib.toFixed(0)} MiB`,
        bar: { measured: peakMib, most: MOST_MIB },
      },
    ]),
    ratio('time a row, large / small', growth, MOST_GROWTH),
  ];
}

const perRow = (result: ReportResult[number] | undefined) => (result ? result.ms / result.rows : Number.NaN);

export const reportMeasurements: Measurement[] = [report];
