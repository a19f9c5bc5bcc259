import { FunctionError } from '../lambda.ts';
import { ApiError, StatesError } from './errors.ts';
import type { Execution } from './execution.ts';
import { checkSize, type Json, type Task, timeoutError } from './interpreter.ts';
import type { Tokens } from './tokens.ts';

/** What tasks can reach. */
export interface Surroundings {
  tokens: Tokens;
  /** @throws FunctionError of the function, StatesError when there is none of that name */
  invoke(functionArn: string, payload: Json): Promise<Json>;
  /** @throws ApiError as StartExecution */
  start(request: { stateMachineArn: string; name?: string; input: string }): Execution;
}

type Fields = Record<string, Json>;

/**
 * Does what a Task state's Resource says: a function's ARN, `lambda:invoke` or `states:startExecution`, with their
 * patterns `.waitForTaskToken`, `.sync` and `.sync:2`, within the task's timeout and heartbeats.
 * @throws or the library's States.Timeout
 */
export async function performTask(around: Surroundings, execution: Execution, task: Task): Promise<Json> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  late.catch(() => {});
  const ended = new AbortController();
  const timers: NodeJS.Timeout[] = [];
  if (task.timeoutMs !== undefined) timers.push(setTimeout(() => reject(timeoutError()), task.timeoutMs));
  const abort = () => reject(new StatesError('States.Runtime', 'the execution has ended', true));
  execution.signal.addEventListener('abort', abort);
  let heartbeat = beatTimer();
  function beatTimer(): NodeJS.Timeout | undefined {
    if (task.heartbeatMs === undefined) return undefined;
    return setTimeout(() => reject(timeoutError()), task.heartbeatMs);
  }
  const beat = () => {
    clearTimeout(heartbeat);
    heartbeat = beatTimer();
  };
  try {
    return await Promise.race([integration(around, task, beat, ended.signal, execution), late]);
  } catch (error) {
    throw inStates(error as Error);
  } finally {
    for (const timer of [...timers, heartbeat]) clearTimeout(timer);
    execution.signal.removeEventListener('abort', abort);
    around.tokens.close(task.token);
    ended.abort();
  }
}

async function integration(
  around: Surroundings,
  task: Task,
  beat: () => void,
  signal: AbortSignal,
  execution: Execution,
): Promise<Json> {
  const { resource, parameters } = task;
  const [, service, pattern = ''] = /^arn:[\w-]+:states:::(\w+:\w+)(?:\.(.+))?$/.exec(resource) ?? [];
  if (/^arn:[\w-]+:lambda:/.test(resource)) return around.invoke(resource, parameters);
  const known: Record<string, () => Promise<Json>> = {
    'lambda:invoke': () => invoked(around, parameters as Fields),
    'lambda:invoke waitForTaskToken': () =>
      untilSent(around.tokens, task.token, beat, () => invoked(around, parameters as Fields)),
    'states:startExecution': async () => {
      const { arn, startedAt } = started(around, parameters as Fields, execution);
      return { ExecutionArn: arn, StartDate: startedAt.getTime() };
    },
    'states:startExecution sync': () => childOutput(around, parameters as Fields, execution, signal, false),
    'states:startExecution sync:2': () => childOutput(around, parameters as Fields, execution, signal, true),
  };
  const perform = known[`${service} ${pattern}`.trim()];
  if (!perform) throw new StatesError('States.Runtime', `the local stack does not know the resource ${resource}`, true);
  return perform();
}

async function invoked(around: Surroundings, { FunctionName, Payload = {} }: Fields): Promise<Json> {
  const result = await around.invoke(String(FunctionName), Payload);
  return { ExecutedVersion: '$LATEST', Payload: result, StatusCode: 200 };
}

/** The task goes on when its token is sent back, and fails if the call that hands it out fails. */
function untilSent(tokens: Tokens, token: string, beat: () => void, call: () => Promise<Json>): Promise<Json> {
  return new Promise((resolve, reject) => {
    tokens.wait(token, beat).then(resolve, reject);
    call().catch(reject);
  });
}

function started(around: Surroundings, parameters: Fields, parent: Execution): Execution {
  const { StateMachineArn, Name, Input = {} } = parameters;
  const input = typeof Input === 'string' ? Input : JSON.stringify(Input);
  checkSize(JSON.parse(input), `input of ${StateMachineArn} from ${parent.name}`);
  return around.start({
    stateMachineArn: String(StateMachineArn),
    ...(Name !== undefined && { name: String(Name) }),
    input,
  });
}

/** A task that ends before its child, by a timeout or with its own execution, stops the child. */
async function childOutput(
  around: Surroundings,
  parameters: Fields,
  parent: Execution,
  signal: AbortSignal,
  parsed: boolean,
): Promise<Json> {
  const child = started(around, parameters, parent);
  signal.addEventListener('abort', () => child.stop());
  await child.ended;
  const told = (text: string): Json => (parsed ? JSON.parse(text) : text);
  const described: Fields = {
    ...(child.cause !== undefined && { Cause: child.cause }),
    ...(child.error !== undefined && { Error: child.error }),
    ExecutionArn: child.arn,
    Input: told(child.input),
    InputDetails: { Included: true },
    Name: child.name,
    ...(child.output !== undefined && { Output: told(child.output), OutputDetails: { Included: true } }),
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
