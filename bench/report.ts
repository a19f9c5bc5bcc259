import { readService } from '../infrastructure/read.ts';
import { freePort } from '../local/ports.ts';
import { createBuckets, startS3 } from '../local/s3.ts';
import { each, type Figure, type Measurement, milliseconds, ratio, statistics } from './measurement.ts';
import type { ReportResult, ReportTask } from './report.worker.ts';
import { inWorker } from './worker.ts';

/** One segment. With several, the emulator reads the whole table for each page, which is too slow for the largest table. */
const SIZES = [1e3, 1e5, 1e6];
const QUICK_SIZES = [100, 1e3];
/** The number of segments, the same as in a deployment, because memory depends on the number of pages that are held at once. */
const SEGMENTS = 4;
const [MAX_SEGMENTED, QUICK_MAX_SEGMENTED] = [1e5, 1e3];

/** The bar: ten times the rows may take ten times as long, plus what a shared machine adds. */
const MAX_GROWTH = 1.5;
/** The bar for memory beyond that of the idle process, whatever the size of the table: a few pages of each segment, and slack for the garbage collector. */
const MAX_MIB = 60;
/** Without a limit, the collector keeps garbage as long as the machine has room. With it, a report that holds on to its rows would fail. */
const SMALL_HEAP = '--max-old-space-size=64 --max-semi-space-size=8';

const report: Measurement = {
  name: 'report',
  title: 'A report of expired records over tables of many rows: time, read units, and peak memory',
  method:
    'The built function, with every tenth row expired, in one segment unless noted, and no limit of read units. The DynamoDB and S3 emulators run on the same cores, so the speed is theirs. Memory is sampled every 10 ms, in a heap of 64 MiB',
  run: async (options) => {
    const [sizes, most] = options.quick ? [QUICK_SIZES, QUICK_MAX_SEGMENTED] : [SIZES, MAX_SEGMENTED];
    const runs = sizes.flatMap((rows) => [
      { rows, segments: 1 },
      ...(rows === most ? [{ rows, segments: SEGMENTS }] : []),
    ]);
    const s3 = await startS3(await freePort());
    try {
      const { buckets } = await readService('bench');
      process.env.AWS_ENDPOINT_URL_S3 = s3.endpoint;
      await createBuckets(s3.endpoint, buckets);
      const task: ReportTask = { runs, repetitions: options.quick ? 1 : 3, s3Endpoint: s3.endpoint };
      const script = new URL('report.worker.ts', import.meta.url);
      return figures(await inWorker<ReportTask, ReportResult>(script, task, { ...options, nodeOptions: SMALL_HEAP }));
    } finally {
      delete process.env.AWS_ENDPOINT_URL_S3;
      await s3.stop();
    }
  },
};

function figures(results: ReportResult): Figure[] {
  const [small, large] = results.filter(({ segments }) => segments === 1).slice(-2);
  const growth = perRow(large).map((ms, at) => ms / (perRow(small)[at] ?? Number.NaN));
  return [
    ...results.flatMap(({ rows, segments, reported, readUnits, ms, peakMib }): Figure[] => {
      const size = `${rows.toLocaleString('en')} rows${segments > 1 ? ` in ${segments} segments` : ''}`;
      const time = milliseconds(`report over ${size}, ${reported.toLocaleString('en')} of them expired`, each(ms));
      const rate = statistics(each(ms.map((one) => (rows / one) * 1000)));
      const peak = statistics(each(peakMib));
      const highest = Math.max(...peakMib);
      return [
        time,
        {
          what: `rows a second, ${size}`,
          value: Math.round(rate.median).toLocaleString('en'),
          unit: 'rows/s',
          ...rate,
        },
        { what: `read units, ${size}`, value: String(readUnits), unit: 'units', median: readUnits, n: ms.length },
        {
          what: `peak RSS over idle, ${size}`,
          value: `${peak.median.toFixed(0)} MiB, at most ${highest.toFixed(0)}`,
          unit: 'MiB',
          ...peak,
          bar: { measured: highest, max: MAX_MIB },
        },
      ];
    }),
    // The smallest table is left out, because most of its time is for requests that every report sends.
    ratio('time a row, the largest table / the next smaller one', growth, { max: MAX_GROWTH }),
  ];
}

/** The time of each report, in milliseconds. */
const perRow = (result: ReportResult[number] | undefined) => (result ? result.ms.map((ms) => ms / result.rows) : []);

export const reportMeasurements: Measurement[] = [report];
