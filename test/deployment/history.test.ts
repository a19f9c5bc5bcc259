import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { bundleProgram } from '../../build/bundle.ts';
import { historyOf } from '../../deployment/history.ts';
import { builtCli } from '../support/programs/cli.ts';
import { httpEvent, post, throughHttp } from '../support/stack/adapters.ts';
import { type CloudFormationDouble, idOf, startCloudFormation } from '../support/stack/cloudformation.ts';
import { type LogsDouble, startLogs } from '../support/stack/logs.ts';
import { isFull } from '../support/time/rounds.ts';

const STACK = 'holdfast-prod';
const OPERATOR = 'arn:aws:iam::123456789012:user/ann';
const FUNCTIONS = ['Acquire', 'Release', 'Withdraw', 'RepairQueues', 'ExecutionEnded'];
const groupOf = (name: string) => `/aws/lambda/${STACK}-${name}`;

let cli: Awaited<ReturnType<typeof builtCli>>;
let cloudFormation: CloudFormationDouble;
let logs: LogsDouble;
beforeAll(async () => {
  [cli, cloudFormation, logs] = await Promise.all([builtCli(), startCloudFormation(), startLogs()]);
  await bundleProgram('deployment/commands.ts', join(cli.folder, 'deploy.mjs'));
  const names = FUNCTIONS.map((name) => [`${name}FunctionName`, `${STACK}-${name[0]?.toLowerCase()}${name.slice(1)}`]);
  const outputs = { ...Object.fromEntries(names), AuditLogGroupName: 'audit' };
  const stack = { id: idOf(STACK, 0), status: 'UPDATE_COMPLETE', parameters: {}, tags: {}, outputs };
  cloudFormation.stacks.set(STACK, stack);
  for (const group of [...names.map(([, name]) => `/aws/lambda/${name}`), 'audit']) logs.groups.set(group, []);
});
afterAll(() => Promise.all([cli.remove(), cloudFormation.stop(), logs.stop()]));

beforeEach(() => {
  for (const group of logs.groups.keys()) logs.groups.set(group, []);
  logs.queries.length = 0;
  logs.outcome.status = 'Complete';
});

/** The command in a process of its own, with the files of a release. */
const history = async (...args: string[]) => {
  const env = {
    ...{ AWS_ENDPOINT_URL: cloudFormation.url, AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: logs.url },
    ...{ AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
  };
  const { code, stdout, stderr } = await cli.start(['history', ...args], { env }).exited;
  return { code, stderr, rows: stdout.trimEnd().split('\n') };
};

/** What the functions log while `act` runs, in their groups, at the instants of the world's clock. */
async function recorded(act: (world: Awaited<ReturnType<typeof recordedWorld>>) => Promise<unknown>) {
  vi.stubEnv('LOG_LEVEL', 'INFO');
  vi.stubEnv('METRICS_NAMESPACE', 'Holdfast');
  vi.resetModules(); // the logger reads its level when it is loaded
  const world = await recordedWorld();
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    const line = { ...JSON.parse(String(chunk)), timestamp: new Date(world.clock.now()).toISOString() };
    const group = ['breakLease', 'cancelWaiter'].includes(line.function) ? 'audit' : groupOf(line.function);
    logs.groups.get(group)?.push(JSON.stringify(line));
    return true;
  });
  try {
    await act(world);
  } finally {
    write.mockRestore();
    vi.unstubAllEnvs();
    vi.resetModules();
    await world.steps.stop();
  }
}

async function recordedWorld() {
  const { lineWorld } = await import('../support/worlds/line.ts');
  const world = await lineWorld();
  world.clock.set(Date.now() - 86_400_000);
  const { handlers } = world;
  const asOperator = (payload: object) =>
    httpEvent('POST', { body: JSON.stringify(payload), authorizer: { iam: { userArn: OPERATOR } } });
  return {
    ...world,
    take: async (input: object) =>
      (await post(handlers.acquire, { ttlSeconds: 7200, ...input })).body as { leaseId: string; fence: number },
    letGo: (key: string, { leaseId }: { leaseId: string }) => post(handlers.release, { key, leaseId }),
    breakAs: (payload: object) => throughHttp(handlers.breakLease, asOperator(payload)),
    cancelAs: (payload: object) => throughHttp(handlers.cancelWaiter, asOperator(payload)),
  };
}

