import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { shuffled } from '../surroundings/ids.ts';
import { addHeld, type Segment } from './checkpoint.ts';
import type { ReportDependencies } from './dependencies.ts';
import type { Kind } from './kinds.ts';
import { summaryFor } from './namespace-summary.ts';
import { type Pacer, pacer } from './pacer.ts';
import { type PendingPages, Progress } from './progress.ts';
import type { ExpiredRow } from './sources/rows.ts';
import type { ExecutionQuestion } from './sources/source.ts';
import type { Summary } from './summary.ts';

/** The lease of a run. Other runs cannot begin while the run holds it. */
export interface RunLease {
  fence: number;
  /** Extends the lease if needed. Called between pages. @throws HoldfastError LeaseLost if another run has begun */
  keep(): Promise<void>;
}

export interface Report extends Summary {
  /**
   * Why the report is not complete. The next run continues the report, unless `finishedAt` is set. Null if the report
   * is complete.
   */
  stoppedBy: 'time' | 'Throttled' | null;
  /** Whether the event bus has accepted the event of every complete report. */
  announced: boolean;
}

/** The time that is reserved for storing what was read, in milliseconds. */
const STORE_TIME_MS = 3000;

/**
 * How many questions about executions a run asks AWS each second. The quota of the whole account refills by 10 to 15 a
 * second, and the calls at the end of executions need it more.
 */
const ASKED_PER_SECOND = 5;

/** How many pages a run that crashes loses at most, even if the pages did not have rows to store. */
const PAGES_BETWEEN_CHECKPOINTS = 20;

/**
 * Scans all sources for expired records, and stores a row for each of them without changing the record
 * (docs/protocols/expired.md#run). A run stops before its time is over, or if AWS throttles it, and the next run
 * continues from the last checkpoint. A row counts only if a later checkpoint counts its part, so each record is
 * reported a single time, wherever a run ends.
 * @throws HoldfastError LeaseLost (another run has begun), Unavailable, OutcomeUnknown. What was read before is stored
 */
export function createReport(dependencies: ReportDependencies) {
  return async (lease: RunLease, call: Call): Promise<Report> => {
    const progress = await Progress.open(dependencies, lease.fence, call);
    await progress.announce(call); // events that an earlier run could not send
    const stoppedBy = await scanSources({ dependencies, progress, lease, call });
    if (stoppedBy === null) {
      await progress.complete(call);
      dependencies.measure(progress.summary);
      await progress.announce(call);
    }
    const summary = await summaryFor(dependencies, progress.summary, call);
    const countEndedEarly = stoppedBy === null && !summary.complete; // the count of the namespace's rows
    return { ...summary, stoppedBy: countEndedEarly ? 'time' : stoppedBy, announced: progress.announced };
  };
}

type Stop = { by: 'time' } | { by: 'error'; error: unknown };

interface ReportRun {
  dependencies: ReportDependencies;
  progress: Progress;
  lease: RunLease;
  readPace: Pacer;
  questionPace: Pacer;
  /** Set after AWS has throttled a question. The run does not ask further ones. */
  asksNoMore?: boolean;
  call: Call;
  /** Set by the first worker that must stop. The others stop before their next page. */
  stop: Stop | undefined;
}

async function scanSources(begun: Omit<ReportRun, 'readPace' | 'questionPace' | 'stop'>): Promise<Report['stoppedBy']> {
  const { dependencies, progress } = begun;
  const readPace = pacer(dependencies.clock, dependencies.readUnitsPerSecond);
  const questionPace = pacer(dependencies.clock, ASKED_PER_SECOND);
  const run: ReportRun = { ...begun, readPace, questionPace, stop: undefined };
  const left = [...progress.segments.entries()].filter(([, { done }]) => !done);
  const worker = async () => {
    for (let next = left.shift(); next && !run.stop; next = left.shift()) await scanSegment(run, ...next);
  };
  await Promise.all(Array.from({ length: dependencies.segments }, worker));
  const { stop } = run;
  if (!stop) return null;
  if (stop.by === 'time') return 'time';
  if (stop.error instanceof HoldfastError && stop.error.code === 'Throttled') return 'Throttled';
  throw stop.error;
}

