import type { Caller, WorldFacts } from '../caller.ts';
import { type Capability, stuck } from '../capability.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { FENCE_RETENTION_SECONDS } from '../service.ts';
import { deletedBy } from './expiry.model.ts';

interface Memory {
  reports: string[];
}

const memoryOf = (caller: Caller) => caller.memory<Memory>('expiry', (previous) => previous ?? { reports: [] });

/** Reports and cleans up, while others use what may expire. */
export const expiry: Capability = {
  name: 'expiry',
  among: ['leases', 'permits', 'commits', 'queue'],

  /** Callers do nothing here. The sweeper acts beside the callers of other capabilities. */
  async act() {},

  others: [{ name: 'sweeper', steps: 5, act: sweep }],

  async settle(caller) {
    await caller.sleep(FENCE_RETENTION_SECONDS * 1000);
    await caller.call('report', {});
    await caller.call('clean', { dryRun: false, olderThanSeconds: 0 });
    await caller.call('readExpired', {});
  },

  check(history, facts) {
    const entries = history.filter(({ call }) => call === 'report' || call === 'clean' || call === 'readExpired');
    return [
      ...(facts.withinBound ? entries.flatMap((entry) => liveRemoved(entry, history, facts)) : []),
      ...stuck(entries, 'reports and clean-ups work again'),
    ];
  },
};

async function sweep(caller: Caller): Promise<void> {
  const { reports } = memoryOf(caller);
  const dice = caller.random();
  if (dice < 0.75) {
    const answer = await caller.call('report', {});
    if (answer?.outcome === 'ok') reports.push(String(answer.body.reportId));
  }
  // In the meantime, others may use the reported keys again.
  await caller.sleep(caller.random() < 0.6 ? 20_000 + caller.random() * 80_000 : caller.random() * 3000);
  if (caller.random() < 0.2) return void (await caller.call('readExpired', { limit: '5' }));
  const reportId = reports.length > 0 && caller.random() < 0.5 ? { reportId: caller.pick(reports) } : {};
  const olderThanSeconds = caller.pick([0, 0, 1, 90]);
  await caller.call('clean', { dryRun: caller.random() < 0.1, olderThanSeconds, ...reportId });
}

/** Each deleted record had expired for as long as fences are kept, and no answer had shown a later expiry. */
function liveRemoved(entry: Entry, history: readonly Entry[], { spreadMs }: WorldFacts): Violation[] {
  if (entry.call !== 'clean' || entry.input.dryRun === true || !entry.answeredAt) return [];
  const [calledMs, answeredMs] = [entry.calledAt.ms + BEGIN, entry.answeredAt.ms + BEGIN];
  return deletedBy(entry).flatMap(({ kind, key, expiredAt }) => {
    const promise = 'the clean-up removes no live record';
    if (answeredMs - Date.parse(expiredAt) < FENCE_RETENTION_SECONDS * 1000 - spreadMs)
      return [{ promise, detail: `the record of ${Object.values(key)[0]} had just expired`, entries: [entry] }];
    if (!kind.endsWith('Lease')) return [];
    const ofKey = history.filter(({ input }) => input.key === key.key);
    const live = ofKey.find(
      (one) =>
        SHOWS_EXPIRY.has(one.call) &&
        one.outcome === 'ok' &&
        one.answeredAt !== undefined &&
        one.answeredAt.moment < entry.calledAt.moment &&
        Date.parse(String(one.body?.expiresAt)) - spreadMs > answeredMs &&
        Date.parse(String(one.body?.expiresAt)) > calledMs &&
        !hasEnded(ofKey, one),
    );
    return live ? [{ promise, detail: `${live.actor} held ${key.key}`, entries: [live, entry] }] : [];
  });
}

const SHOWS_EXPIRY = new Set(['acquire', 'heartbeat', 'task']);

/** Whether a caller may have ended the grant. */
const hasEnded = (entries: readonly Entry[], { body, actor }: Entry) =>
  entries.some(
    ({ call, input, actor: other }) =>
      (call === 'release' && input.leaseId === body?.leaseId) ||
      (call === 'breakLease' && input.fence === body?.fence) ||
      (call === 'executionEnds' && other === actor) ||
      call.startsWith('rust'),
  );
