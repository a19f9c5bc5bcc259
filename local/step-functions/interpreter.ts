import { randomUUID } from 'node:crypto';
import { StateMachine, type StateMachineDefinition } from 'aws-local-stepfunctions';
import { StatesError } from './errors.ts';
import type { Json } from './json.ts';
import { evaluate } from './jsonata.ts';
import { newToken } from './tokens.ts';
import { wait } from './wait.ts';

export type Definition = StateMachineDefinition & { TimeoutSeconds?: number };

/** One attempt at a Task state. */
export interface Task {
  state: string;
  resource: string;
  /** The input of the state after InputPath and Parameters. */
  parameters: Json;
  /** The value of `$$.Task.Token` in the parameters. */
  token: string;
  timeoutMs: number | undefined;
  heartbeatMs: number | undefined;
}

export interface Interpretation {
  definition: Definition;
  input: Json;
  /** The value of `$$`, without the fields of a state. */
  context: Record<string, Json>;
  perform(task: Task): Promise<Json>;
  /** Called at every state transition. */
  entered(state: string, type: string): void;
  /** Called soon after a state outside of Parallel and Map was entered, with its input. */
  reached?(state: string, input: Json): void;
  /** How long a second of the definition takes, in milliseconds. */
  secondMs: number;
  /** How long a second of a timeout or a heartbeat takes; `secondMs` if it is absent. */
  limitSecondMs?: number;
  /** The time at which states are entered. */
  now?: () => Date;
}

const MAX_PAYLOAD_BYTES = 256 * 1024;

/** @throws StatesError States.DataLimitExceeded if it is larger than the limit of payloads between states */
export function checkSize(payload: Json, what: string): void {
  if (Buffer.byteLength(JSON.stringify(payload)) > MAX_PAYLOAD_BYTES)
    throw new StatesError('States.DataLimitExceeded', `The ${what} exceeds 262144 bytes`, true);
}

/** Practically no timeout, within the limit of a timer. Without a timeout, the library ends a task after a minute. */
const UNTIMED = { TimeoutSeconds: 2_000_000 };

export type State = Record<string, Json>;

/** The part of `$$` that is different each time a state is entered. */
interface Visit {
  Execution: Json;
  State: State;
  Task: { Token: string };
}

/** The record of the states that an execution has entered. */
interface Execution {
  run: Interpretation;
  visits: Record<string, Visit>;
  /** For each entry, what the library calls if it takes the state for a task. */
  handlers: Record<string, (input: Json) => Promise<Json>>;
  waits: { secondMs: number; ended: AbortSignal };
  limitSecondMs: number;
}

/**
 * Runs a definition on aws-local-stepfunctions. That library supports neither `$$.State` and `$$.Task`, nor JSONata, heartbeats and service integrations.
 * The library reads states from an object. Ours makes a fresh copy of a state each time the state is entered, with paths to `$$` that lead to the context of
 * that entry. A Wait state that the library would end at another time than AWS becomes a task.
 */
export function interpret(run: Interpretation): { result: Promise<Json>; abort(): void } {
  const ending = new AbortController();
  const { limitSecondMs = run.secondMs } = run;
  const waits = { secondMs: run.secondMs, ended: ending.signal };
  const execution: Execution = { run, visits: {}, handlers: {}, waits, limitSecondMs };
  const byVisit = (input: Json) => {
    const handler = execution.handlers[String((input as State).visit)];
    if (!handler) throw new Error('a task of no visited state');
    return handler(input);
  };
  const states = watched(execution, run.definition as unknown as State);
  const machine = new StateMachine(states as unknown as Definition, {
    validationOptions: { noValidate: true }, // the definition was validated when the state machine was created
  });
  const taskResourceLocalHandlers = new Proxy({}, { get: () => byVisit });
  const { result, abort, eventLogs } = machine.run(run.input, {
    context: { ...run.context, Visits: execution.visits },
    overrides: { taskResourceLocalHandlers },
  });
  void follow(eventLogs, (state, input) => {
    if (Object.hasOwn(run.definition.States, state)) run.reached?.(state, input);
  });
  return {
    result: result as Promise<Json>,
    abort: () => {
      abort();
      ending.abort();
    },
  };
}

