import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import {
  addHeld,
  CHECKPOINT,
  type Checkpoint,
  FORMAT,
  LATEST,
  newSegment,
  parseCheckpoint,
  partKey,
  reportKey,
  type Segment,
  summaryOf,
} from './checkpoint.ts';
import type { ReportDependencies } from './dependencies.ts';
import type { Kind } from './kinds.ts';
import type { ExpiredRow } from './sources/rows.ts';
import type { ReportedLocations } from './sources/source.ts';
import { type ReportStore, reportStore } from './store.ts';
import { addTally, type Summary } from './summary.ts';

/** What was read of a segment and not stored yet. */
export interface PendingPages {
  rows: ExpiredRow<Kind>[];
  scanned: number;
  readUnits: number;
  held: Readonly<Record<string, number>>;
  pages: number;
  after: Segment['after'];
  done: boolean;
}

interface FoundState {
  checkpoint: Checkpoint;
  /** The ETag of the stored checkpoint. Undefined if nothing is stored. */
  etag: string | undefined;
}

/**
 * How many reports without an accepted event are remembered: a day's reports, if there is one each quarter of an hour.
 */
const MAX_UNANNOUNCED = 96;

/** How often a run tries to store its first checkpoint. A late write of the run before may come between. */
const MAX_STORE_TRIES = 3;

/**
 * The progress of a report, as one run stores it (docs/protocols/expired.md#checkpoint). Each write replaces exactly
 * what this run wrote before. So a run that has lost its lease, for example while it was frozen, does not overwrite the
 * checkpoint of a later run.
 */
export class Progress {
  readonly #dependencies: ReportDependencies;
  readonly #store: ReportStore;
  readonly #fence: number;
  #checkpoint: Checkpoint;
  #etag: string | undefined;
  /** The write under way. The next write waits for it, because it replaces what that write stores. */
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(dependencies: ReportDependencies, fence: number, { checkpoint, etag }: FoundState) {
    this.#dependencies = dependencies;
    this.#store = reportStore(dependencies.s3, dependencies.locations.bucket);
    this.#fence = fence;
    this.#checkpoint = checkpoint;
    this.#etag = etag;
  }

