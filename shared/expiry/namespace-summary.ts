import type { Call } from '../aws/call.ts';
import { type Checkpoint, heldByNamespace } from './checkpoint.ts';
import type { ReportStoreDependencies } from './dependencies.ts';
import type { Kind } from './kinds.ts';
import { type ExpiredRow, isRowWithin } from './sources/rows.ts';
import { addTally, noTallies, type Summary } from './summary.ts';
import { openReport } from './walk.ts';

/**
 * The summary that a caller of a namespace receives. It counts only the rows that are added, which must be rows of the
 * namespace.
 */
export class NamespaceSummary {
  readonly #whole: Summary;
  readonly #expired = noTallies();
  #rows = 0;
  #neverDeletable = 0;

  constructor(whole: Summary, checkpoint: Checkpoint, namespace: string) {
    this.#whole = { ...whole, heldByNamespace: heldByNamespace(checkpoint, namespace) };
  }

  add({ kind, ageSeconds, neverDeletable }: ExpiredRow<Kind>): void {
    this.#rows++;
    if (neverDeletable) this.#neverDeletable++;
    addTally(this.#expired, kind, { count: 1, oldestAgeSeconds: ageSeconds });
  }

  get summary(): Summary {
    const own = { scanned: this.#rows, expired: this.#expired, neverDeletable: this.#neverDeletable };
    return { ...this.#whole, readUnits: 0, ...own };
  }
}

/** The time that is reserved for reading the next part and for the answer, in milliseconds. */
const ANSWER_TIME_MS = 1500;

/**
 * The summary of a report for a caller. For a caller of a namespace, it reads all rows of the report and counts the
 * namespace's. If time runs out, it counts only the rows read so far, and is not `complete`.
 * @throws HoldfastError NotFound, Throttled, Unavailable
 */
export async function summaryFor(
  dependencies: ReportStoreDependencies,
  summary: Summary,
  call: Call,
): Promise<Summary> {
  if (call.namespace === undefined) return summary;
  const report = await openReport(dependencies, { reportId: summary.reportId }, call);
  const own = new NamespaceSummary(summary, report.checkpoint, call.namespace);
  for await (const { row } of report.rows(call))
    if (row && isRowWithin(call.namespace, row)) own.add(row);
    else if (!row && call.timeLeftMs() < ANSWER_TIME_MS) return { ...own.summary, complete: false };
  return own.summary;
}
