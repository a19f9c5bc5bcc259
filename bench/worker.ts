import { fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';
import { fileURLToPath } from 'node:url';
import { readService } from '../infrastructure/read.ts';
import { createTables } from '../local/dynamodb.ts';
import { endsWithUs } from './children.ts';
import { limitCpu } from './cpu-limit.ts';
import { lambdaEnvironment } from './environment.ts';
import type { Options } from './measurement.ts';

interface Conditions {
  nodeOptions?: string;
  /** The processor time it gets, in cores: 0.33 is what Lambda gives a function of 590 MB. */
  cores?: number;
  /** Variables of the environment in place of those that serverless.yml sets. */
  variables?: Record<string, string>;
}

/**
 * Runs a script in a process like a function's: Lambda's environment, the tables of serverless.yml, and standard output
 * to the null device, so that making and writing the log is part of what is measured and keeping it is not.
 * The script gets its task from `receiveTask` and answers with `sendResult`.
 */
export async function inWorker<Task, Result>(
  script: URL,
  task: Task,
  { dynamodbEndpoint, progress, nodeOptions = '', cores, variables = {} }: Options & Conditions,
): Promise<Result> {
  const { environment, tables } = await readService('bench');
  await createTables(dynamodbEndpoint, tables);
  const log = openSync(devNull, 'w');
  const child = endsWithUs(
    fork(script, {
      stdio: ['ignore', log, 'inherit', 'ipc'],
      env: { ...environment, ...lambdaEnvironment(dynamodbEndpoint), NODE_OPTIONS: nodeOptions, ...variables },
    }),
  );
  const unlimited = cores === undefined ? undefined : limitCpu(child.pid as number, cores);
  try {
    child.send({ task });
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`${fileURLToPath(script)} ended with exit code ${code}`);
    });
    for (;;) {
      const [message] = await Promise.race([once(child, 'message'), ended]);
      if ('result' in message) return message.result;
      progress(message.progress);
    }
  } finally {
    const gone = once(child, 'exit');
    if (child.kill()) await gone;
    unlimited?.();
    closeSync(log);
  }
}

/** In the worker: what it is to do. */
export async function receiveTask<Task>(): Promise<Task> {
  const [{ task }] = await once(process, 'message');
  return task;
}

export const sendProgress = (progress: string) => process.send?.({ progress });
export const sendResult = (result: unknown) => process.send?.({ result });
