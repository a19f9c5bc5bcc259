import type { Call } from '../aws/call.ts';
import { type Checkpoint, heldByNamespace } from './checkpoint.ts';
import type { ReportStoreDependencies } from './dependencies.ts';
import type { Kind } from './kinds.ts';
import { type ExpiredRow, isRowWithin } from './sources/rows.ts';
import { addTally, noTallies, type Summary } from './summary.ts';
import { openReport } from './walk.ts';

/** A summary that counts only the rows that are added: what a caller of a namespace may learn of the report. */
export class NamespaceSummary {
  readonly #of: Summary;
  readonly #expired = noTallies();
  #rows = 0;
  #neverDeletable = 0;

  /** @param namespace of the call */
  constructor(of: Summary, checkpoint: Checkpoint, namespace: string) {
    this.#of = { ...of, heldByNamespace: heldByNamespace(checkpoint, namespace) };
  }

  add({ kind, ageSeconds, neverDeletable }: ExpiredRow<Kind>): void {
    this.#rows++;
    if (neverDeletable) this.#neverDeletable++;
    addTally(this.#expired, kind, { count: 1, oldestAgeSeconds: ageSeconds });
  }

  get summary(): Summary {
    const own = { scanned: this.#rows, expired: this.#expired, neverDeletable: this.#neverDeletable };
    return { ...this.#of, readUnits: 0, ...own };
  }
}

/** Time that is reserved for the part that is being read and for the answer, in milliseconds. */
const ANSWER_TIME_MS = 1500;

/**
 * What a report found in the namespace of the call, by a look at each of its rows. Without a namespace, all that it found. If the time is up before
 * every row was looked at, the summary counts the rows until then, and is not `complete`.
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
