import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import {
  CreateStateMachineCommand,
  DescribeExecutionCommand,
  SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { inject } from 'vitest';
import { type FunctionError, invoke, type LambdaHandler } from '../../../local/lambda.ts';
import { listen } from '../../../local/listen.ts';
import { freePort } from '../../../local/ports.ts';
import { lambdaContext } from '../stack/adapters.ts';

const PYTHON = '.venv/bin/python';

/** Installed by .ci/run: an interpreter that others wrote, which reads the same definitions. */
export const hasMoto = existsSync(PYTHON);

/**
 * Step Functions as Moto interprets it, over handlers in this process. Moto sends no event at the end of an execution. So this helper calls
 * `executionEnded` for the executions that it started.
 */
export async function motoWorld(handlers: Record<string, LambdaHandler>) {
  const lambda = await lambdaEndpoint(handlers);
  const port = await freePort();
  const child = spawn(PYTHON, ['test/support/emulators/moto-server.py', String(port), lambda.url], { stdio: 'ignore' });
  const endpoint = `http://127.0.0.1:${port}`;
  const sfn = new SFNClient({ endpoint, maxAttempts: 1 });
  await untilItAnswers(`${endpoint}/moto-api/`);

  const describe = (executionArn: string) => sfn.send(new DescribeExecutionCommand({ executionArn }));
  const untilEnded = async (executionArn: string) => {
    for (;;) {
      const described = await describe(executionArn);
      if (described.status !== 'RUNNING') return described;
      await delay(20);
    }
  };
  const create = async (name: string, definition: object): Promise<string> => {
    const roleArn = 'arn:aws:iam::123456789012:role/test';
    const asked = new CreateStateMachineCommand({ name, roleArn, definition: JSON.stringify(definition) });
    return (await sfn.send(asked)).stateMachineArn ?? '';
  };
  for (const { name, definition } of inject('service').stateMachines) await create(name, JSON.parse(definition));
  return {
    sfn,
    endpoint,
    create,
    describe,
    start: async (stateMachineArn: string, input: object = {}, name: string = randomUUID()): Promise<string> => {
      const asked = new StartExecutionCommand({ stateMachineArn, input: JSON.stringify(input), name });
      const arn = (await sfn.send(asked)).executionArn ?? '';
      untilEnded(arn).then(
        () => handlers.executionEnded?.({ execution: arn }, lambdaContext()),
        () => {}, // Moto is gone: the test is over
      );
      return arn;
    },
    abort: (executionArn: string) => sfn.send(new StopExecutionCommand({ executionArn, error: 'Stopped' })),
    ended: async (executionArn: string) => {
      const { status, output, error, cause } = await untilEnded(executionArn);
      return { status, output: output && JSON.parse(output), error, cause };
    },
    stop: async () => {
      sfn.destroy();
      await stop(child);
      await lambda.stop();
    },
  };
}

/** The Invoke call of Lambda's API. */
async function lambdaEndpoint(handlers: Record<string, LambdaHandler>) {
  const handle: RequestListener = async (request, response) => {
    const [, arn = ''] = /functions\/(.+)\/invocations/.exec(decodeURIComponent(request.url ?? '')) ?? [];
    const name = arn.replace(/^.*[:-]/, '');
    const called = handlers[name];
    if (!called) return void response.writeHead(404).end();
    // Moto's executions belong to an account of its own, and a function knows its account by its ARN.
    const invokedFunctionArn = `arn:aws:lambda:us-east-1:123456789012:function:${name}`;
    const handler: LambdaHandler = (event, context) => called(event, { ...context, invokedFunctionArn });
    try {
      const result = await invoke({ name, handler, timeoutSeconds: 60 }, await json(request));
      response.end(JSON.stringify(result));
    } catch (error) {
      response.setHeader('x-amz-function-error', 'Unhandled');
      response.end(JSON.stringify((error as FunctionError).report));
    }
  };
  return listen(handle);
}

async function untilItAnswers(url: string): Promise<void> {
  for (const startedAt = Date.now(); ; await delay(50)) {
    const answered = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answered) return;
    if (Date.now() - startedAt > 60_000) throw new Error('Moto did not start');
  }
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}
