import { afterEach, describe, expect, it, vi } from 'vitest';
import { eventResources, type Trigger, triggers } from '../../infrastructure/read-events.ts';
import { Events } from '../../local/events.ts';
import { Functions } from '../../local/functions.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { matches } from '../../local/pattern.ts';
import { rateMs, startSchedules } from '../../local/schedule.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const functionsOf = (handler: LambdaHandler, ...own: Trigger[]) =>
  new Functions(
    { functions: [{ name: 'taker', deployedName: 'holdfast-test-taker', timeoutSeconds: 60, triggers: own }] },
    { taker: handler },
  );

describe('event patterns', () => {
  const event = { source: 'aws.states', detail: { status: 'FAILED', name: 'nightly-1', cause: null } };
  it.each([
    [{ source: ['aws.states'] }, true],
    [{ source: ['aws.s3', 'aws.states'], detail: { status: ['FAILED'] } }, true],
    [{ source: ['aws.states'], detail: { status: ['SUCCEEDED'] } }, false],
    [{ detail: { name: [{ prefix: 'nightly-' }] } }, true],
    [{ detail: { name: [{ suffix: '-2' }] } }, false],
    [{ detail: { status: [{ 'anything-but': ['RUNNING'] }] } }, true],
    [{ detail: { status: [{ 'anything-but': 'FAILED' }] } }, false],
    [{ detail: { output: [{ exists: false }], cause: [null] } }, true],
    [{ 'detail-type': ['x'] }, false],
    [{ other: { field: ['x'] } }, false],
  ])('an event pattern %j matches or not: %s', (pattern, expected) => expect(matches(pattern, event)).toBe(expected));

  it('an event pattern with an unknown comparison is refused', () => {
    expect(() => matches({ detail: { n: [{ numeric: ['>', 1] }] } }, event)).toThrow('numeric');
  });
});

describe('a rule with a delay queue', () => {
  const resources = eventResources(
    {
      LateQueue: {
        Type: 'AWS::SQS::Queue',
        Properties: { DelaySeconds: 60, VisibilityTimeout: 30, RedrivePolicy: { maxReceiveCount: 2 } },
      },
      Off: { Type: 'AWS::Events::Rule', Properties: { State: 'DISABLED', EventPattern: { source: ['aws.states'] } } },
      Rule: {
        Type: 'AWS::Events::Rule',
        Properties: {
          EventPattern: { source: ['aws.states'] },
          Targets: [
            { Id: 'late', Arn: { 'Fn::GetAtt': ['LateQueue', 'Arn'] } },
            {
              Id: 'at-once',
              Arn: { 'Fn::GetAtt': ['OtherLambdaFunction', 'Arn'] },
              InputTransformer: {
                InputPathsMap: { a: '$.detail.a', source: '$.source' },
                InputTemplate: '{"a": <a>, "source": <source>, "again": true}',
              },
            },
          ],
        },
      },
    },
    (name) => name,
    { other: {} },
  );
  const [trigger] = triggers({ sqs: { arn: { 'Fn::GetAtt': ['LateQueue', 'Arn'] }, batchSize: 1 } });
  const put = { source: 'aws.states', 'detail-type': 'x', detail: { a: 1 } };

  it('a delay queue sends an event after the delay, and a second time', async () => {
    vi.useFakeTimers();
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => {});
    const taken: { Records: { body: string; attributes: object }[] }[] = [];
    const functions = functionsOf(async (event) => {
      taken.push(event as (typeof taken)[number]);
      throw new Error('not today');
    }, trigger as Trigger);
    const events = new Events(functions, resources);
    events.dispatch(put);
    events.dispatch({ ...put, source: 'other' });
    await vi.advanceTimersByTimeAsync(59_000);
    expect(taken).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(1000);
    expect(taken).toHaveLength(1);
    expect(JSON.parse(taken[0]?.Records[0]?.body ?? '')).toMatchObject(put);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(taken.map(({ Records: [record] }) => record?.attributes)).toMatchObject([
      { ApproximateReceiveCount: '1' },
      { ApproximateReceiveCount: '2' },
    ]);
    expect(complaints.mock.calls.at(-1)).toEqual(['LateQueue: dropped a message after 2 tries']);
  });

  it('a rule gives a function at once what the transformer makes of the event', async () => {
    const taken: unknown[] = [];
    const named = { name: 'other', deployedName: 'other', timeoutSeconds: 1, triggers: [] };
    const functions = new Functions({ functions: [named] }, { other: async (event) => void taken.push(event) });
    new Events(functions, resources).dispatch(put);
    await expect.poll(() => taken).toEqual([{ a: 1, source: 'aws.states', again: true }]);
  });

  it('a delay queue sends a message again that the function reports as failed', async () => {
    vi.useFakeTimers();
    vi.spyOn(console, 'error').mockImplementation(() => {});
    let count = 0;
    const functions = functionsOf(async (event) => {
      const [{ messageId = '' } = {}] = (event as { Records: { messageId: string }[] }).Records;
      return { batchItemFailures: count++ ? [] : [{ itemIdentifier: messageId }] };
    }, trigger as Trigger);
    new Events(functions, resources).dispatch(put);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(count).toBe(2);
  });

  it('a delay queue forgets its messages when it is stopped', async () => {
    vi.useFakeTimers();
    const events = new Events(
      functionsOf(async () => {}, trigger as Trigger),
      resources,
    );
    events.dispatch(put);
    events.stop();
    events.dispatch(put);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('schedules', () => {
  it('schedules fire at their rate with their input, until they are stopped', async () => {
    vi.useFakeTimers();
    const taken: unknown[] = [];
    const functions = functionsOf(
      async (event) => void taken.push(event),
      ...triggers({ schedule: 'rate(1 minute)' }),
      ...triggers({ schedule: { rate: ['rate(2 hours)', 'cron(0 12 * * ? *)'], input: { full: true } } }),
      ...triggers({ schedule: { rate: 'rate(1 minute)', enabled: false } }),
    );
    const schedules = startSchedules(functions);
    await vi.advanceTimersByTimeAsync(119_000);
    expect(taken).toMatchObject([{ 'detail-type': 'Scheduled Event', source: 'aws.events' }]);
    await vi.advanceTimersByTimeAsync(2 * 3_600_000 - 119_000);
    expect(taken).toHaveLength(121);
    expect(taken).toContainEqual({ full: true });
    schedules.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ['rate(1 minute)', 60_000],
    ['rate(15 minutes)', 900_000],
    ['rate(1 day)', 86_400_000],
    ['cron(0 12 * * ? *)', undefined],
  ])('the interval of a schedule is read, or found absent, in %s', (expression, expected) =>
    expect(rateMs(expression)).toBe(expected),
  );
});
