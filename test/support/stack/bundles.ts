import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { inject } from 'vitest';
import { dynamodbEndpoint } from '../emulators/endpoint.ts';
import type { InvocationMessage, OutcomeMessage } from '../emulators/lambda-process.ts';
import { checkAnswer, checkFailure } from './contract.ts';

export interface Running {
  invoke(event: unknown): Promise<OutcomeMessage>;
  /** Ends the process. @returns what it had written to standard output and error */
  stop(): Promise<string>;
}

/** A built function, by its name, in a process of its own, with an environment like Lambda's. */
export async function startBundle(name: string, settings: Record<string, string>): Promise<Running> {
  const { functions, environment } = inject('service');
  const bundle = functions.find((one) => one.name === name)?.bundle;
  if (!bundle) throw new Error(`serverless.yml has no function ${name}`);
  const child = fork(new URL('../emulators/lambda-process.ts', import.meta.url), [resolve(bundle, 'index.mjs')], {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: {
      ...environment,
      AWS_LAMBDA_FUNCTION_NAME: name,
      AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
      _X_AMZN_TRACE_ID: 'Root=1-5759e988-bd862e3fe1be46a994272793',
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_ENDPOINT_URL_DYNAMODB: dynamodbEndpoint(),
      AWS_ENDPOINT_URL_S3: inject('s3Endpoint'),
      ...settings,
    },
  });
  let written = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk) => {
      written += chunk;
    });
  const closed = once(child, 'close');
  const next = async (): Promise<OutcomeMessage> => {
    const [message] = await Promise.race([once(child, 'message'), closed.then(() => [undefined])]);
    if (message === undefined) throw new Error(`the process of ${name} ended: ${written}`);
    return message;
  };
  await next();

  return {
    invoke: async (event) => {
      const context = {
        awsRequestId: randomUUID(),
        functionName: name,
        invokedFunctionArn: `arn:aws:lambda:us-east-1:000000000000:function:${name}${Object(event).version === '2.0' ? ':HTTP' : ''}`,
        memoryLimitInMB: '512',
      };
      child.send({ event, context } satisfies InvocationMessage);
      const outcome = await next();
      if ('result' in outcome) checkAnswer(name, event, outcome.result);
      else checkFailure(name, outcome.errorType, outcome.errorMessage);
      return outcome;
    },
    stop: async () => {
      child.kill();
      await closed;
      return written;
    },
  };
}