  /**
   * Continues the report under way, or begins a new one.
   * @throws HoldfastError LeaseLost (a later run has begun), Throttled, Unavailable, OutcomeUnknown
   */
  static async open(dependencies: ReportDependencies, fence: number, call: Call): Promise<Progress> {
    const { s3, locations, clock, giveUpAfterMs } = dependencies;
    const store = reportStore(s3, locations.bucket);
    for (let tries = 1; tries <= MAX_STORE_TRIES; tries++) {
      const stored = await store.get(CHECKPOINT, call);
      const before = stored && parseCheckpoint(stored.text);
      const isSame = before !== undefined && isAbout(locations, before);
      if (isSame && before.fence >= fence) break; // fences of different tables cannot be compared
      const continues = isSame && before.finishedAt === null && clock.now() - before.startedAt <= giveUpAfterMs;
      if (before && !continues && !isPublished(before)) await publishReport(store, before, call);
      const checkpoint = continues ? before : newReport(dependencies, before);
      const progress = new Progress(dependencies, fence, { checkpoint, etag: stored?.etag });
      if (await progress.#write({}, call)) return progress;
    }
    throw takenOver();
  }

  get segments(): readonly Segment[] {
    return this.#checkpoint.segments;
  }

  get summary(): Summary {
    return summaryOf(this.#checkpoint, this.#dependencies.locations.bucket);
  }

  /** Whether the bus has accepted the events of all complete reports. */
  get announced(): boolean {
    return this.#checkpoint.owed.length === 0;
  }

  /**
   * Stores what was read of a segment: first its rows, and then the checkpoint that counts them.
   * @param at the index of the segment
   * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
   */
  async flush(at: number, pending: PendingPages, call: Call): Promise<void> {
    const { partRows } = this.#dependencies;
    const segment = this.#checkpoint.segments[at];
    if (!segment) throw new RangeError(`the report has no segment ${at}`);
    const [, counted = 0] = segment.runs.find(([fence]) => fence === this.#fence) ?? [];
    let parts = counted;
    for (let from = 0; from < pending.rows.length; from += partRows) {
      const lines = pending.rows.slice(from, from + partRows).map((row) => `${JSON.stringify(row)}\n`);
      const key = partKey(this.#checkpoint.reportId, segment, [this.#fence, parts++]);
      await this.#store.put(key, lines.join(''), call);
    }
    const further = withPending(segment, pending, [this.#fence, parts]);
    await this.#save(call, ({ segments }) => ({ segments: segments.with(at, further) }));
  }

  /** Completes the report after all segments were scanned. @throws HoldfastError as `flush` */
  async complete(call: Call): Promise<void> {
    await this.#save(call, ({ owed: unannounced, reportId }) => ({
      finishedAt: this.#dependencies.clock.now(),
      owed: [...unannounced, reportId].slice(-MAX_UNANNOUNCED),
    }));
    await publishReport(this.#store, this.#checkpoint, call);
  }

  /**
   * Sends the events of unannounced reports to the bus, the oldest first. If the bus refuses an event, the next run
   * tries again. So an event can arrive twice, but is not lost.
   * @throws HoldfastError as `flush`
   */
  async announce(call: Call): Promise<void> {
    const unannounced = [...this.#checkpoint.owed];
    const sent: string[] = [];
    for (const reportId of unannounced) {
      const stored = await this.#store.get(reportKey(reportId), call);
      const report = stored && parseCheckpoint(stored.text);
      const summary = report && summaryOf(report, this.#dependencies.locations.bucket);
      if (summary && !(await this.#sendEvent(summary, call))) break;
      sent.push(reportId); // even if the lifecycle has deleted the report: then there is nothing to announce
    }
    if (sent.length === 0) return;
    await this.#save(call, (standing) => ({ owed: standing.owed.filter((reportId) => !sent.includes(reportId)) }));
  }

  /**
   * Sends the event of a report. A failure does not stop the run: the answer (`announced`) and the log show it.
   * @returns whether the bus has accepted the event
   */
  #sendEvent(summary: Summary, { signal }: Call): Promise<boolean> {
    return this.#dependencies.announce(summary, signal).then(
      () => true,
      () => false,
    );
  }

  async #save(call: Call, change: (standing: Checkpoint) => Partial<Checkpoint>): Promise<void> {
    const saved = this.#writing.then(async () => {
      if (!(await this.#write(change(this.#checkpoint), call))) throw takenOver();
    });
    this.#writing = saved.catch(() => undefined); // the caller of #save handles the error
    return saved;
  }

  /**
   * Stores a changed checkpoint.
   * @returns false if another run has replaced the checkpoint; then this object stays as it was
   */
  async #write(change: Partial<Checkpoint>, call: Call): Promise<boolean> {
    const { sequence } = this.#checkpoint;
    const next = { ...this.#checkpoint, ...change, fence: this.#fence, sequence: sequence + 1 };
    const replacement = { text: JSON.stringify(next), before: this.#etag };
    const replaced = await this.#store.replace(CHECKPOINT, replacement, call);
    if (!replaced.won) return false;
    this.#checkpoint = next;
    this.#etag = replaced.etag;
    return true;
  }
}

function withPending(segment: Segment, pending: PendingPages, run: Segment['runs'][number]): Segment {
  const [fence, parts] = run;
  const expired = structuredClone(segment.expired);
  for (const { kind, ageSeconds } of pending.rows) addTally(expired, kind, { count: 1, oldestAgeSeconds: ageSeconds });
  const earlier = segment.runs.filter(([other]) => other !== fence);
  return {
    ...segment,
    done: pending.done,
    ...(pending.after !== undefined && { after: pending.after }),
    scanned: segment.scanned + pending.scanned,
    readUnits: segment.readUnits + pending.readUnits,
    held: addHeld(segment.held, pending.held),
    expired,
    neverDeletable: segment.neverDeletable + pending.rows.filter(({ neverDeletable }) => neverDeletable).length,
    runs: parts > 0 ? [...earlier, run] : earlier,
  };
}

/**
 * Whether a checkpoint is about the same tables and bucket. It may be about others after a new deployment, or if two
 * deployments share the bucket, and then its positions mean nothing.
 */
const isAbout = (locations: ReportedLocations, { locations: reported }: Checkpoint) =>
  Object.entries(locations).every(([name, location]) => reported?.[name as keyof ReportedLocations] === location);

/** Whether a report is surely stored under its own key: a report is stored there before it is announced. */
const isPublished = ({ finishedAt, owed: unannounced, reportId }: Checkpoint) =>
  finishedAt !== null && !unannounced.includes(reportId);

function newReport(
  { clock, ids, locations, segments, sources }: ReportDependencies,
  before: Checkpoint | undefined,
): Checkpoint {
  const startedAt = clock.now();
  const deployed = Object.entries(sources).filter(([, source]) => source.location(locations) !== undefined);
  return {
    format: FORMAT,
    reportId: `${new Date(startedAt).toISOString().replaceAll(/[-:.]/g, '')}-${ids.uuid().slice(0, 8)}`,
    startedAt,
    finishedAt: null,
    locations,
    fence: 0,
    sequence: before?.sequence ?? 0,
    owed: before?.owed ?? [],
    segments: deployed.flatMap(([name, { segmented }]) => {
      const of = segmented ? segments : 1;
      return Array.from({ length: of }, (_, segment) => newSegment(name, segment, of));
    }),
  };
}

/**
 * Stores a complete or abandoned report under its own key, where readers find it. A complete report is also stored as
 * LATEST.
 */
async function publishReport(store: ReportStore, checkpoint: Checkpoint, call: Call): Promise<void> {
  const text = JSON.stringify(checkpoint);
  const { reportId, finishedAt } = checkpoint;
  await store.put(reportKey(reportId), text, call);
  if (finishedAt === null) return;
  for (;;) {
    const latest = await store.get(LATEST, call);
    const standing = latest && parseCheckpoint(latest.text)?.reportId;
    // The id of a report begins with its start, so a higher id belongs to a later report.
    if (standing !== undefined && standing >= reportId) return;
    if ((await store.replace(LATEST, { text, before: latest?.etag }, call)).won) return;
  }
}

/** The error if another run has received the lease and replaced the checkpoint. That run continues the report. */
const takenOver = () =>
  new HoldfastError('LeaseLost', 'a later run continues the report', {
    key: REPORT_LEASE.key,
    reason: 'taken',
    holder: null,
  });

/** The lease that a run holds, so that one run at a time works. */
export const REPORT_LEASE = { key: 'holdfast:report', holder: 'report', ttlSeconds: 60 };
