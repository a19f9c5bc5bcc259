/**
 * A process that calls every function with large payloads of many shapes, one line of JSON for each. Memory is measured
 * by the high-water mark of the whole process, so that nothing can hide, and with a small young generation, so that
 * garbage counts for little.
 */
import { commit } from '../../functions/commits/commit.ts';
import { readInFlight } from '../../functions/commits/in-flight.ts';
import { readCommit } from '../../functions/commits/read.ts';
import { resetFence } from '../../functions/commits/reset-fence.ts';
import { stageUpload } from '../../functions/commits/stage-upload.ts';
import { readHealth } from '../../functions/contract/health.ts';
import { readContract } from '../../functions/contract/read.ts';
import { whoami } from '../../functions/contract/whoami.ts';
import { clean } from '../../functions/expiry/clean.ts';
import { readExpired } from '../../functions/expiry/read.ts';
import { report } from '../../functions/expiry/report.ts';
import { acquire } from '../../functions/leases/acquire.ts';
import { breakLease } from '../../functions/leases/break.ts';
import { cancelWaiter } from '../../functions/leases/cancel.ts';
import { executionEnded } from '../../functions/leases/execution-ended.ts';
import { heartbeat } from '../../functions/leases/heartbeat.ts';
import { readLeases } from '../../functions/leases/read.ts';
import { release } from '../../functions/leases/release.ts';
import { repairQueues } from '../../functions/leases/repair.ts';
import { withdraw } from '../../functions/leases/withdraw.ts';
import { publish } from '../../functions/nameservice/publish.ts';
import { readNames } from '../../functions/nameservice/read.ts';
import { repairNames } from '../../functions/nameservice/repair.ts';
import { onceBegin } from '../../functions/once/begin.ts';
import { onceComplete } from '../../functions/once/complete.ts';
import { onceForget } from '../../functions/once/forget.ts';
import { readOnce } from '../../functions/once/read.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { httpEvent, lambdaContext, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { SHAPES } from './shapes.ts';

/** What the process is to send. */
export interface Sent {
  sizeMiB: number;
  /** Names of SHAPES. */
  shapes: string[];
  /** The functions; all of them where it is empty. */
  only: string[];
}

/** A call, and what became of it. */
export interface LargeCall {
  name: string;
  through: 'http' | 'task';
  shape: string;
  outcome: string;
  status: number | undefined;
  answerBytes: number;
  /** By how much the process has needed more memory than ever before. */
  grewMiB: number;
}

/** Each with the fields that its rules are about. */
const FUNCTIONS: [name: string, method: 'GET' | 'POST', handler: LambdaHandler, fields: string[]][] = [
  ['acquire', 'POST', acquire(), ['key', 'holder', 'data', 'requestId', 'taskToken', 'execution']],
  ['heartbeat', 'POST', heartbeat(), ['key', 'leaseId', 'ttlSeconds']],
  ['release', 'POST', release(), ['key', 'leaseId']],
  ['breakLease', 'POST', breakLease(), ['key', 'fence']],
  ['readLeases', 'GET', readLeases(), ['key', 'prefix', 'cursor', 'limit']],
  ['cancelWaiter', 'POST', cancelWaiter(), ['key', 'ticket']],
  ['withdraw', 'POST', withdraw(), ['key', 'requestId', 'holder']],
  ['onceBegin', 'POST', onceBegin(), ['key', 'holder', 'slot', 'per', 'data', 'requestId', 'inputHash', 'execution']],
  ['onceComplete', 'POST', onceComplete(), ['key', 'leaseId', 'result']],
  ['onceForget', 'POST', onceForget(), ['key', 'fence']],
  ['readOnce', 'GET', readOnce(), ['key', 'prefix', 'cursor', 'limit']],
  ['repairQueues', 'POST', repairQueues(), ['key']],
  ['executionEnded', 'POST', executionEnded(), ['execution', 'again']],
  ['report', 'POST', report(), []],
  ['readExpired', 'GET', readExpired(), ['reportId', 'kind', 'cursor']],
  ['clean', 'POST', clean(), ['kinds', 'reportId', 'cursor', 'olderThanSeconds']],
  ['commit', 'POST', commit(), ['path', 'body', 'metadata', 'ifMatch', 'commitId', 'contentType', 'fence', 'source']],
  ['readCommit', 'GET', readCommit(), ['path']],
  ['stageUpload', 'POST', stageUpload(), ['contentType', 'sizeBytes']],
  ['publish', 'POST', publish(), ['op', 'alias', 'dependencies', 'config', 'expected', 'next', 'address']],
  ['resetFence', 'POST', resetFence(), ['path', 'fence', 'expectedFence']],
  ['repairNames', 'POST', repairNames(), ['op', 'alias', 'expected', 'next']],
  ['readContract', 'GET', readContract(), []],
  ['readInFlight', 'GET', readInFlight(), ['prefix', 'cursor', 'limit']],
  ['whoami', 'GET', whoami(), []],
  ['readHealth', 'GET', readHealth(), []],
  ['readNames', 'GET', readNames(), ['alias', 'prefix', 'cursor']],
];

