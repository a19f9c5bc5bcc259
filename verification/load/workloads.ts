import type { ApiClient, Tally } from './client.ts';

/** One of the 64 who call at the same time. */
interface Worker {
  id: number;
  api: ApiClient;
  tally: Tally;
  random: () => number;
}

/** What all of them share, and so can find a wrong answer by: they are in one process, with one clock. */
export class Knowledge {
  /** Who holds a lease, by key. */
  readonly holders = new Map<string, number>();
  /** The highest fence granted, by key. */
  readonly fences = new Map<string, number>();
  /** Who replaced what, by path and ETag. */
  readonly winners = new Map<string, string>();
  /** The highest t that was acknowledged, by alias. */
  readonly heads = new Map<string, number>();
}

type Workload = (worker: Worker, known: Knowledge) => Promise<void>;

const FEW = 4;
const MANY = 500;

/** Half of all calls meet on few names, half are spread over many. */
const nameOf = ({ random }: Worker, what: string) =>
  random() < 0.5 ? `${what}-few-${Math.floor(random() * FEW)}` : `${what}-many-${Math.floor(random() * MANY)}`;

const underALease: Workload = async (worker, known) => {
  const { api, tally, id } = worker;
  const key = nameOf(worker, 'load');
  const request = { key, holder: `worker ${id}`, requestId: crypto.randomUUID(), ttlSeconds: 30 };
  const granted = await api.post('/v1/leases/acquire', request, ['LeaseHeld']);
  if (granted.status !== 201) return;
  const { leaseId, fence } = granted.body as { leaseId: string; fence: number };
  tally.check(!known.holders.has(key), 'a second holder', key, known.holders.get(key), id);
  tally.check(fence > (known.fences.get(key) ?? 0), 'a fence that does not rise', key, known.fences.get(key), fence);
  known.holders.set(key, id);
  known.fences.set(key, fence);
  const beat = await api.post('/v1/leases/heartbeat', { key, leaseId }, []);
  tally.check(beat.status !== 200 || beat.body.fence === fence, 'a heartbeat of another grant', beat.body);
  const seen = await api.get('/v1/leases', { key });
  tally.check(
    seen.status !== 200 || (seen.body.state === 'held' && seen.body.fence === fence),
    'a lease that is not held',
    seen.body,
  );
  known.holders.delete(key);
  const released = await api.post('/v1/leases/release', { key, leaseId }, []);
  tally.check(
    released.status !== 200 || released.body.released === true,
    'a release that found nothing',
    released.body,
  );
};

const compareAndSwap: Workload = async (worker, known) => {
  const { api, tally } = worker;
  const path = nameOf(worker, 'load/object');
  const seen = await api.get('/v1/commits', { path });
  if (seen.status !== 200) return;
  const etag = seen.body.etag as string | null;
  const commitId = crypto.randomUUID();
  const precondition = etag === null ? { ifNoneMatch: '*' } : { ifMatch: etag };
  const commit = { path, ...precondition, body: commitId, commitId };
  const { status, body } = await api.post('/v1/commits', commit, ['PreconditionFailed']);
  if (status === 412) tally.check(body.etag !== etag, 'a refusal with the ETag that was expected', body);
  if (status !== 201) return;
  const place = `${path} ${etag}`;
  tally.check(!known.winners.has(place), 'two winners for one precondition', place, known.winners.get(place), commitId);
  known.winners.set(place, commitId);
};

const publishCommit: Workload = async (worker, known) => {
  const { api, tally } = worker;
  const alias = nameOf(worker, 'load');
  const before = known.heads.get(alias);
  if (before === undefined) {
    const created = await api.post('/v1/nameservice/publish', { op: 'initLedger', alias }, ['AlreadyExists']);
    if (created.status < 500 && created.status !== 429) known.heads.set(alias, known.heads.get(alias) ?? 0);
    return;
  }
  const t = before + 1 + Math.floor(worker.random() * 3);
  const publish = { op: 'publishCommit', alias, address: `address ${t}`, t };
  const { status, body } = await api.post('/v1/nameservice/publish', publish, []);
  if (status === 200) {
    const { t: current } = body.current as { t: number };
    tally.check(
      body.outcome === 'updated' ? current === t : current >= t,
      'a publish that is told wrongly',
      publish,
      body,
    );
    known.heads.set(alias, Math.max(known.heads.get(alias) ?? 0, current));
  }
  const least = known.heads.get(alias) ?? 0;
  const seen = await api.get('/v1/nameservice', { alias });
  const head = (seen.body.commit as { t: number } | undefined)?.t ?? 0;
  tally.check(seen.status !== 200 || head >= least, 'a read older than what was acknowledged', alias, least, seen.body);
};

/** A task whose execution has gone parks behind a lease and is taken out again, or is skipped by the caller that gives the lease back. */
const parkBehind: Workload = async (worker) => {
  const { api, tally, id } = worker;
  const key = nameOf(worker, 'load');
  const request = { key, holder: `parker ${id}`, taskToken: `load-${crypto.randomUUID()}`, ttlSeconds: 30 };
  const parked = await api.post('/v1/leases/acquire', request, []);
  if (parked.status !== 201) return;
  const { ticket } = parked.body as { ticket: string };
  tally.check(typeof ticket === 'string', 'a place without a ticket', parked.body);
  const { status, body } = await api.post('/v1/leases/cancel', { key, ticket }, []);
  tally.check(status !== 200 || body.cancelled === false, 'a task that waits though there is none', body);
};

const report: Workload = async ({ api, tally }) => {
  const { status, body } = await api.post('/v1/expired/report', {}, ['LeaseHeld', 'LeaseLost']);
  tally.check(status >= 400 || typeof body.reportId === 'string', 'a report without an id', body);
};

const badRequest: Workload = async ({ api, tally }) => {
  const { status, body } = await api.post('/v1/leases/acquire', { key: '', holder: 1, surplus: true }, [
    'InvalidRequest',
  ]);
  const paths = (body.issues as { path: string }[] | undefined)?.map(({ path }) => path).sort();
  tally.check(status === 400 && String(paths) === 'holder,key,surplus', 'a bad request that was not refused', body);
};

/** By how often each is called. */
export const MIX: readonly Workload[] = [
  ...Array<Workload>(24).fill(underALease),
  ...Array<Workload>(24).fill(compareAndSwap),
  ...Array<Workload>(24).fill(publishCommit),
  ...Array<Workload>(4).fill(parkBehind),
  ...Array<Workload>(4).fill(badRequest),
  report,
];
