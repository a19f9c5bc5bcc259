import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { StatesError } from '../../local/step-functions/errors.ts';
import { type Definition, interpret, type State } from '../../local/step-functions/interpreter.ts';
import { definition } from '../support/emulators/states.ts';
import { example } from '../support/stack/exclusion.ts';

const arn = (name: string) => `arn:aws:lambda:us-east-1:000000000000:function:${name}`;
const VALUES = {
  AcquireFunctionArn: arn('acquire'),
  ReleaseFunctionArn: arn('release'),
  RateReserveFunctionArn: arn('rateReserve'),
  WorkFunctionArn: arn('work'),
  Partition: 'aws',
};
const EXPIRES_AT = '2020-01-01T00:10:00.000Z';
const GRANT = { leaseId: 'l', fence: 1, expiresAt: EXPIRES_AT, remainingMs: 600_000 };

/** The parts from which `Acquire with the fields` builds its JSON. */
const JSON_PARTS = { requestId: '{"requestId":"', taskToken: '","taskToken":"', end: '"}' };

type Machine = 'retry' | 'parked' | 'exclusive';

const load = (machine: Machine) =>
  machine === 'exclusive'
    ? definition('functions/leases/exclusive.asl.json', VALUES)
    : example(machine, VALUES as Record<string, string>);

interface Played {
  /** The states that fail, each with its error, or with its error and cause. */
  failing?: Record<string, string | [error: string, cause: string]>;
  input?: object;
  startAt?: string;
  redriveCount?: number;
}

/** Plays a definition while time stands still. Its functions answer at once. */
async function play(machine: Machine, { failing = {}, input = {}, startAt, redriveCount = 0 }: Played) {
  const states = await load(machine);
  const visited: string[] = [];
  /** The parameters of each task, by its state. */
  const asked: Record<string, State & { Payload: State }> = {};
  const timeouts: Record<string, number | undefined> = {};
  const { result } = interpret({
    definition: { ...states, ...(startAt && { StartAt: startAt }) } as unknown as Definition,
    // JSON drops the fields that a test sets to undefined.
    input: JSON.parse(
      JSON.stringify({
        ...{ key: 'k', ttlSeconds: 600, stateMachineArn: 'arn:aws:states:us-east-1:000000000000:stateMachine:t' },
        ...{ input: {}, ...input },
      }),
    ),
    context: {
      Execution: { Id: 'arn:aws:states:us-east-1:000000000000:execution:m:one', RedriveCount: redriveCount },
    },
    perform: async ({ state, parameters, timeoutMs }) => {
      asked[state] = parameters as (typeof asked)[string];
      timeouts[state] = timeoutMs;
      const [error, cause = 'why'] = [failing[state] ?? []].flat();
      if (error) throw new StatesError(error, cause);
      return machine === 'retry' ? { Payload: GRANT } : { ...GRANT, Output: {}, Payload: { sleepSeconds: 0 } };
    },
    entered: (state) => visited.push(state),
    ...{ secondMs: 0.1, limitSecondMs: 1 },
    now: () => new Date('2020-01-01T00:00:00.000Z'),
  });
  const failure = await result.then(
    () => undefined,
    (thrown: Error) => (thrown.cause ?? thrown) as Error,
  );
  return { visited, asked, timeouts, error: failure?.name, cause: failure?.message };
}

