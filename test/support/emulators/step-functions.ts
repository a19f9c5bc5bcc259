import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen } from '../../../local/listen.ts';

/** The statuses of an execution that has ended. */
export type EndStatus = 'SUCCEEDED' | 'FAILED' | 'ABORTED' | 'TIMED_OUT';

/** The state of a task that waits for its token. */
export interface Task {
  token: string;
  state: 'waiting' | 'succeeded' | 'failed' | 'timedOut';
  /** The output of SendTaskSuccess. */
  output?: Record<string, unknown>;
  /** The error of SendTaskFailure. */
  error?: string;
  cause?: Record<string, unknown>;
}

/**
 * `lost`: the request takes effect, and its reply does not come back. `refused`: the service is unavailable. `throttled`: too many requests.
 * `denied`: Step Functions may not use the encryption key of the state machine.
 */
type SendFault = 'lost' | 'refused' | 'throttled' | 'denied';

const REFUSALS: Record<Exclude<SendFault, 'lost'>, [string, number]> = {
  refused: ['ServiceUnavailable', 503],
  throttled: ['ThrottlingException', 400],
  denied: ['KmsAccessDeniedException', 400],
};

export interface StepFunctions {
  endpoint: string;
  tasks: Map<string, Task>;
  /** Statuses by ARN. An execution that is not there does not exist. */
  executions: Map<string, string>;
  /** When executions ended, in epoch milliseconds. An end without a time is now. */
  stopped: Map<string, number>;
  /** When executions were last redriven, in epoch milliseconds. */
  redriven: Map<string, number>;
  /** Executions of other accounts, to which access is denied. */
  foreign: Set<string>;
  /** The tokens of the tasks that were notified of a grant, in that order. */
  grants: string[];
  /** The requests, even refused ones. */
  requests: { action: string; token?: string }[];
  /** The executions that were asked about, in that order. */
  described: string[];
  /** What happens to the next requests, by action. */
  faults: Record<string, SendFault[]>;
  /** Called at every grant as it arrives. */
  onGrant: (task: Task) => void;
  /** Runs while a request is on its way. The request takes effect after it. */
  onTheWay: (action: string, token?: string) => Promise<unknown>;
  newTask(): Task;
  /** Makes an execution with a status. @returns its ARN */
  newExecution(status?: string): string;
  /** Ends an execution now. @returns the event of its end */
  end(execution: string, status?: EndStatus): { status: EndStatus; stopDate: number };
  /** DescribeExecution shows from now on that an execution runs, which was redriven now or earlier. @param at epoch milliseconds */
  redrive(execution: string, at?: number): void;
  stop(): Promise<void>;
}

/**
 * A double of exactly those calls of Step Functions that the line makes, over the wire (AWS JSON 1.0), with the names of
 * its errors. A task takes one result. As Step Functions does, it refuses a second message for a token.
 */
export async function startStepFunctions(now = Date.now): Promise<StepFunctions> {
  let made = 0;
  const double: StepFunctions = {
    endpoint: '',
    tasks: new Map(),
    executions: new Map(),
    stopped: new Map(),
    redriven: new Map(),
    foreign: new Set(),
    grants: [],
    requests: [],
    described: [],
    faults: {},
    onGrant: () => {},
    onTheWay: async () => {},
    newTask: () => {
      const task: Task = { token: `token-${randomUUID()}`, state: 'waiting' };
      double.tasks.set(task.token, task);
      return task;
    },
    newExecution: (status = 'FAILED') => {
      const arn = `arn:aws:states:us-east-1:123456789012:execution:machine:run-${made++}`;
      double.executions.set(arn, status);
      return arn;
    },
    end: (execution, status = 'FAILED') => {
      const stopDate = now();
      double.executions.set(execution, status);
      double.stopped.set(execution, stopDate);
      return { status, stopDate };
    },
    redrive: (execution, at = now()) => {
      double.redriven.set(execution, at);
      double.executions.set(execution, 'RUNNING');
      double.stopped.delete(execution);
    },
    stop: () => listening.stop(),
  };
  const handle: RequestListener = async (request, response) => {
    const action = String(request.headers['x-amz-target']).replace('AWSStepFunctions.', '');
    const input = JSON.parse(await text(request));
    double.requests.push({ action, ...(input.taskToken && { token: input.taskToken }) });
    if (action === 'DescribeExecution') double.described.push(input.executionArn);
    await double.onTheWay(action, input.taskToken);
    const fault = double.faults[action]?.shift();
    const isRefusal = fault !== undefined && fault !== 'lost';
    const answer = isRefusal ? refusal(...REFUSALS[fault]) : act(double, { action, input, now });
    if (fault === 'lost') {
      response.destroy();
      return;
    }
    response.writeHead(answer.status, { 'content-type': 'application/x-amz-json-1.0' });
    response.end(JSON.stringify(answer.body));
  };
  const listening = await listen(handle);
  double.endpoint = listening.url;
  return double;
}

interface Answer {
  status: number;
  body: object;
}

const refusal = (type: string, status = 400): Answer => ({ status, body: { __type: type, message: type } });

interface Request {
  action: string;
  input: Record<string, string>;
  now(): number;
}

function act(double: StepFunctions, { action, input, now }: Request): Answer {
  switch (action) {
    case 'SendTaskSuccess':
      return finish(double, input.taskToken, (task) => {
        task.state = 'succeeded';
        task.output = JSON.parse(input.output ?? '');
        double.grants.push(task.token);
        double.onGrant(task);
      });
    case 'SendTaskFailure':
      return finish(double, input.taskToken, (task) => {
        Object.assign(task, { state: 'failed', error: input.error, cause: JSON.parse(input.cause ?? '{}') });
      });
    case 'SendTaskHeartbeat':
      return finish(double, input.taskToken, () => {});
    case 'DescribeExecution': {
      const executionArn = input.executionArn ?? '';
      if (executionArn.split(':')[5] !== 'execution') return refusal('InvalidArn'); // as of an Express workflow
      if (double.foreign.has(executionArn)) return refusal('AccessDeniedException');
      const status = double.executions.get(executionArn);
      if (!status) return refusal('ExecutionDoesNotExist');
      const isRunning = status === 'RUNNING' || status === 'PENDING_REDRIVE';
      const stoppedAt = double.stopped.get(executionArn) ?? (isRunning ? undefined : now());
      const redrivenAt = double.redriven.get(executionArn);
      const stop = stoppedAt === undefined ? {} : { stopDate: stoppedAt / 1000 };
      const redrive = redrivenAt === undefined ? {} : { redriveCount: 1, redriveDate: redrivenAt / 1000 };
      return { status: 200, body: { executionArn, status, redriveCount: 0, ...stop, ...redrive } };
    }
    default:
      return refusal('UnknownOperationException');
  }
}

function finish(double: StepFunctions, token: string | undefined, end: (task: Task) => void): Answer {
  if (!token?.startsWith('token-')) return refusal('InvalidToken');
  const task = double.tasks.get(token);
  if (!task) return refusal('TaskDoesNotExist');
  if (task.state !== 'waiting') return refusal('TaskTimedOut');
  end(task);
  return { status: 200, body: {} };
}
