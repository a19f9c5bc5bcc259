import type { Call } from '../aws/call.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { Page } from '../listings/pages.ts';
import { summaryOf } from './checkpoint.ts';
import type { ReportStoreDependencies } from './dependencies.ts';
import type { ReadInput } from './inputs.ts';
import type { Kind } from './kinds.ts';
import { NamespaceSummary } from './own.ts';
import { type ExpiredRow, isRowWithin } from './sources/rows.ts';
import type { Summary } from './summary.ts';
import { openReport } from './walk.ts';

export interface ReportPage extends Summary {
  rows: ExpiredRow<Kind>[];
  /** Null on the last page. An empty page can have a cursor too, if only some kinds were asked for. */
  nextCursor: string | null;
}

/** Bounds the cost of one page, however few of its rows match. */
const MAX_PARTS = 20;

/**
 * The last complete report, or the one asked for, with its rows page by page. In a namespace the summary counts the rows of the
 * page, and the others are not shown.
 * @throws HoldfastError NotFound, InvalidRequest (cursor), Throttled, Unavailable
 */
export function reader(dependencies: ReportStoreDependencies) {
  return async ({ kind, limit = DEFAULT_LIMIT, ...which }: ReadInput, call: Call): Promise<ReportPage> => {
    const report = await openReport(dependencies, which, call);
    const summary = summaryOf(report.checkpoint, dependencies.places.bucket);
    const page = new Page<ExpiredRow<Kind>>((row) => ({ ...row, identity: null })); // the rest of a row is bounded
    const upTo = (nextCursor: string | null): ReportPage => ({ ...callersSummary(), rows: page.rows, nextCursor });
    const callersSummary = () => {
      if (call.namespace === undefined) return summary;
      const own = new NamespaceSummary(summary, report.checkpoint, call.namespace);
      for (const row of page.rows) own.add(row);
      return own.summary;
    };
    const isAskedFor = (row: ExpiredRow<Kind>) =>
      (kind === undefined || row.kind === kind) && isRowWithin(call.namespace, row);
    let parts = 0;
    let at = report.start;
    let goesOn: string | undefined;
    for await (const { row, next } of report.rows(call)) {
      const here = at;
      at = next;
      // One row more than the page, to know whether another page follows.
      if (goesOn !== undefined && row) return upTo(goesOn);
      if (!row && ++parts < MAX_PARTS) continue;
      if (row && !isAskedFor(row)) continue;
      if (row && !page.add(row)) return upTo(here);
      if (!row || page.rows.length === limit) goesOn ??= next;
    }
    return upTo(null);
  };
}
