import { readHealth } from '../../../functions/contract/health.ts';
import { whoami } from '../../../functions/contract/whoami.ts';
import { localPage } from '../../../local/console.ts';
import { breakGrant } from '../../../shared/locks/calls/break.ts';
import { capKey } from '../../../shared/locks/calls/cap.ts';
import type { CapInput } from '../../../shared/locks/calls/inputs.ts';
import { DEFAULT_QUOTAS } from '../../../shared/locks/dependencies.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { call } from '../emulators/aws.ts';
import { startApi } from '../stack/api.ts';
import { commitWorld } from './commits.ts';
import { expiryWorld, lease, N, S } from './expiry.ts';
import { lineWorld } from './line.ts';
import { nameserviceWorld } from './nameservice.ts';
import { onceHandlers } from './once.ts';
import { rateHandlers } from './rates.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** The record of a lease of ten minutes. */
function leaseOf(key: string, holder: string, expiresAt: number) {
  const { h, ...record } = lease(key, expiresAt);
  const [ttlMs, grantedAt] = [N(10 * MINUTE_MS), N(expiresAt - 10 * MINUTE_MS)];
  return { ...record, h: { M: { ...h?.M, h: S(holder), t: ttlMs, a: grantedAt, b: grantedAt } } };
}

/** Everything that `npm start` serves, with the page, over tables of its own, on the clock of this machine. */
export async function consoleWorld() {
  const clock = systemClock;
  const [queue, commits, names] = await Promise.all([
    lineWorld({ clock, quotas: { ...DEFAULT_QUOTAS, maxHeldCalls: 100 } }),
    commitWorld({ clock }),
    nameserviceWorld({ clock }),
  ]);
  const locations = {
    leasesTable: queue.table,
    waitersTable: queue.dependencies.waitersTable,
    commitsTable: commits.table,
    nameserviceTable: names.table,
    bucket: commits.bucket,
  };
  const expired = await expiryWorld({ clock, locations });
  const handlers = {
    ...queue.handlers,
    ...onceHandlers(queue.dependencies),
    ...rateHandlers(queue.dependencies),
    ...commits.handlers,
    ...names.handlers,
    ...expired.handlers(),
    whoami: whoami({}),
    readHealth: readHealth(),
  };
  const start = (port = 0) => startApi(handlers, { port, page: localPage('http://127.0.0.1:3000') });
  let api = await start();
  const { url } = api;
  const post = async (path: string, payload: object) => {
    const response = await fetch(`${url}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(payload),
    });
    return (await response.json()) as Record<string, unknown> & { fence: number; ticket: string };
  };
  return {
    url,
    post,
    get: async (path: string) => (await fetch(`${url}/v1/${path}`)).json() as Promise<Record<string, unknown>>,
    acquire: (key: string, more: object = {}) => post('leases/acquire', { key, holder: 'worker-1', ...more }),
    /** A lease or a permit that lasts as long as its execution, which runs. */
    holdBound: (key: string, more: object = {}) => {
      const execution = `arn:aws:states:us-east-1:000000000000:execution:machine:${key.replace('/', '-')}`;
      queue.steps.executions.set(execution, 'RUNNING');
      const { token: taskToken } = queue.steps.newTask();
      return post('leases/acquire', { key, holder: 'wf', execution, bound: true, taskToken, ...more });
    },
    /** Parks a task, which a test can check afterwards. */
    park: async (key: string, holder: string, more: object = {}) => {
      const task = queue.steps.newTask();
      await post('leases/acquire', { key, holder, taskToken: task.token, ...more });
      return task;
    },
    /** Breaks a lease or a permit as an operator that an API has authenticated. */
    breakAs: (principal: string, input: { key: string; fence: number; wait?: boolean }) =>
      breakGrant(queue.dependencies)(input, call({ principal })),
    /** Caps or pauses a key, or lifts the cap, as an operator that an API has authenticated. */
    capAs: (principal: string, input: CapInput) => capKey(queue.dependencies)(input, call({ principal })),
    /** A lease that its holder let expire three hours ago. */
    abandon: (key: string, holder: string) => queue.putRaw(leaseOf(key, holder, clock.now() - 3 * HOUR_MS)),
    /** A lease that its holder has had for five minutes, on a key whose turns take one minute. So the second waiter in line sleeps. */
    holdLong: (key: string, holder: string) =>
      queue.putRaw({ ...leaseOf(key, holder, clock.now() + 5 * MINUTE_MS), usual_ms: N(MINUTE_MS) }),
    /** Writes many held leases without calls. */
    hold: async (count: number) => {
      const expiresAt = clock.now() + 10 * MINUTE_MS;
      const one = (at: number) => leaseOf(`many/${String(at).padStart(4, '0')}`, `worker-${at}`, expiresAt);
      for (let at = 0; at < count; at += 50)
        await Promise.all(
          Array.from({ length: Math.min(50, count - at) }, (_, index) => queue.putRaw(one(at + index))),
        );
    },
    /** A commit whose writer has crashed on its way to S3. */
    beginCommit: (path: string) =>
      commits.putRecord({
        path: { S: path },
        etag: { S: '*' },
        generation: { N: '0' },
        timeout: { N: '20000' },
        ttl: { N: String(Math.ceil(clock.now() / 1000) + 3600) },
        commit_id: { S: 'job-7' },
        written_at: { N: String(clock.now()) },
      }),
    report: () => expired.report(),
    /** Starts the service again, as a deployment does. */
    restart: async (whileDown: () => Promise<void>) => {
      await api.stop();
      await whileDown();
      api = await start(Number(new URL(url).port));
    },
    stop: async () => {
      await api.stop();
      await queue.steps.stop();
    },
  };
}

export type ConsoleWorld = Awaited<ReturnType<typeof consoleWorld>>;
