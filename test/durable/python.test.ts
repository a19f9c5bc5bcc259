import { readFile } from 'node:fs/promises';
import { GetDurableExecutionCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { REGION } from '../../infrastructure/logical-ids.ts';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { hasRunner, type StartBackend, startDouble, startRunner } from '../support/emulators/durable-functions.ts';
import { hasDurablePython, pythonFunction } from '../support/programs/python-function.ts';
import { lambdaContext } from '../support/stack/adapters.ts';
import { startApi } from '../support/stack/api.ts';
import { isFull } from '../support/time/rounds.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { rateHandlers } from '../support/worlds/rates.ts';

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };

/** `holdfast.durable` in handlers of AWS's SDK for Python, over a backend of durable functions and the service. */
function durablePython(startBackend: StartBackend): void {
  let world: Awaited<ReturnType<typeof leaseWorld>>;
  let backend: Awaited<ReturnType<StartBackend>>;
  let api: Awaited<ReturnType<typeof startApi>>;
  let python: Awaited<ReturnType<typeof pythonFunction>>;
  let lambda: LambdaClient;
  let holdfast: Holdfast;
  let keys = 0;
  const newKey = () => `python/${++keys}`;

  beforeAll(async () => {
    python = await pythonFunction();
    backend = await startBackend(
      (event) => python.invoke(event),
      ({ execution, status, endedAt }) =>
        world.handlers.executionEnded({ execution, status, stopDate: endedAt }, lambdaContext()),
    );
    const local = { endpoint: backend.endpoint, region: REGION, credentials: CREDENTIALS };
    world = await leaseWorld({
      clock: systemClock,
      durableFunctions: async () => durableFunctions(local),
      executions: { ...ANY_EXECUTION, durableFunctions: '*' },
      clockSkewMs: 0,
    });
    lambda = new LambdaClient(local);
    api = await startApi({ ...world.handlers, ...rateHandlers(world.dependencies) });
    await python.start(await readFile('test/durable/python.py', 'utf8'), { api: api.url, lambda: backend.endpoint });
    holdfast = new Holdfast({ endpoint: api.url, holder: 'test' });
  }, 60_000);
  afterAll(async () => {
    await python?.stop();
    await backend?.stop();
    await api?.stop();
    lambda?.destroy();
  });

  const start = (work: string, key: string) => backend.start(JSON.stringify({ work, key }));
  const end = async (DurableExecutionArn: string) => {
    const describe = () => lambda.send(new GetDurableExecutionCommand({ DurableExecutionArn }));
    await expect.poll(async () => (await describe()).Status, { timeout: 60_000, interval: 20 }).not.toBe('RUNNING');
    return describe();
  };
  const resultOf = async (arn: string) => JSON.parse((await end(arn)).Result ?? 'null');
  const waiting = async (key: string) => (await holdfast.readLease(key)).waiting;
  const stateOf = async (key: string) => (await holdfast.readLease(key)).state;

  it('a Python execution waits in line and holds the lease while it is suspended', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    const arn = await start('steps', key);
    await expect.poll(() => waiting(key), { timeout: 20_000 }).toBe(1);
    await first.release();
    const [inStep, fence, holder, replays] = await resultOf(arn);
    expect([inStep === fence, fence > first.fence, holder]).toEqual([true, true, `durable/${arn.split('/').at(-2)}`]);
    expect(replays).toBeGreaterThan(1);
    expect(await stateOf(key)).toBe('released');
  });

  it('LeaseHeld reaches a Python handler with its class and fields, after park_seconds', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    const arn = await start('short', key);
    await expect.poll(() => waiting(key), { timeout: 20_000 }).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await world.handlers.repairQueues({ key }, lambdaContext());
    expect(await resultOf(arn)).toMatchObject({ class: 'LeaseHeld', code: 'LeaseHeld', key, holder: 'test' });
    await first.release();
  });

  it('a Python body that fails releases its lease, and its error ends the execution', async () => {
    const key = newKey();
    const { Status, Error: error } = await end(await start('failing', key));
    expect([Status, error?.ErrorMessage]).toEqual(['FAILED', 'no such order']);
    expect(await stateOf(key)).toBe('released');
  });

  it('a Python body that checks its lease learns that it is to stop', async () => {
    const key = newKey();
    const arn = await start('checking', key);
    await expect.poll(() => stateOf(key), { timeout: 20_000 }).toBe('held');
    const next = await holdfast.acquire(key, { replace: 'running', waitMs: 60_000 });
    expect(await resultOf(arn)).toMatchObject({ class: 'LeaseLost', reason: 'superseded' });
    await next.release();
  });

  it('a Python execution is suspended until the start of a rate, and settles it', async () => {
    const key = newKey();
    expect(await resultOf(await start('rated', key))).toBe(true);
    expect(await holdfast.readRates({ key })).toMatchObject({ open: 1 });
  });
}

const whySkipped = hasDurablePython ? '' : ' (skipped: .ci/run installs its SDK into .venv)';
describe.skipIf(!hasDurablePython)(`holdfast.durable, over the local stack${whySkipped}`, { timeout: 60_000 }, () =>
  durablePython(startDouble),
);

// AWS's runner takes seconds for what the local stack has shown in the same run.
describe.skipIf(!(hasDurablePython && hasRunner && isFull))(
  `holdfast.durable, over AWS's local runner${whySkipped}`,
  { timeout: 120_000 },
  () => durablePython(startRunner),
);
