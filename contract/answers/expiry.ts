import * as z from 'zod/mini';
import type { Cleaned } from '../../shared/expiry/clean.ts';
import { KINDS, type Kind } from '../../shared/expiry/kinds.ts';
import type { ReportPage } from '../../shared/expiry/read.ts';
import type { Report } from '../../shared/expiry/report.ts';
import type { ExpiredRow, Identity } from '../../shared/expiry/sources/rows.ts';
import type { SpareReason } from '../../shared/expiry/sources/source.ts';
import type { TtlFault } from '../../shared/expiry/sources/ttl.ts';
import type { HeldLeases, Tallies, Tally } from '../../shared/expiry/summary.ts';
import { MEANING } from '../meanings.ts';
import { component, count, countsOf, flag, instant, list, nullable, number, oneOf, text, texts } from '../schema.ts';

const kind = () => oneOf(KINDS, 'The kind of the record.');
const nextCursor = () => nullable(text(MEANING.nextCursor));

const tally = component<Tally>()(
  'ExpiredTally',
  'The expired records of a kind.',
  z.strictObject({
    count: count('The number of records.'),
    oldestAgeSeconds: count('The age of the oldest record, in seconds.'),
  }),
);

const tallies = component<Tallies>()('ExpiredTallies', 'The expired records, by kind.', z.strictObject(byKind(tally)));

function byKind<Schema>(schema: Schema): Record<Kind, Schema> {
  return Object.fromEntries(KINDS.map((kind) => [kind, schema])) as Record<Kind, Schema>;
}

const heldLeases = component<HeldLeases>()(
  'HeldLeases',
  'The leases and permits that are held in a namespace.',
  z.strictObject({
    namespace: text('The namespace.'),
    leases: count('The number of leases and permits.'),
  }),
);

const summaryFields = () => ({
  reportId: text(MEANING.reportId),
  startedAt: instant('When the report began. A report may take several runs.'),
  finishedAt: nullable(instant('When the report was complete. Null until then.')),
  complete: flag(
    'True if all tables and the bucket were scanned, and, in a namespace, all rows of the report were counted.',
  ),
  scanned: count('The number of rows and objects that the report has read.'),
  readUnits: number('The read units that DynamoDB charged.'),
  heldByNamespace: list(
    heldLeases,
    'The namespaces with the most held leases and permits, up to 100. On a route of a namespace, only that namespace.',
  ),
  expired: tallies,
  neverDeletable: count("The number of expired rows that DynamoDB's TTL can never delete."),
  location: text('Where the rows are in S3, as newline-delimited JSON.'),
});

export const report = component<Report>()(
  'Report',
  'A report, complete or stopped.',
  z.strictObject({
    ...summaryFields(),
    stoppedBy: nullable(
      oneOf(
        ['time', 'Throttled'],
        'Why the report is not complete. The next run continues the report. If `finishedAt` is set, the report itself is complete, and only the counting for a namespace was cut short. Null if the report is complete.',
      ),
    ),
    announced: flag('True if the event of each complete report has reached the event bus.'),
  }),
);

const TTL_FAULTS = ['milliseconds', 'missing', 'notANumber', 'notATime', 'olderThanFiveYears'] as const;

const attribute = z.union([z.strictObject({ S: z.string() }), z.strictObject({ N: z.string() })]);
const identity = component<Identity>()(
  'ExpiredIdentity',
  'The attributes by which the clean-up recognises the record. An attribute that the record lacks is null.',
  z.record(z.string(), z.nullable(attribute)),
);

const row = component<ExpiredRow<Kind>>()(
  'ExpiredRecord',
  'A record that has expired and still exists.',
  z.strictObject({
    kind: kind(),
    key: texts('The key attributes of the record, the key of an object as `path`, or `key` and `fence` of a permit.'),
    holder: nullable(text('The holder or writer. Null if the record does not say.')),
    expiredAt: nullable(instant('When the record expired. Null if the record does not say.')),
    ageSeconds: count(
      'For how long the record had been expired when the report read it, in seconds. 0 if `expiredAt` is null.',
    ),
    reason: text('Why the record is reported, for people.'),
    neverDeletable: flag("True if DynamoDB's TTL can never delete the row."),
    ttlFault: nullable(
      oneOf(TTL_FAULTS satisfies readonly TtlFault[], 'Why the TTL cannot delete the row. Null if it can.'),
    ),
    identity: nullable(identity),
  }),
);

export const reportPage = component<ReportPage>()(
  'ReportPage',
  'A report with a page of its rows. A page of one kind may be empty and still have a cursor.',
  z.strictObject({
    ...summaryFields(),
    rows: list(row, 'The records, in the order in which the report found them.'),
    nextCursor: nextCursor(),
  }),
);

const SPARED = [
  ...(['tooYoung', 'ageUnknown', 'neverDeletable', 'leftToQueue', 'partOfRecord'] as const),
  ...(['fenceAhead', 'unrecognisable', 'changed', 'gone'] as const),
] as const satisfies readonly SpareReason[];

const treated = component<Cleaned['deleted']['records'][number]>()(
  'CleanedRecord',
  'A reported record that was deleted or spared.',
  z.strictObject({
    kind: kind(),
    key: texts('The key attributes of the record, the key of an object as `path`, or `key` and `fence` of a permit.'),
    holder: nullable(text('The holder or writer. Null if the record does not say.')),
    expiredAt: nullable(instant('When the record expired. Null if the record does not say.')),
    why: z.exactOptional(oneOf(SPARED, 'Why the record was spared.')),
  }),
);

const deleted = component<Cleaned['deleted']>()(
  'Deleted',
  'The records that were deleted, or would be.',
  z.strictObject({
    count: count('The number of records.'),
    by: countsOf(KINDS, 'The number of records, by kind.'),
    records: list(treated, 'The first 100 records.'),
  }),
);

const spared = component<Cleaned['spared']>()(
  'Spared',
  'The records that were spared.',
  z.strictObject({
    count: count('The number of records.'),
    by: countsOf(SPARED, 'The number of records, by the reason for sparing them.'),
    records: list(treated, 'The first 100 records.'),
  }),
);

export const cleaned = component<Cleaned>()(
  'CleanUp',
  'What a clean-up has done, or with `dryRun` what it would do.',
  z.strictObject({
    reportId: text(MEANING.reportId),
    dryRun: flag('If true, nothing was deleted, and `deleted` shows what a clean-up would try to delete.'),
    olderThanSeconds: number(
      'The `olderThanSeconds` of the request, or the parameter `fenceRetentionSeconds` if that is longer.',
    ),
    deleted,
    spared,
    stoppedBy: nullable(
      oneOf(
        ['time', 'Throttled', 'Unavailable', 'OutcomeUnknown'],
        'Why the clean-up stopped before the end of the report. Call again with `nextCursor`.',
      ),
    ),
    nextCursor: nextCursor(),
  }),
);
