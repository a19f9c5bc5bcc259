import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { CleanDependencies } from './dependencies.ts';
import type { CleanInput } from './inputs.ts';
import { type Kind, sourceOf } from './kinds.ts';
import { type ExpiredRow, isRowWithin } from './sources/rows.ts';
import type { SpareReason } from './sources/source.ts';
import { minAgeSeconds, reasonToSpare } from './spared.ts';
import { openReport } from './walk.ts';

/** A reported record that was deleted or spared. */
interface CleanedRecord extends Pick<ExpiredRow<Kind>, 'kind' | 'key' | 'holder' | 'expiredAt'> {
  /** Why the record was spared. Absent if it was deleted. */
  why?: SpareReason;
}

interface Count<By extends string> {
  count: number;
  by: Partial<Record<By, number>>;
  /** The first hundred records. */
  records: CleanedRecord[];
}

export interface Cleaned {
  reportId: string;
  /** If true, nothing was deleted, and `deleted` counts what a clean-up would try to delete. */
  dryRun: boolean;
  /** The age that the caller asked for, or the retention of fences if that is longer. */
  olderThanSeconds: number;
  deleted: Count<Kind>;
  spared: Count<SpareReason>;
  /** Why the call stopped before the end of the report. The caller can continue with `nextCursor`. */
  stoppedBy: 'time' | 'Throttled' | 'Unavailable' | 'OutcomeUnknown' | null;
  nextCursor: string | null;
}

const MAX_LISTED_RECORDS = 100;
const DELETIONS_AT_ONCE = 16;

/** The time that is reserved for one batch of deletions, in milliseconds. */
const DELETE_TIME_MS = 3000;

/**
 * Deletes reported records, each if it is unchanged since the report (docs/protocols/expired.md#clean). A repeat is
 * harmless, because a record that was deleted before counts as `gone`.
 * @throws HoldfastError NotFound, InvalidRequest (cursor), and before the first record is done: Throttled, Unavailable,
 *   OutcomeUnknown
 */
export function cleanExpired(dependencies: CleanDependencies) {
  const { clock, margins, sources } = dependencies;
  return async ({ reportId, cursor, ...criteria }: CleanInput, call: Call): Promise<Cleaned> => {
    const report = await openReport(dependencies, { reportId, cursor }, call);
    const deleted: Cleaned['deleted'] = { count: 0, by: {}, records: [] };
    const spared: Cleaned['spared'] = { count: 0, by: {}, records: [] };
    const answer = (stoppedBy: Cleaned['stoppedBy'], nextCursor: string | null): Cleaned => ({
      reportId: report.checkpoint.reportId,
      dryRun: criteria.dryRun,
      olderThanSeconds: minAgeSeconds(criteria.olderThanSeconds, margins),
      deleted,
      spared,
      stoppedBy,
      nextCursor,
    });

    const cleanOne = async (row: ExpiredRow<Kind>) => {
      const source = sourceOf(sources, row.kind);
      const why =
        reasonToSpare(row, criteria, { source, margins, now: clock.now() }) ??
        (criteria.dryRun ? undefined : await source.remove(dependencies, row, call));
      if (why) addRecord(spared, why, { ...cleanedRecord(row), why });
      else addRecord(deleted, row.kind, cleanedRecord(row));
    };

    let batch: ExpiredRow<Kind>[] = [];
    let nextCursor = report.start;
    try {
      for await (const { row, next } of report.rows(call)) {
        const isAskedFor = row && isRowWithin(call.namespace, row) && (criteria.kinds?.includes(row.kind) ?? true);
        if (isAskedFor) batch.push(row);
        if (row && batch.length < DELETIONS_AT_ONCE) continue;
        if (call.timeLeftMs() < DELETE_TIME_MS) return answer('time', nextCursor);
        await allOf(batch.map(cleanOne));
        batch = [];
        nextCursor = next;
      }
    } catch (error) {
      if (!isTransientFailure(error) || deleted.count + spared.count === 0) throw error;
      return answer(error.code, nextCursor);
    }
    return answer(null, null);
  };
}

const cleanedRecord = ({ kind, key, holder, expiredAt }: ExpiredRow<Kind>): CleanedRecord => ({
  kind,
  key,
  holder,
  expiredAt,
});

function addRecord<By extends string>(to: Count<By>, by: By, record: CleanedRecord): void {
  to.count++;
  to.by[by] = (to.by[by] ?? 0) + 1;
  if (to.records.length < MAX_LISTED_RECORDS) to.records.push(record);
}

/** Waits for all deletions, so that the counts are complete. @throws the first failure */
async function allOf(acts: Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(acts)) if (outcome.status === 'rejected') throw outcome.reason;
}

type TransientFailure = HoldfastError & { code: 'Throttled' | 'Unavailable' | 'OutcomeUnknown' };

const isTransientFailure = (error: unknown): error is TransientFailure =>
  error instanceof HoldfastError && ['Throttled', 'Unavailable', 'OutcomeUnknown'].includes(error.code);
