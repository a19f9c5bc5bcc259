import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { shuffled } from '../surroundings/ids.ts';
import { addHeld, type Segment } from './checkpoint.ts';
import type { ReportDependencies } from './dependencies.ts';
import type { Kind } from './kinds.ts';
import { summaryFor } from './own.ts';
import { type Pacer, pacer } from './pacer.ts';
import { type Pending, Progress } from './progress.ts';
import type { ExpiredRow } from './sources/rows.ts';
import type { ExecutionQuestion } from './sources/source.ts';
import type { Summary } from './summary.ts';

/** Keeps other runs out. */
export interface RunLease {
  /** Higher in each run. */
  fence: number;
  /** Called between pages. @throws HoldfastError LeaseLost if another run has begun */
  keep(): Promise<void>;
}

export interface Report extends Summary {
  /** Why the report is not complete. The next run continues it, unless it has `finishedAt`. Null if it is complete. */
  stoppedBy: 'time' | 'Throttled' | null;
  /** Whether the event bus has taken the event of every complete report. */
  announced: boolean;
}

/** Time that is reserved for storing what was read, in milliseconds. */
const STORE_TIME_MS = 3000;

/**
 * Questions to AWS about executions. The quotas refill by 10 to 15 a second for the whole account, and passes at the end of executions need them
 * more.
 */
const ASKED_PER_SECOND = 5;

/** A crash costs at most this many pages of reading, even if no page had a row to store. */
const PAGES_BETWEEN_CHECKPOINTS = 20;

/**
 * Scans all sources for expired records and stores a row for each, without changing any record
 * (docs/protocols/expired.md#run). It stops before the time is up, or if the store throttles. The next run continues from the
 * last checkpoint. A row counts only together with the checkpoint after it, so it is reported once, wherever a run ends.
 * @throws HoldfastError LeaseLost (another run has begun), Unavailable, OutcomeUnknown; what was read before is stored
 */
export function reporter(dependencies: ReportDependencies) {
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
    const isCut = stoppedBy === null && !summary.complete; // while the rows of the namespace were counted
    return { ...summary, stoppedBy: isCut ? 'time' : stoppedBy, announced: progress.announced };
  };
}

type Stop = { by: 'time' } | { by: 'error'; error: unknown };

/** The scan of one run, segment by segment. As many segments are read at once as a table has. */
interface ReportRun {
  dependencies: ReportDependencies;
  progress: Progress;
  lease: RunLease;
  /** Of the read units of DynamoDB, and of the questions about executions. */
  readPace: Pacer;
  questionPace: Pacer;
  /** Set once AWS throttles the questions. The run asks no more. */
  asksNoMore?: boolean;
  call: Call;
  /** Set by the first segment that must stop. The others stop at their next page. */
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

/** Never throws. A failure stops the run, and the other segments store what they have read. */
async function scanSegment(run: ReportRun, at: number, { source: name, segment, of, after }: Segment): Promise<void> {
  let pending = nothing(after);
  const flush = async () => {
    if (pending.pages > 0) await run.progress.flush(at, pending, run.call);
    pending = nothing(pending.after);
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
 * The rows that depend on questions about executions. The order of the questions is different at each report. So a question that this report does not
 * reach has its turn in a later one.
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

const nothing = (after: Segment['after']): Pending => ({
  rows: [],
  scanned: 0,
  readUnits: 0,
  held: {},
  pages: 0,
  after,
  done: false,
});

const isLeaseLost = (error: unknown) => error instanceof HoldfastError && error.code === 'LeaseLost';

/** Waits as the rate demands, and keeps the lease. @returns false if the run must end */
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

/** Short, so that the run keeps its lease while it waits for a low rate. */
const MAX_PACE_PAUSE_MS = 5000;
