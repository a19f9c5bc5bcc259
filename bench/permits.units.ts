import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { startCounter } from './counter.ts';
import { freeKey, seed } from './seed.ts';
import { receiveTask, sendResult } from './worker.ts';

export interface UnitsTask {
  dynamodbEndpoint: string;
  /** How many callers have a permit, including the one whose calls are counted. Ascending. */
  holders: number[];
}

export interface UnitsResult {
  /** How many requests an acquire and a release send together. */
  requests: number;
  units: Units[];
}

/** The write units that the calls of the last caller take. */
interface Units {
  holders: number;
  acquire: number;
  heartbeat: number;
  release: number;
  /** An acquire that is refused because the key is full. */
  refusal: number;
}

const task = await receiveTask<UnitsTask>();
const counter = await startCounter(task.dynamodbEndpoint);
process.env.AWS_ENDPOINT_URL_DYNAMODB = counter.endpoint;
const { acquire, heartbeat, release } = await import('./locks.domain.ts');

const KEY = 'units';
await seed(new DynamoDBClient({}), { table: process.env.LEASES_TABLE ?? '', count: 1, item: () => freeKey(KEY) });
const ENOUGH = 200;

function take(nth: number, limit = ENOUGH) {
  const holder = `worker-${String(nth).padStart(3, '0')}`;
  return acquire({ key: KEY, holder, ttlSeconds: 600, waitSeconds: 0, limit });
}

async function unitsOf(act: () => Promise<unknown>): Promise<number> {
  counter.take();
  await act();
  return counter.take().writeUnits;
}

async function requests(): Promise<number> {
  counter.take();
  const { leaseId } = await take(0);
  await release(KEY, leaseId);
  return counter.take().requests;
}

/** The last caller releases its permit and acquires it again, so that each call meets this many holders. */
async function measureUnits(holders: number): Promise<Units> {
  let last = await take(holders);
  const refusal = () =>
    take(0, holders).then(
      () => Promise.reject(new Error(`${holders} of ${holders} permits, and one more was granted`)),
      (error: { code?: string }) => (error.code === 'LeaseHeld' ? undefined : Promise.reject(error)),
    );
  return {
    holders,
    heartbeat: await unitsOf(() => heartbeat(KEY, last.leaseId)),
    refusal: await unitsOf(refusal),
    release: await unitsOf(() => release(KEY, last.leaseId)),
    acquire: await unitsOf(async () => {
      last = await take(holders);
    }),
  };
}

const result: UnitsResult = { requests: await requests(), units: [] };
let taken = 0;
for (const holders of task.holders) {
  for (; taken < holders - 1; taken++) await take(taken);
  result.units.push(await measureUnits(holders));
  taken = holders;
}
sendResult(result);
await counter.stop();