/**
 * Scans one segment. Does not throw: a failure sets `stop`, so that the workers of other segments store what they have
 * read.
 */
async function scanSegment(run: ReportRun, at: number, { source: name, segment, of, after }: Segment): Promise<void> {
  let pending = nothingPending(after);
  const flush = async () => {
    if (pending.pages > 0) await run.progress.flush(at, pending, run.call);
    pending = nothingPending(pending.after);
  };
  try {
    const source = run.dependencies.sources[name];
    if (!source) throw new TypeError(`the report has no source ${name}`);
    while (!pending.done && (await mayGoOn(run, run.readPace))) {
      const page = await source.page(run.dependencies, { segment, of, after: pending.after }, run.call);
      run.readPace.spend(page.readUnits);
      const answers = await answersTo(run, page.questions ?? []);
      pending = {
        rows: [...pending.rows, ...page.rows, ...answers],
        scanned: pending.scanned + page.scanned,
        readUnits: pending.readUnits + page.readUnits,
        held: addHeld(pending.held, page.held),
        pages: pending.pages + 1,
        after: page.after,
        done: page.after === undefined,
      };
      const enough = pending.rows.length >= run.dependencies.partRows || pending.pages >= PAGES_BETWEEN_CHECKPOINTS;
      if (enough && !pending.done) await flush();
    }
  } catch (error) {
    run.stop = run.stop?.by === 'error' ? run.stop : { by: 'error', error };
    if (isLeaseLost(error)) return;
  }
  try {
    await flush();
  } catch (error) {
    run.stop = run.stop?.by === 'error' ? run.stop : { by: 'error', error };
  }
}

/**
 * Asks AWS the questions about executions on which rows depend. Their order is random, so that a question for which
 * this report has no time left is asked in a later report.
 */
async function answersTo(run: ReportRun, questions: readonly ExecutionQuestion<Kind>[]): Promise<ExpiredRow<Kind>[]> {
  const rows: ExpiredRow<Kind>[] = [];
  for (const question of shuffled(questions, run.dependencies.ids)) {
    if (run.asksNoMore || !(await mayGoOn(run, run.questionPace))) break;
    run.questionPace.spend(1);
    const answer = await question(run.call).catch((error) => {
      if (!(error instanceof HoldfastError) || error.code !== 'Throttled') throw error;
      run.asksNoMore = true;
      return [];
    });
    rows.push(...answer);
  }
  return rows;
}

const nothingPending = (after: Segment['after']): PendingPages => ({
  rows: [],
  scanned: 0,
  readUnits: 0,
  held: {},
  pages: 0,
  after,
  done: false,
});

const isLeaseLost = (error: unknown) => error instanceof HoldfastError && error.code === 'LeaseLost';

/** Waits until the rate allows to continue, and extends the lease. @returns false if the run must stop */
async function mayGoOn(run: ReportRun, pace: Pacer): Promise<boolean> {
  const { lease, call, dependencies } = run;
  const timeLeftMs = () => call.timeLeftMs() - STORE_TIME_MS;
  for (let due = pace.dueInMs(); !run.stop && due > 0 && due < timeLeftMs(); due = pace.dueInMs())
    await dependencies.clock.sleep(Math.min(due, MAX_PACE_PAUSE_MS), call.signal).then(() => lease.keep());
  if (!run.stop && (timeLeftMs() <= 0 || pace.dueInMs() > 0)) run.stop = { by: 'time' };
  if (run.stop) return false;
  await lease.keep();
  return true;
}

/** The longest sleep between two extensions of the lease. */
const MAX_PACE_PAUSE_MS = 5000;