describe.each(['retry', 'parked'] as const)('the example %s', (machine) => {
  it.each([
    'States.Timeout',
    'States.HeartbeatTimeout',
    'Lambda.ClientExecutionTimeoutException',
    'Lambda.ServiceException',
    'Lambda.AWSLambdaException',
    'Lambda.SdkClientException',
  ])('the example keeps the lease until it expires when the work ends by %s', async (name) => {
    const { visited, error } = await play(machine, { failing: { Work: name } });
    expect(visited.slice(visited.indexOf('Work'), visited.indexOf('Work') + 3)).toEqual([
      ...['Work', 'Wait for the expiry', 'Whose error?'],
    ]);
    expect(visited.filter((state) => state.startsWith('Release'))).toEqual([]);
    expect(error).toBe(name.startsWith('States.') ? `Work.${name}` : name);
  });

  it.each([
    ['Boom', 'Boom'],
    ['LeaseLost', 'LeaseLost'],
    ['Lambda.Unknown', 'Lambda.Unknown'],
    ['Sandbox.Timedout', 'Sandbox.Timedout'],
    ['Lambda.TooManyRequestsException', 'Lambda.TooManyRequestsException'],
    ['Lambda.ResourceNotFoundException', 'Lambda.ResourceNotFoundException'],
  ])('the example releases the lease when the work ends by %s', async (name, failed) => {
    const { visited, error } = await play(machine, { failing: { Work: name } });
    expect(visited).toContain('Release after failure');
    expect(visited).not.toContain('Wait for the expiry');
    expect(error).toBe(failed);
  });

  it('the example has one number of seconds for timeout, grace and time left', async () => {
    const { asked, timeouts } = await play(machine, {});
    const graceSeconds = Number(asked.Acquire?.Payload.graceSeconds);
    expect(graceSeconds).toBe(60);
    expect(timeouts.Work).toBe(600 - graceSeconds);
  });
});