/** A definition, or a branch of one, that makes its states when they are entered. */
function watched(execution: Execution, definition: State): State {
  const states = definition.States as Record<string, State>;
  const entries = Object.keys(states).map((name) => [
    name,
    { enumerable: true, get: () => enter(execution, name, states[name] as State) },
  ]);
  const { TimeoutSeconds: seconds } = definition;
  return {
    ...definition,
    ...(typeof seconds === 'number' && { TimeoutSeconds: (seconds * execution.limitSecondMs) / 1000 }),
    States: Object.defineProperties({}, Object.fromEntries(entries)) as Json,
  };
}

/** The token of the next attempt at a task, and how many attempts came before. */
interface Attempts {
  next: string;
  retries: number;
}

/** A state at one of its entries. */
interface Entered extends Execution {
  name: string;
  visit: string;
  attempts: Attempts;
}

/** Makes the state that the library sees at this entry. */
function enter(execution: Execution, name: string, state: State): State {
  const { run, visits } = execution;
  const visit = `v${Object.keys(visits).length}`;
  run.entered(name, String(state.Type));
  const attempts = { next: newToken(randomUUID()), retries: 0 };
  visits[visit] = visitOf(run, name, attempts);
  const entered = { ...execution, name, visit, attempts };
  if (isJsonata(state)) return jsonataAsTask(entered, state);
  const bound = inSeconds(rebind(state, visit), run.secondMs);
  if (state.Type === 'Wait' && (bound.Timestamp ?? bound.TimestampPath ?? bound.SecondsPath) !== undefined)
    return waitAsTask(entered, bound);
  if (state.Type === 'Parallel')
    bound.Branches = (state.Branches as State[]).map((branch) => watched(execution, branch));
  for (const body of ['Iterator', 'ItemProcessor'])
    if (state.Type === 'Map' && state[body]) bound[body] = watched(execution, state[body] as State);
  return state.Type === 'Task' ? boundTask(entered, state, bound) : bound;
}

const visitOf = ({ context, now = () => new Date() }: Interpretation, name: string, attempts: Attempts): Visit => ({
  Execution: context.Execution ?? null, // the library would put the input of its first state here
  State: {
    Name: name,
    EnteredTime: now().toISOString(),
    get RetryCount() {
      return attempts.retries;
    },
  },
  Task: {
    get Token() {
      return attempts.next;
    },
  },
});

/** A state that the library would run in another way than AWS, as a task whose handler does the work of the state. */
const asTask = ({ name, visit }: Entered, parameters: State, fields: Record<string, Json | undefined>): State => ({
  ...{ Type: 'Task', Resource: name, Parameters: { visit, 'input.$': '$', ...parameters } },
  ...definedOf(fields),
  ...UNTIMED,
});

function jsonataAsTask(entered: Entered, state: State): State {
  const { run, visits, visit, handlers, waits } = entered;
  const { Output: output = '{% $states.input %}', Seconds, Timestamp, Next, End } = state;
  handlers[visit] = async (wrapped) => {
    const context = { ...run.context, ...visits[visit] } as unknown as Json;
    const states = { input: (wrapped as State).input ?? null, context };
    const until = await evaluate(definedOf({ Seconds, Timestamp }), states);
    if (state.Type === 'Wait') await wait(until as State, waits);
    return evaluate(output, states);
  };
  return asTask(entered, {}, { Next, End });
}

function waitAsTask(entered: Entered, bound: State): State {
  const { Timestamp, TimestampPath, SecondsPath, InputPath, OutputPath, Next, End } = bound;
  entered.handlers[entered.visit] = async (wrapped) => {
    await wait(wrapped as State, entered.waits);
    return (wrapped as State).input ?? null;
  };
  const until = definedOf({ Timestamp, 'Timestamp.$': TimestampPath, 'Seconds.$': SecondsPath });
  return asTask(entered, until, { InputPath, OutputPath, Next, End });
}