/** Without these a wrong field would be missed: the union of operations looks at `op` first. */
const BASE: Record<string, object> = {
  publish: { op: 'publishGraphSource', alias: 'a:b', sourceType: 's', config: {}, dependencies: [] },
  commit: { path: '/', ifNoneMatch: '*', body: '' }, // never sent: a body of 2 MiB of escapes may be one to commit
  acquire: { key: 'k', holder: 'h' },
  clean: {},
};

const MIB = 1024 ** 2;
const { sizeMiB, shapes, only }: Sent = JSON.parse(process.argv[2] ?? '');
const bytes = sizeMiB * MIB;
const called = FUNCTIONS.filter(([name]) => only.length === 0 || only.includes(name));
/** The first ones of each function; the largest values take long to make. */
const MAX_FIELDS = bytes > 4 * MIB ? 3 : 9;

/** Flat, as a body arrives, and not a rope of what it was made from. */
const flat = (text: string) => Buffer.from(text).toString();

/** Every call notes by how much the process has needed more memory than ever before. */
async function measure(call: Pick<LargeCall, 'name' | 'through' | 'shape'>, act: () => ReturnType<typeof throughTask>) {
  // The garbage of many calls is no need of one; to collect it before each of them would take minutes.
  if (process.memoryUsage().heapUsed > heapOfAll + 20 * MIB) globalThis.gc?.();
  const before = process.resourceUsage().maxRSS;
  const { outcome, status, body } = await act();
  const grewMiB = (process.resourceUsage().maxRSS - before) / 1024;
  const done: LargeCall = { ...call, outcome, status, answerBytes: JSON.stringify(body).length, grewMiB };
  process.stdout.write(`${JSON.stringify(done)}\n`);
}

// What loading costs, and what any call does, is no part of it.
for (const [, method, handler] of called)
  await throughHttp(handler, httpEvent(method, { body: '{"x":1}', query: 'x=1' }));

let heapOfAll = 0;
for (const [shape, make] of Object.entries(SHAPES).filter(([name]) => shapes.includes(name))) {
  const value = flat(make(bytes));
  const encoded = Buffer.from(value).toString('base64');
  const query = encodeURIComponent(value.slice(0, bytes / 8));
  const parsed: unknown = JSON.parse(value);
  globalThis.gc?.();
  heapOfAll = process.memoryUsage().heapUsed;
  for (const [name, method, handler, fields] of called) {
    const http = (event: Parameters<typeof httpEvent>[1], what = shape) =>
      measure({ name, through: 'http', shape: what }, () => throughHttp(handler, httpEvent(method, event)));
    const task = (payload: unknown, what = shape) =>
      measure({ name, through: 'task', shape: what }, () => throughTask(handler, payload, lambdaContext()));
    await task(parsed);
    if (method === 'POST') await http({ body: value });
    if (method === 'POST') await http({ body: encoded, base64: true }, `${shape}, as base64`);
    for (const field of [...fields.slice(0, MAX_FIELDS), 'unknown']) {
      const what = `${field}: ${shape}`;
      const base = Object.entries(BASE[name] ?? {}).filter(([other]) => other !== field);
      await task(Object.fromEntries([...base, [field, parsed]]), what);
      const others = base.map(([other, held]) => `${JSON.stringify(other)}:${JSON.stringify(held)},`).join('');
      await http(
        method === 'GET' ? { query: `${field}=${query}` } : { body: flat(`{${others}"${field}":${value}}`) },
        what,
      );
    }
  }
}