describe('holdfast history', () => {
  it('history names the release of each holder, even of two within a second', () => {
    const line = (timestamp: string, more: object) => JSON.stringify({ key: 'k', timestamp, ...more });
    const at = (seconds: string) => `2026-11-29T10:00:${seconds}Z`;
    const ended = { holder: 'one', fence: 1, ended: 'released', at: at('03.000') };
    const granted = { message: 'answered', function: 'acquire' };
    const released = { message: 'answered', function: 'release', released: true };
    const events = historyOf('k', [
      line(at('02.000'), { ...granted, holder: 'one', fence: 1 }),
      line(at('03.000'), released),
      line(at('03.005'), { ...granted, holder: 'two', fence: 2, previous: ended }),
      line(at('03.500'), released),
    ]);
    expect(events.map(({ event, holder }) => [event, holder])).toEqual([
      ['granted', 'one'],
      ['released', 'one'],
      ['granted', 'two'],
      ['released', null],
    ]);
  });

  it('history shows the holders of a key, their waits, and how each grant ended', async () => {
    let fences: number[] = [];
    await recorded(async ({ take, letGo, breakAs, park, grantOf, clock }) => {
      const first = await take({ key: 'migrate', holder: 'deploy/311' });
      const { task } = await park({ key: 'migrate', holder: 'deploy/312', ttlSeconds: 300 });
      await take({ key: 'migrate', holder: 'refused' });
      await take({ key: 'other', holder: 'deploy/1' });
      clock.advance(3_480_000);
      await breakAs({ key: 'migrate', fence: first.fence });
      clock.advance(360_000);
      const third = await take({ key: 'migrate', holder: 'deploy/313' });
      clock.advance(5000);
      await letGo('migrate', third);
      fences = [first.fence, grantOf(task).fence, third.fence];
    });
    const [one, two, three] = fences;
    const { code, rows, stderr } = await history('migrate', '--stage', 'prod', '--since', '8d');
    expect(stderr).toBe('');
    expect(rows.map((line) => line.replace(/^\S+Z +/, '').replace(/ +/g, ' '))).toEqual(
      [
        'AT EVENT HOLDER FENCE BY',
        ` granted deploy/311 ${one} -`,
        ` broken deploy/311 ${one} ${OPERATOR}`,
        ` granted deploy/312 ${two} waited 58m`,
        ` expired deploy/312 ${two} seen by deploy/313`,
        ` granted deploy/313 ${three} -`,
        ' released - - -',
      ].map((line) => line.trim()),
    );
    expect(rows.slice(1).every((line) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}/.test(line))).toBe(true);
    expect(code).toBe(0);
    const [query] = logs.queries;
    expect(query?.logGroupNames).toEqual([...logs.groups.keys()]);
    expect((query?.endTime ?? 0) - (query?.startTime ?? 0)).toBeCloseTo(8 * 86_400, -1);
  });

  it.runIf(isFull)('history shows pending breaks, withdrawn and cancelled requests, and each grant once', async () => {
    await recorded(async ({ take, letGo, breakAs, cancelAs, park, joinLine, handlers, clock }) => {
      const first = await take({ key: 'k', holder: 'first', data: 'x' });
      await joinLine('k', 'withdrawn');
      await joinLine('k', 'second');
      const { ticket } = await park({ key: 'k', holder: 'third' });
      await post(handlers.withdraw, { key: 'k', holder: 'caller', requestId: 'withdrawn' });
      await cancelAs({ key: 'k', ticket });
      await breakAs({ key: 'k', fence: first.fence, wait: true });
      clock.advance(1000);
      await letGo('k', first);
      const second = await take({ key: 'k', holder: 'caller', requestId: 'second' });
      await take({ key: 'k', holder: 'caller', requestId: 'second' });
      clock.advance(1000);
      await letGo('k', second);
      await take({ key: 'k', holder: 'fourth' });
    });
    const { rows } = await history('k', '--stage', 'prod', '--json');
    const events = rows.map((line) => JSON.parse(line));
    expect(events.map(({ event, holder, by }) => [event, holder, by])).toEqual([
      ['granted', 'first', null],
      ['ending', 'first', OPERATOR],
      ['broken', 'first', OPERATOR],
      ['withdrawn', 'caller', null],
      ['cancelled', null, OPERATOR],
      ['granted', 'caller', 'waited 1s'],
      ['released', 'caller', null],
      ['granted', 'fourth', null],
    ]);
    const { rows: last } = await history('k', '--stage', 'prod', '--json', '--limit', '1');
    expect(last.map((line) => JSON.parse(line))).toEqual(events.slice(-1));
  });

  it.runIf(isFull)('history finds a key with any characters, and says if there is none', async () => {
    const key = 'team-a/a "key" \\ of é';
    await recorded(({ take }) => take({ key, holder: 'h' }));
    expect((await history(key, '--stage', 'prod')).rows).toHaveLength(2);
    const none = await history('nothing', '--stage', 'prod');
    expect(none).toMatchObject({ code: 0, stderr: expect.stringContaining('the logs do not name nothing since ') });
  });

  it.runIf(isFull)('history exits with 1 if the query fails, and with 64 for misuse', async () => {
    logs.outcome.status = 'Timeout';
    const failed = await history('k', '--stage', 'prod');
    expect(failed).toMatchObject({ code: 1, stderr: 'the query of the logs ended as Timeout\n' });
    logs.queries.length = 0;
    for (const [args, words] of [
      [['k'], 'usage: history KEY --stage NAME'],
      [['k', '--stage', 'none'], 'there is no stack holdfast-none'],
      [['k', '--stage', 'prod', '--since', '7'], "--since must be a duration such as 90m, 12h or 7d, not '7'"],
      [['k', '--stage', 'prod', '--limit', '0'], '--limit must be a whole number'],
    ] as const) {
      const refused = await history(...args);
      expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining(words) });
    }
    expect(logs.queries).toEqual([]);
  });
});
