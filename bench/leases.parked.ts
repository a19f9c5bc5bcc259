import { dynamodbClient } from '../shared/aws/dynamodb.ts';
import { leasesFromEnvironment } from '../shared/leases/environment.ts';
import { releaser } from '../shared/leases/release.ts';
import { startStepFunctions } from '../test/support/step-functions.ts';
import { builtFunction } from './functions.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface ParkedTask {
  repetitions: number;
}

export interface ParkedResult {
  /** Milliseconds of the first hand-off of the process. */
  first: number;
  /** Of the others. */
  waits: number[];
  /** The commands of one hand-off. */
  requests: string[];
  /** Requests to Step Functions, divided by parked acquires. */
  transitions: number;
}

const { repetitions } = await receiveTask<ParkedTask>();
const steps = await startStepFunctions();
process.env.AWS_ENDPOINT_URL_SFN = steps.endpoint;
const acquire = await builtFunction('leases/acquire');
const release = await builtFunction('leases/release');

const waits: number[] = [];
while (waits.length <= repetitions) {
  if (waits.length % 100 === 0) sendProgress(`parked: ${waits.length} of ${repetitions}`);
  waits.push(await handoff(`parked ${waits.length}`, (grant) => release(grant)));
}
const transitions = steps.requests.length / waits.length;
const [first = Number.NaN, ...others] = waits;
sendResult({ first, waits: others, requests: await requestsOfOne(), transitions });
await steps.stop();

interface Grant {
  key: string;
  leaseId: string;
}

/** @returns milliseconds from sending the release to the grant's arrival at Step Functions */
async function handoff(key: string, letGo: (grant: Grant) => Promise<unknown>): Promise<number> {
  const { leaseId } = await acquire<Grant>({ key, holder: 'first', ttlSeconds: 60 });
  await acquire({ key, holder: 'parked', taskToken: steps.newTask().token });
  const granted = new Promise<number>((resolve) => {
    steps.onGrant = () => resolve(performance.now());
  });
  const releasedAt = performance.now();
  await letGo({ key, leaseId });
  return (await granted) - releasedAt;
}

/** The same code from its source, with a client that tells what it sends. */
async function requestsOfOne(): Promise<string[]> {
  const sent: string[] = [];
  const dynamodb = dynamodbClient();
  dynamodb.middlewareStack.add(
    (next, context) => (args) => {
      sent.push(String(context.commandName).replace('Command', ''));
      return next(args);
    },
    { step: 'initialize' },
  );
  const call = { signal: new AbortController().signal, timeLeftMs: () => 10_000 };
  const releaseBySource = releaser({ ...leasesFromEnvironment(), dynamodb });
  await handoff('counted', (grant) => releaseBySource(grant, call));
  return sent;
}
