import * as z from 'zod/mini';
import type { ExpiredRow, Identity } from '../../shared/expired/rows.ts';
import type { SpareReason } from '../../shared/expired/source.ts';
import type { TtlFault } from '../../shared/expired/ttl.ts';
import type { Cleaned } from '../../shared/expiry/clean.ts';
import { KINDS, type Kind } from '../../shared/expiry/kinds.ts';
import type { ReportPage } from '../../shared/expiry/read.ts';
import type { Report } from '../../shared/expiry/report.ts';
import type { HeldLeases, Tallies, Tally } from '../../shared/expiry/summary.ts';
import { component, count, flag, instant, list, nullable, number, oneOf, someOf, text, texts } from '../schema.ts';

const kind = () => oneOf(KINDS, 'What kind of record it is.');
const nextCursor = () => nullable(text('Passed as `cursor`, it goes on from here. Null at the end.'));

const tally = component<Tally>()(
  'ExpiredTally',
  'How many records of a kind have expired.',
  z.strictObject({ count: count('How many.'), oldestAgeSeconds: count('The age of the oldest, in seconds.') }),
);

const tallies = component<Tallies>()('ExpiredTallies', 'By kind of record.', z.strictObject(byKind(tally)));

function byKind<Schema>(schema: Schema): Record<Kind, Schema> {
  return Object.fromEntries(KINDS.map((kind) => [kind, schema])) as Record<Kind, Schema>;
}

const heldLeases = component<HeldLeases>()(
  'HeldLeases',
  'How many leases and permits a namespace holds.',
  z.strictObject({
    namespace: text('What their keys begin with.'),
    leases: count('How many. A permit counts as one.'),
  }),
);

const summaryFields = () => ({
  reportId: text('Names the report.'),
  startedAt: instant('When the report began. It may have gone on over several runs.'),
  finishedAt: nullable(instant('When it was complete. Null until then.')),
  complete: flag('Whether everything was scanned. In a namespace also whether all rows of the report were counted.'),
  scanned: count('How many rows and objects it looked at.'),
  readUnits: number('What DynamoDB charged for it, in read units.'),
  heldByNamespace: list(
    heldLeases,
    'How many leases and permits the namespaces hold that hold the most, at most a hundred. In a namespace its own.',
  ),
  expired: tallies,
  neverDeletable: count('How many of the expired rows the TTL of DynamoDB can never delete.'),
  location: text('Where the rows are, as newline-delimited JSON.'),
});

export const report = component<Report>()(
  'Report',
  'A report, complete or stopped.',
  z.strictObject({
    ...summaryFields(),
    stoppedBy: nullable(
      oneOf(
        ['time', 'Throttled'],
        'Why it is not complete. The next run goes on with it, unless `finishedAt` says that only the count of a namespace is cut short. Null where it is.',
      ),
    ),
    announced: flag('Whether the event bus has the event of every complete report.'),
  }),
);

const TTL_FAULTS = ['milliseconds', 'missing', 'notANumber', 'notATime', 'olderThanFiveYears'] as const;

const attribute = z.union([z.strictObject({ S: z.string() }), z.strictObject({ N: z.string() })]);
const identity = component<Identity>()(
  'ExpiredIdentity',
  'The attributes by which the clean-up recognises this very record. Null for one that was not there.',
  z.record(z.string(), z.nullable(attribute)),
);

const row = component<ExpiredRow<Kind>>()(
  'ExpiredRecord',
  'A record that has expired and still exists.',
  z.strictObject({
    kind: kind(),
    key: texts("The record's key attributes, the key of the object as `path`, or `key` and `fence` of a permit."),
    holder: nullable(text('Who left it, where the record says.')),
    expiredAt: nullable(instant('When it expired. Null where that cannot be read.')),
    ageSeconds: count('From `expiredAt` to when the row was read, in seconds. 0 where that is not known.'),
    reason: text('Why it is reported, in words.'),
    neverDeletable: flag('Whether the TTL of DynamoDB can never delete it.'),
    ttlFault: nullable(oneOf(TTL_FAULTS satisfies readonly TtlFault[], 'Why not.')),
    identity: z.nullable(identity),
  }),
);

export const reportPage = component<ReportPage>()(
  'ReportPage',
  'A report with a page of its rows. A page of one kind may be empty and still have a cursor.',
  z.strictObject({
    ...summaryFields(),
    rows: list(row, 'In the order in which they were found.'),
    nextCursor: nextCursor(),
  }),
);

const SPARED = [
  ...(['tooYoung', 'ageUnknown', 'neverDeletable', 'leftToQueue', 'partOfRecord'] as const),
  ...(['fenceAhead', 'unrecognisable', 'changed', 'gone'] as const),
] as const satisfies readonly SpareReason[];

const treated = component<Cleaned['deleted']['records'][number]>()(
  'CleanedRecord',
  'What became of a reported record.',
  z.strictObject({
    kind: kind(),
    key: texts("The record's key attributes, the key of the object as `path`, or `key` and `fence` of a permit."),
    holder: nullable(text('Who left it, where the record says.')),
    expiredAt: nullable(instant('When it expired.')),
    why: z.exactOptional(oneOf(SPARED, 'Why it was spared.')),
  }),
);

const deleted = component<Cleaned['deleted']>()(
  'Deleted',
  'What was deleted, or would be.',
  z.strictObject({
    count: count('How many.'),
    by: someOf(KINDS, count('How many of the kind.')),
    records: list(treated, 'The first hundred.'),
  }),
);

const spared = component<Cleaned['spared']>()(
  'Spared',
  'What was left alone.',
  z.strictObject({
    count: count('How many.'),
    by: someOf(SPARED, count('How many for that reason.')),
    records: list(treated, 'The first hundred.'),
  }),
);

export const cleaned = component<Cleaned>()(
  'CleanUp',
  'What a clean-up did, or would do.',
  z.strictObject({
    reportId: text('The report that it went by.'),
    dryRun: flag('Where true, nothing was written, and `deleted` is what would be tried.'),
    olderThanSeconds: number('What was asked for, or how long fences are kept if that is longer.'),
    deleted,
    spared,
    stoppedBy: nullable(
      oneOf(
        ['time', 'Throttled', 'Unavailable', 'OutcomeUnknown'],
        'Why it has not come to the end of the report. Call again with `nextCursor`.',
      ),
    ),
    nextCursor: nextCursor(),
  }),
);
