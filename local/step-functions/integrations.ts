import { FunctionError } from '../lambda.ts';
import { ApiError, StatesError } from './errors.ts';
import type { Execution } from './execution.ts';
import { checkSize, type Task, timeoutError } from './interpreter.ts';
import { isJson, type Json } from './json.ts';
import type { Tokens } from './tokens.ts';

/** The services that tasks can call. */
export interface Services {
  tokens: Tokens;
  /** @throws FunctionError of the function, StatesError when there is none of that name */
  invoke(functionArn: string, payload: Json): Promise<Json>;
  /** @throws ApiError as StartExecution */
  start(request: { stateMachineArn: string; name?: string; input: string }): Execution;
  /** @throws ApiError ExecutionDoesNotExist */
  execution(arn: string): Execution;
}

type Fields = Record<string, Json>;

/**
 * Performs the Resource of a Task state: a function's ARN, `lambda:invoke`, `states:startExecution` or
 * `aws-sdk:sfn:stopExecution`, with their patterns `.waitForTaskToken`, `.sync` and `.sync:2`, within the task's timeout and heartbeats.
 * @throws StatesError, or the library's States.Timeout
 */
export async function performTask(services: Services, execution: Execution, task: Task): Promise<Json> {
  const limits = limitsOf(task, execution.signal);
  try {
    return await Promise.race([integration(services, task, { limits, parent: execution }), limits.exceeded]);
  } catch (error) {
    throw inStates(error as Error);
  } finally {
    limits.end();
    services.tokens.close(task.token);
  }
}

type Limits = ReturnType<typeof limitsOf>;

/** The limits of a task. `exceeded` rejects at the timeout, when a heartbeat is missing, and when the execution ends. `end` must be called. */
function limitsOf({ timeoutMs, heartbeatMs }: Task, executionEnded: AbortSignal) {
  const { promise: exceeded, reject } = Promise.withResolvers<never>();
  exceeded.catch(() => {}); // without a handler, a rejection after the end of the task would end the process
  const after = (ms: number | undefined) =>
    ms === undefined ? undefined : setTimeout(() => timeoutError().then(reject, reject), ms);
  const abort = () => reject(new StatesError('States.Runtime', 'the execution has ended', true));
  executionEnded.addEventListener('abort', abort);
  const timeout = after(timeoutMs);
  let heartbeat = after(heartbeatMs);
  return {
    exceeded,
    beat: () => {
      clearTimeout(heartbeat);
      heartbeat = after(heartbeatMs);
    },
    end: () => {
      clearTimeout(timeout);
      clearTimeout(heartbeat);
      executionEnded.removeEventListener('abort', abort);
    },
  };
}

async function integration(
  services: Services,
  task: Task,
  { limits, parent }: { limits: Limits; parent: Execution },
): Promise<Json> {
  const { resource } = task;
  if (/^arn:[\w-]+:lambda:/.test(resource)) return services.invoke(resource, task.parameters);
  const parameters = task.parameters as Fields;
  switch (resource.replace(/^arn:[\w-]+:states:::/, '')) {
    case 'lambda:invoke':
      return invokeTask(services, parameters);
    case 'lambda:invoke.waitForTaskToken':
      return untilSent(services.tokens, { token: task.token, beat: limits.beat }, () =>
        invokeTask(services, parameters),
      );
    case 'states:startExecution': {
      const { arn, startedAt } = start(services, parameters, parent.name);
      return { ExecutionArn: arn, StartDate: startedAt.getTime() };
    }
    case 'states:startExecution.sync':
      return childOutput(start(services, parameters, parent.name), parent.signal, (text) => text);
    case 'states:startExecution.sync:2':
      return childOutput(start(services, parameters, parent.name), parent.signal, JSON.parse);
    case 'aws-sdk:sfn:stopExecution':
      return stop(services, parameters);
    default:
      throw new StatesError('States.Runtime', `the local stack does not know the resource ${resource}`, true);
  }
}

async function invokeTask(services: Services, { FunctionName, Payload = {} }: Fields): Promise<Json> {
  const result = await services.invoke(String(FunctionName), Payload);
  return { ExecutedVersion: '$LATEST', Payload: result, StatusCode: 200 };
}

/** Waits until the token of a task is sent back. Fails if the call that passes the token on fails. */
function untilSent(
  tokens: Tokens,
  { token, beat }: { token: string; beat: () => void },
  call: () => Promise<Json>,
): Promise<Json> {
  return new Promise((resolve, reject) => {
    tokens.wait(token, beat).then(resolve, reject);
    call().catch(reject);
  });
}

function start(services: Services, parameters: Fields, parent: string): Execution {
  const { StateMachineArn, Name, Input = {} } = parameters;
  const input = typeof Input === 'string' ? Input : JSON.stringify(Input);
  if (isJson(input)) checkSize(JSON.parse(input), `input of ${StateMachineArn} from ${parent}`);
  return services.start({
    stateMachineArn: String(StateMachineArn),
    ...(Name !== undefined && { name: String(Name) }),
    input,
  });
}

function stop(services: Services, { ExecutionArn, Error: error, Cause: cause }: Fields): Json {
  try {
    const execution = services.execution(String(ExecutionArn));
    execution.stop(error as string | undefined, cause as string | undefined);
    return { StopDate: execution.stoppedAt?.toISOString() ?? null };
  } catch (error) {
    // The errors of SDK integrations have their own prefix.
    if (error instanceof ApiError) throw new StatesError(`Sfn.${error.name}Exception`, error.message);
    throw error;
  }
}

/** Waits for the output of a child. The end of the parent stops the child. A timeout of the task does not, because AWS does not document that it would. */
async function childOutput(child: Execution, parentEnded: AbortSignal, parsed: (text: string) => Json): Promise<Json> {
  const stop = () => child.stop();
  parentEnded.addEventListener('abort', stop);
  child.ended.then(() => parentEnded.removeEventListener('abort', stop));
  await child.ended;
  const described: Fields = {
    ...(child.cause !== undefined && { Cause: child.cause }),
    ...(child.error !== undefined && { Error: child.error }),
    ExecutionArn: child.arn,
    Input: parsed(child.input),
    InputDetails: { Included: true },
    Name: child.name,
    ...(child.output !== undefined && { Output: parsed(child.output), OutputDetails: { Included: true } }),
    StartDate: child.startedAt.getTime(),
    StateMachineArn: child.machine.arn,
    Status: child.status,
    StopDate: (child.stoppedAt as Date).getTime(),
  };
  if (child.status !== 'SUCCEEDED') throw new StatesError('States.TaskFailed', JSON.stringify(described));
  return described;
}

function inStates(error: Error): Error {
  if (error instanceof FunctionError) return new StatesError(error.report.errorType, JSON.stringify(error.report));
  if (error instanceof ApiError) return new StatesError(`StepFunctions.${error.name}Exception`, error.message);
  return error;
}
