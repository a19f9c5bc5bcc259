import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DurableContext, withDurableExecution } from '@aws/durable-execution-sdk-js';
import { GetDurableExecutionCommand, LambdaClient, StopDurableExecutionCommand } from '@aws-sdk/client-lambda';
import { expect } from 'vitest';
import { ACCOUNT, REGION } from '../../../infrastructure/logical-ids.ts';
import { startDurableFunctions } from '../../../local/durable/start.ts';
import { listen } from '../../../local/listen.ts';
import { freePort } from '../../../local/ports.ts';
import { lambdaContext } from '../stack/adapters.ts';

/** The code of a durable function. */
export type Work = (event: Record<string, unknown>, ctx: DurableContext) => Promise<unknown>;

/** The event at the end of an execution, as the rule of the stack passes it on. */
export interface EndEvent {
  execution: string;
  status: string;
  endedAt: string;
}

interface Backend {
  endpoint: string;
  /** @returns the ARN of the execution */
  start(input: string): Promise<string>;
  stop(): Promise<void>;
}

type Invoke = (event: object) => Promise<unknown>;

export type StartBackend = (invoke: Invoke, ended: (event: EndEvent) => unknown) => Promise<Backend>;

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };

/** Runs durable functions by the real SDK over a backend. @param ended receives the event of each end */
export async function durableFunctionsOver(startBackend: StartBackend, ended: (event: EndEvent) => unknown) {
  const works = new Map<string, Work>();
  const handler = withDurableExecution((event, ctx) => (works.get(event.work) as Work)(event, ctx), {
    get client() {
      return lambda;
    },
  });
  const backend = await startBackend((event) => handler(event as never, lambdaContext()), ended);
  const lambda = new LambdaClient({ endpoint: backend.endpoint, region: REGION, credentials: CREDENTIALS });
  const describe = (arn: string) => lambda.send(new GetDurableExecutionCommand({ DurableExecutionArn: arn }));
  return {
    endpoint: backend.endpoint,
    start: async (work: Work, input: object = {}) => {
      const name = crypto.randomUUID();
      works.set(name, work);
      return backend.start(JSON.stringify({ ...input, work: name }));
    },
    describe,
    /** The description after the end. */
    end: async (arn: string) => {
      await expect
        .poll(async () => (await describe(arn)).Status, { timeout: 60_000, interval: 20 })
        .not.toBe('RUNNING');
      return describe(arn);
    },
    kill: (arn: string) => lambda.send(new StopDurableExecutionCommand({ DurableExecutionArn: arn })),
    stop: async () => {
      lambda.destroy();
      await backend.stop();
    },
  };
}

/** The double of `npm start`. A second of a wait takes 50 ms. */
export const startDouble: StartBackend = async (invoke, ended) => {
  const { endpoint, service, stop } = await startDurableFunctions(
    {
      dispatch: ({ detail: { durableExecutionArn: execution, status, endTimestamp: endedAt } }) =>
        endedAt && ended({ execution, status, endedAt } as EndEvent),
    },
    { handlers: { work: async () => invoke as never }, port: 0, secondMs: 50 },
  );
  return { endpoint, start: async (input) => service.start('work', input).arn, stop };
};

const RUNNER = join('.venv', 'bin', 'dex-local-runner');

/** AWS's local runner, if this machine has it. */
export const hasRunner = existsSync(process.env.DEX_LOCAL_RUNNER ?? RUNNER);

/** For code outside of a test, which cannot call `expect.poll`. @throws Error after half a minute */
export async function eventually(isTrue: () => Promise<boolean>): Promise<void> {
  for (const until = Date.now() + 30_000; !(await isTrue()); await sleep(20))
    if (Date.now() > until) throw new Error('a program that a test started does not answer');
}

const PREFIX = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:work:$LATEST/durable-execution/`;

/**
 * AWS's local runner (aws-durable-execution-sdk-python-testing) behind an adapter. The ARNs of the runner are `uuid/uuid`, executions start by a route
 * of its own, and no events are sent. The adapter completes the ARNs, and sends the event of each end.
 */
export const startRunner: StartBackend = async (invoke, ended) => {
  const runner = `http://127.0.0.1:${await freePort()}`;
  const send = (path: string, init?: RequestInit) => fetch(`${runner}${path}`, init);
  const describe = async (arn: string) => {
    const answer = await send(`/2025-12-01/durable-executions/${encodeURIComponent(arn.replace(PREFIX, ''))}`);
    return (await answer.json()) as { Status: string; EndTimestamp?: number };
  };
  const noteEnd = async (execution: string) => {
    await eventually(async () => (await describe(execution)).EndTimestamp !== undefined);
    const { Status: status, EndTimestamp = 0 } = await describe(execution);
    await ended({ execution, status, endedAt: new Date(EndTimestamp * 1000).toISOString() });
  };
  const ends: Promise<void>[] = [];
  const adapter = await listen(async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    const answer = (status: number, type: string, content: string) =>
      response.writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type }).end(content);
    if (request.url?.endsWith('/invocations')) {
      const event = JSON.parse(body) as { DurableExecutionArn: string };
      const DurableExecutionArn = PREFIX + event.DurableExecutionArn;
      const output = (await invoke({ ...event, DurableExecutionArn })) as { Status: string };
      answer(200, '', JSON.stringify(output));
      if (output.Status !== 'PENDING') ends.push(noteEnd(DurableExecutionArn));
      return;
    }
    const path = String(request.url).replace(encodeURIComponent(PREFIX), '');
    const { method = '' } = request;
    const from = await send(path, { method, ...(body && { body, headers: { 'content-type': 'application/json' } }) });
    const content = await from.text();
    answer(from.status, from.ok ? '' : String((JSON.parse(content) as { Type?: string }).Type), content);
    const [, stopped] = /durable-executions\/([^/]+)\/stop$/.exec(path) ?? [];
    if (stopped) ends.push(noteEnd(PREFIX + decodeURIComponent(stopped)));
  });
  const child = startProcess(runner, adapter.url);
  await eventually(() =>
    send('/health').then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return {
    endpoint: adapter.url,
    start: async (input) => {
      const answer = await send('/start-durable-execution', { method: 'POST', body: startInput(input) });
      return PREFIX + ((await answer.json()) as { ExecutionArn: string }).ExecutionArn;
    },
    stop: async () => {
      await Promise.all(ends);
      child.kill('SIGKILL');
      await adapter.stop();
    },
  };
};

const startInput = (Input: string) =>
  JSON.stringify({
    ...{ AccountId: ACCOUNT, FunctionName: 'work', FunctionQualifier: '$LATEST', ExecutionName: crypto.randomUUID() },
    ...{ ExecutionTimeoutSeconds: 600, ExecutionRetentionPeriodDays: 1, Input },
  });

function startProcess(runner: string, lambdaEndpoint: string): ChildProcess {
  const { hostname, port } = new URL(runner);
  const args = ['--host', hostname, '--port', port, '--lambda-endpoint', lambdaEndpoint, '--log-level', 'CRITICAL'];
  const env = { ...process.env, AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: REGION };
  return spawn(process.env.DEX_LOCAL_RUNNER ?? RUNNER, ['start-server', ...args], { env, stdio: 'inherit' });
}