/** The library passes only the name of the state to a handler, and concurrent iterations of a Map share that name. So the parameters name the entry. */
function boundTask(entered: Entered, state: State, bound: State): State {
  const { run, visit, name, attempts, limitSecondMs } = entered;
  const { Parameters: parameters, HeartbeatSeconds: heartbeat, TimeoutSeconds: timeout } = state;
  const given = { heartbeat: state.HeartbeatSecondsPath ?? null, timeout: state.TimeoutSecondsPath ?? null };
  const paths = Object.entries(given).flatMap(([what, path]) => (path ? [[`${what}.$`, path]] : []));
  bound.Parameters = {
    visit,
    ...Object.fromEntries(paths),
    ...(parameters === undefined ? { 'input.$': '$' } : { input: bound.Parameters as Json }),
  };
  Object.assign(bound, UNTIMED);
  delete bound.TimeoutSecondsPath;
  const inMs = (seconds: Json | undefined) => (seconds == null ? undefined : Number(seconds) * limitSecondMs);
  entered.handlers[visit] = async (wrapped) => {
    const { input, ...limits } = wrapped as { input: Json; heartbeat?: Json; timeout?: Json };
    const token = attempts.next;
    attempts.next = newToken(randomUUID());
    attempts.retries++;
    checkSize(input, `input of ${name}`);
    const result = await run.perform({
      state: name,
      resource: String(state.Resource),
      parameters: input,
      token,
      timeoutMs: inMs(limits.timeout ?? timeout),
      heartbeatMs: inMs(limits.heartbeat ?? heartbeat),
    });
    checkSize(result, `output of ${name}`);
    return result;
  };
  return bound;
}

type Events = ReturnType<StateMachine['run']>['eventLogs'];

async function follow(events: Events, reached: (state: string, input: Json) => void): Promise<void> {
  for await (const event of events)
    if (event.type === 'StateEntered') reached(event.state.name, event.state.input as Json);
}

export const isJsonata = (state: State): boolean => state.QueryLanguage === 'JSONata';

const definedOf = (fields: Record<string, Json | undefined>): State => JSON.parse(JSON.stringify(fields));

/** Binds the references to the state's part of `$$` to this visit. States inside of the state are bound later, when they are entered. */
function rebind(state: State, visit: string): State {
  return JSON.parse(JSON.stringify(state), (name, value) =>
    typeof value === 'string' && /(\.\$|Path|Variable)$/.test(name)
      ? value.replaceAll(/\$\$\.(Execution|State|Task)\./g, `$$$$.Visits.${visit}.$1.`)
      : value,
  ) as State;
}

function inSeconds(state: State, secondMs: number): State {
  const scaled = (value: Json | undefined) => (Number(value) * secondMs) / 1000;
  if (typeof state.Seconds === 'number') state.Seconds = scaled(state.Seconds);
  const retriers = (state.Retry ?? []) as State[];
  for (const retrier of retriers) {
    retrier.IntervalSeconds = scaled(retrier.IntervalSeconds ?? 1);
    if (retrier.MaxDelaySeconds !== undefined) retrier.MaxDelaySeconds = scaled(retrier.MaxDelaySeconds);
  }
  return state;
}

/**
 * The library recognizes timeouts by a class that it does not export. This function takes the class from the error of a
 * task that times out.
 */
async function learnTimeoutError(): Promise<new () => Error> {
  const task = { Type: 'Task', Resource: 'none', TimeoutSeconds: 1e-6, End: true } as const;
  const machine = new StateMachine({ StartAt: 'x', States: { x: task } }, { validationOptions: { noValidate: true } });
  const taskResourceLocalHandlers = { x: () => new Promise<never>(() => {}) };
  const failed = await machine.run(null, { overrides: { taskResourceLocalHandlers } }).result.catch((error) => error);
  return failed.cause.constructor;
}

let learned: ReturnType<typeof learnTimeoutError> | undefined;

/** States.Timeout, which States.TaskFailed does not match. */
export async function timeoutError(): Promise<Error> {
  learned ??= learnTimeoutError(); // only at the first timeout, because most executions have none
  return Object.assign(new (await learned)(), { message: '' });
}
