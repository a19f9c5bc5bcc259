import type { Call } from '../aws/call.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { Page } from '../listings/pages.ts';
import { summaryOf } from './checkpoint.ts';
import type { ReportStoreDependencies } from './dependencies.ts';
import type { ReadReportInput } from './inputs.ts';
import type { Kind } from './kinds.ts';
import { NamespaceSummary } from './namespace-summary.ts';
import { type ExpiredRow, isRowWithin } from './sources/rows.ts';
import type { Summary } from './summary.ts';
import { openReport } from './walk.ts';

export interface ReportPage extends Summary {
  rows: ExpiredRow<Kind>[];
  /** Null on the last page. An empty page can have a cursor, if the caller asked for a single kind. */
  nextCursor: string | null;
}

/** How many parts of a report are read for one page, even if few of their rows match. */
const MAX_PARTS = 20;

/**
 * Reads a page of a report: the last complete report, or the one that the caller names. A caller of a namespace sees
 * only rows of the namespace, and the summary counts the rows of the page.
 * @throws HoldfastError NotFound, InvalidRequest (cursor), Throttled, Unavailable
 */
export function readReport(dependencies: ReportStoreDependencies) {
  return async ({ kind, limit = DEFAULT_LIMIT, ...which }: ReadReportInput, call: Call): Promise<ReportPage> => {
    const report = await openReport(dependencies, which, call);
    const summary = summaryOf(report.checkpoint, dependencies.locations.bucket);
    const page = new Page<ExpiredRow<Kind>>((row) => ({ ...row, identity: null })); // the other fields of a row are small
    const pageUntil = (nextCursor: string | null): ReportPage => ({ ...callersSummary(), rows: page.rows, nextCursor });
    const callersSummary = () => {
      if (call.namespace === undefined) return summary;
      const own = new NamespaceSummary(summary, report.checkpoint, call.namespace);
      for (const row of page.rows) own.add(row);
      return own.summary;
    };
    const isAskedFor = (row: ExpiredRow<Kind>) =>
      (kind === undefined || row.kind === kind) && isRowWithin(call.namespace, row);
    let parts = 0;
    let nextStart = report.start;
    /** The cursor of the next page, once this page is full or has read enough parts. */
    let nextPage: string | undefined;
    for await (const { row, next } of report.rows(call)) {
      const start = nextStart;
      nextStart = next;
      // This page is done, and a further row follows, so there is a next page.
      if (nextPage !== undefined && row) return pageUntil(nextPage);
      if (!row && ++parts < MAX_PARTS) continue;
      if (row && !isAskedFor(row)) continue;
      if (row && !page.add(row)) return pageUntil(start);
      if (!row || page.rows.length === limit) nextPage ??= next;
    }
    return pageUntil(null);
  };
}
