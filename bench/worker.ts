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
  /** The processor time of the worker, in cores. Lambda gives 0.33 to a function of 590 MB. */
  cores?: number;
  /** Environment variables that replace those of serverless.yml. */
  variables?: Record<string, string>;
}

/**
 * Runs a script in a process that resembles a function: with Lambda's environment, and the tables of serverless.yml. Standard output goes to the null
 * device, so that to make and write the log is part of the measurement, but to keep it is not. The script gets its task from `receiveTask`, and answers
 * with `sendResult`.
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

/** Called in the worker, to get its task. */
export async function receiveTask<Task>(): Promise<Task> {
  const [{ task }] = await once(process, 'message');
  return task;
}

export const sendProgress = (progress: string) => process.send?.({ progress });
export const sendResult = (result: unknown) => process.send?.({ result });