describe('the wrapper exclusive', () => {
  it.each([false, true])(
    'the wrapper without ttlSeconds binds the lease without a time limit (passFence: %s)',
    async (passFence) => {
      const { visited, asked, timeouts, error, cause } = await play('exclusive', {
        input: { ttlSeconds: undefined, passFence },
      });
      expect([error, cause]).toEqual([undefined, undefined]);
      expect(asked['Acquire with the fields']?.Payload).toMatchObject({ key: 'k', bound: true });
      expect(asked['Acquire with the fields']?.Payload).not.toHaveProperty('ttlSeconds');
      expect(timeouts['Run without a limit']).toBeUndefined();
      expect(visited.filter((state) => /Time left|Is there time|Too late|^Run$/.test(state))).toEqual([]);
      if (!passFence) expect(visited).toHaveLength(8);
    },
  );

  it.each<[given: object, cause: string]>([
    [{ limt: 5 }, 'limt: is not a known field'],
    [{ limt: 5, weigth: 4 }, 'limt: is not a known field; weigth: is not a known field'],
    [{ ttlSeconds: undefined, ttlSecond: 60 }, 'ttlSecond: is not a known field'],
    [{ key: undefined }, 'key: is missing'],
    [{ stateMachineArn: undefined, limt: 5 }, 'limt: is not a known field; stateMachineArn: is missing'],
    [{ stateMachineArn: 5 }, 'stateMachineArn: must be the ARN of a state machine'],
    [{ stateMachineArn: 'nightly' }, 'stateMachineArn: must be the ARN of a state machine'],
    [{ parkSeconds: 'x' }, 'parkSeconds: must be a number'],
    [{ passFence: 'yes' }, 'passFence: must be true or false'],
    [{ rates: { limit: 2 } }, 'rates: must be a list'],
    [{ rates: [], rateWaitSeconds: '1m' }, 'rateWaitSeconds: must be a number'],
    [{ holdfast: 'x' }, 'holdfast: must be an object'],
    [{ passFence: true, input: [1] }, 'input: must be an object with passFence'],
    [{ passFence: true, input: null, ttlSeconds: undefined }, 'input: must be an object with passFence'],
  ])('the wrapper refuses an input with %j before it asks for a lease', async (given, cause) => {
    const { visited, asked, error, cause: text } = await play('exclusive', { input: given });
    const { key, ...why } = JSON.parse(text ?? '');
    expect({ asked, error, why }).toEqual({ asked: {}, error: 'InvalidRequest', why: { code: error, detail: cause } });
    expect(key).toBe('key' in given ? undefined : 'k');
    expect(visited).toEqual(['Defaults', 'Prepare', 'Optional fields?', 'Say why', 'Failed']);
  });

  it("the wrapper accepts each field that its guide lists, and a state machine's id", async () => {
    const page = await readFile('docs/step-functions.md', 'utf8');
    const [, table = ''] = /^\| field \| default \| meaning \|\n([\s\S]*?)\n\n/m.exec(page) ?? [];
    const fields = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) => cell.match(/\w+/g) ?? []);
    expect(fields.length).toBeGreaterThan(9);
    const given = {
      ttlSeconds: 600,
      parkSeconds: 60,
      passFence: false,
      graceSeconds: 0,
      input: {},
      rates: [],
      rateWaitSeconds: 0,
    };
    const all: Record<string, unknown> = Object.fromEntries(
      [...fields, 'AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID'].map((field) => [field, 'x']),
    );
    const stateMachineArn = 'arn:aws:states:us-east-1:000000000000:stateMachine:t';
    const { error } = await play('exclusive', { input: { ...all, ...given, stateMachineArn } });
    expect(error).toBeUndefined();
  });

  const absent = { 'Stop the target': 'Sfn.ExecutionDoesNotExistException' };

  it.each([
    'StepFunctions.StateMachineDoesNotExistException',
    'StepFunctions.StateMachineDeletingException',
    'StepFunctions.InvalidArnException',
    'StepFunctions.InvalidNameException',
    'StepFunctions.InvalidExecutionInputException',
    'StepFunctions.ValidationException',
    'StepFunctions.ExecutionLimitExceeded',
    'StepFunctions.ExecutionLimitExceededException',
    'StepFunctions.ThrottlingException',
    'StepFunctions.AccessDeniedException',
    'StepFunctions.KmsAccessDeniedException',
    'StepFunctions.KmsInvalidStateException',
    'StepFunctions.KmsThrottlingException',
  ])('the wrapper releases the lease when its start was refused by %s', async (name) => {
    for (const input of [{}, { graceSeconds: 60 }]) {
      const { visited, error } = await play('exclusive', { failing: { Run: name, ...absent }, input });
      expect(visited.slice(visited.indexOf('Run'))).toContain('Release after failure');
      expect(error).toBe(name);
    }
  });

  const denied =
    'User is not authorized (Service: AWSStepFunctions; Status Code: 400; Error Code: AccessDeniedException)';
  const failed = 'null (Service: AWSStepFunctions; Status Code: 500; Error Code: InternalFailure)';
  it.each([
    ['releases', 'StepFunctions.AWSStepFunctionsException', 'status 400', denied],
    [
      'releases',
      'StepFunctions.SfnException',
      'status 400',
      'Rate exceeded (Service: Sfn, Status Code: 400, Request ID: 1)',
    ],
    ['keeps', 'StepFunctions.AWSStepFunctionsException', 'status 500', failed],
    ['keeps', 'StepFunctions.SfnException', 'no status', 'Unable to read the answer'],
    ['keeps', 'StepFunctions.InternalServerException', 'status 500', failed],
    ['keeps', 'StepFunctions.ServiceUnavailable', 'status 503', 'Status Code: 503'],
    ['keeps', 'StepFunctions.SdkClientException', 'no status', 'Unable to execute HTTP request: Read timed out'],
    ['keeps', 'StepFunctions.ExecutionAlreadyExistsException', 'status 400', 'Status Code: 400'],
    ['keeps', 'States.Timeout', 'no status', ''],
    ['keeps', 'States.TaskFailed', 'no status', ''],
  ])('the wrapper %s the lease when its start ended by %s with %s', async (outcome, name, _, cause) => {
    const { visited, error } = await play('exclusive', { failing: { Run: [name, cause], ...absent } });
    // A start that was not refused may be on its way. The next holder must not begin beside its target.
    const after = visited.slice(visited.indexOf('Run'));
    expect(after).toContain('Was the start refused?');
    expect(after.includes('Release after failure')).toBe(outcome === 'releases');
    expect(error).toBe(name.startsWith('States.') ? `Exclusive.${name}` : name);
  });

  it('the wrapper passes graceSeconds to acquire only if its input has it', async () => {
    const grace = { graceSeconds: 120 };
    for (const input of [grace, { ...grace, limit: 2 }, { ...grace, mode: 'shared' }]) {
      const { asked } = await play('exclusive', { input });
      expect(asked['Acquire with the fields']?.Payload).toMatchObject(input);
    }
    for (const input of [{}, { limit: 2 }]) {
      const { asked } = await play('exclusive', { input });
      expect((asked.Acquire ?? asked['Acquire with the fields'])?.Payload).not.toHaveProperty('graceSeconds');
    }
  });

  it('the wrapper ends its target graceSeconds before the lease expires', async () => {
    const { timeouts } = await play('exclusive', { input: { graceSeconds: 120 } });
    expect(timeouts.Run).toBe(600 - 120 - 1);
    const { visited, error } = await play('exclusive', { input: { graceSeconds: 600 } });
    expect(visited).not.toContain('Run');
    expect(visited).toContain('Release after failure');
    expect(error).toBe('Exclusive.TooLate');
  });

  it.each([
    ['a failure of its target', 'States.TaskFailed', 'Boom'],
    ['the end of its time', 'States.Timeout', 'Exclusive.States.Timeout'],
  ])('the wrapper with graceSeconds does not release the lease after %s', async (_, name, expected) => {
    const cause = JSON.stringify({ ExecutionArn: 'arn:t', Error: 'Boom', Cause: 'why', Status: 'FAILED' });
    const failing: Played['failing'] = { Run: [name, name === 'States.TaskFailed' ? cause : ''] };
    for (const [graceSeconds, releases] of [
      [60, false],
      [0, true],
      [undefined, true],
    ] as const) {
      const input = graceSeconds === undefined ? {} : { graceSeconds };
      const { visited, error } = await play('exclusive', { failing, input });
      expect(visited).toContain('Stop the target');
      expect(visited.includes('Release after failure')).toBe(releases);
      expect(error).toBe(expected);
    }
  });

  it('the wrapper with graceSeconds releases the lease after a success', async () => {
    const { visited, asked, error } = await play('exclusive', { input: { graceSeconds: 60 } });
    expect(visited.at(-1)).toBe('Release');
    expect(asked.Release?.Payload).toEqual({ key: 'k', leaseId: 'l' });
    expect(error).toBeUndefined();
  });
});

it.each([
  ['retry', 'Acquire', { request: { id: 'r' } }],
  ['parked', 'Acquire', { request: { id: 'r' } }],
  ['exclusive', 'Acquire', { request: { key: 'k', holder: 'h', ttlSeconds: 9, parkSeconds: 9 } }],
  ['exclusive', 'Acquire with the fields', { asked: { key: 'k' }, json: JSON_PARTS }],
  [
    'exclusive',
    'Reserve',
    { request: { key: 'k', holder: 'h', rates: [], rateWaitSeconds: 1 }, grant: { leaseId: 'l' } },
  ],
] as const)('a redrive of %s that begins at %s asks with another request id', async (machine, startAt, input) => {
  const requestId = async (redriveCount: number) => {
    const state = { ...input, requestId: 'r', prepared: { acquireSeconds: 9 }, target: 'arn:t' };
    const { asked } = await play(machine, {
      startAt,
      input: state,
      redriveCount,
      failing: { [startAt]: 'Refused' },
    });
    return asked[startAt]?.Payload.requestId;
  };
  expect(await requestId(0)).toBe('r-0');
  expect(await requestId(1)).toBe('r-1');
});
