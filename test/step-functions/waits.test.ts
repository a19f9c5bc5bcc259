import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StatesError } from '../../local/step-functions/errors.ts';
import { type Definition, interpret } from '../../local/step-functions/interpreter.ts';
import type { Json } from '../../local/step-functions/json.ts';
import { example } from '../support/stack/exclusion.ts';

const ENTERED_AT = Date.parse('2026-01-01T00:00:00.900Z');
/** A Wait by timestamp would lose the milliseconds of this time. */
const EXPIRES_AT = '2026-01-01T00:05:00.800Z';
const GRANT = { outcome: 'run', leaseId: 'l', fence: 1, expiresAt: EXPIRES_AT, remainingMs: 299_900, sleepSeconds: 4 };

// Real waits would take minutes.
beforeEach(() => {
  vi.useFakeTimers({ now: ENTERED_AT });
});
afterEach(() => {
  // The spies go first, because a spy would restore the timers of the test.
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Plays a definition whose task Work ends by an error after which its function may still work. */
function play(
  definition: object,
  { input = { key: 'k', slot: 's', input: 'hello' }, secondMs = 1000 }: { input?: Json; secondMs?: number } = {},
) {
  const visited: string[] = [];
  const { result, abort } = interpret({
    definition: definition as Definition,
    input,
    context: { Execution: { Id: 'arn', RedriveCount: 0 } },
    perform: async ({ state, resource }) => {
      if (state === 'Work') throw new StatesError('Lambda.ServiceException', 'why');
      return resource.endsWith('.waitForTaskToken') ? GRANT : { Payload: GRANT };
    },
    entered: (state) => visited.push(state),
    secondMs,
  });
  const failure = result.then(
    () => undefined,
    (thrown: Error) => ((thrown.cause ?? thrown) as Error).name,
  );
  /** Lets time pass until a moment. @returns the state that was entered last */
  const stateAt = async (time: number) => {
    await vi.advanceTimersByTimeAsync(time - Date.now());
    return visited.at(-1);
  };
  return { failure, result, abort, stateAt };
}

const wait = (fields: object) => ({
  StartAt: 'Wait',
  States: { Wait: { Type: 'Wait', Next: 'Done', ...fields }, Done: { Type: 'Pass', End: true } },
});

/** The state of the guide, after a grant and before a failure. */
async function ofTheGuide() {
  const guide = await readFile('docs/step-functions.md', 'utf8');
  const [, state = ''] = /```json\n("Wait for the expiry": .*?)\n```/s.exec(guide) ?? [];
  const Grant = { Type: 'Pass', Result: GRANT, ResultPath: '$.grant', Next: 'Wait for the expiry' };
  const Failed = { Type: 'Fail', Error: 'Lambda.ServiceException' };
  return { StartAt: 'Grant', States: { Grant, ...JSON.parse(`{${state}}`), Failed } };
}

const values = Object.fromEntries(
  [
    'AcquireFunctionArn',
    'ReleaseFunctionArn',
    'RateReserveFunctionArn',
    'WorkFunctionArn',
    'OnceBeginFunctionArn',
    'OnceCompleteFunctionArn',
  ].map((name) => [name, 'arn:aws:lambda:us-east-1:000000000000:function:f']),
);

describe.each([
  ['the example retry', () => example('retry', values)],
  ['the example parked', () => example('parked', values)],
  ['the example once', () => example('once', values)],
  ['the guide', ofTheGuide],
])('the wait for the expiry in %s', (name, definition) => {
  it(`${name} ends its wait within a second after the expiry, never before`, async () => {
    const { stateAt, failure } = play(await definition());
    const expiresAt = Date.parse(EXPIRES_AT);
    expect(await stateAt(expiresAt - 1)).toBe('Wait for the expiry');
    expect(await stateAt(expiresAt + 999)).toBe('Failed');
    expect(await failure).toBe('Lambda.ServiceException');
  });

  it(`${name} does not wait if the lease has expired`, async () => {
    vi.setSystemTime(Date.parse(EXPIRES_AT) + 5000);
    const { States } = (await definition()) as { States: Record<string, object> };
    const input = {
      grant: GRANT,
      begin: { answer: GRANT },
      failure: { Error: 'Lambda.ServiceException', Cause: 'why' },
    };
    const { failure } = play({ StartAt: 'Wait for the expiry', States }, { input });
    await vi.advanceTimersByTimeAsync(0);
    expect(await failure).toBe('Lambda.ServiceException');
  });
});

it('the example rate waits for the whole seconds of its reservation, and then works', async () => {
  const { stateAt, failure } = play(await example('rate', values));
  expect(await stateAt(ENTERED_AT + 3999)).toBe('Wait for the start');
  expect(await stateAt(ENTERED_AT + 4000)).toBe('Work');
  expect(await failure).toBe('Lambda.ServiceException');
});

describe('Wait states of the local stack', () => {
  it.each([
    ['Timestamp', { Timestamp: EXPIRES_AT }],
    ['TimestampPath', { TimestampPath: '$.at' }],
    ['Timestamp in JSONata', { QueryLanguage: 'JSONata', Timestamp: '{% $states.input.at %}' }],
  ])('a Wait by %s loses the milliseconds as on AWS, and passes its input', async (_, fields) => {
    const { stateAt, result } = play(wait(fields), { input: { at: EXPIRES_AT, kept: [1] } });
    expect(await stateAt(Date.parse('2026-01-01T00:04:59.999Z'))).toBe('Wait');
    expect(await stateAt(Date.parse('2026-01-01T00:05:00.000Z'))).toBe('Done');
    expect(await result).toEqual({ at: EXPIRES_AT, kept: [1] });
  });

  it('a Wait does not leave a timer behind when its execution has ended', async () => {
    const [begin, clear] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
    const { result, abort } = play(wait({ Timestamp: EXPIRES_AT }));
    await vi.advanceTimersByTimeAsync(1);
    const timers = begin.mock.calls.flatMap(([, ms = 0], nth) => (ms > 60_000 ? [begin.mock.results[nth]?.value] : []));
    const ended = result.catch(({ name }: Error) => name);
    abort();
    expect(await ended).toBe('ExecutionAbortedError');
    const left = timers.filter((timer) => !clear.mock.calls.some(([cleared]) => cleared === timer));
    // The library keeps the timer of the task itself, which delays nothing.
    expect([timers.length, left.length]).toEqual([2, 1]);
  });
});
