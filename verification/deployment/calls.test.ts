import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { CreateStateMachineCommand, DescribeExecutionCommand, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { beforeAll, describe, expect, it } from 'vitest';
import { readService } from '../../infrastructure/read.ts';
import { ACCOUNT, allow, call, deployed, REGION, ROOT, run, serviceRole, sfn, user } from './support/aws.ts';

const STAGE = 'calls';
let outputs: Record<string, string>;
const api = () => String(outputs.ApiUrl);

beforeAll(async () => {
  outputs = await deployed(STAGE, ['--param', 'exclusiveTargets=nightly-*,target-*']);
});

it('answers every call of docs/api.md, signed, as the page shows', async () => {
  const lines = consoleLines(await readFile('docs/api.md', 'utf8'));
  const { host, port, hostname } = new URL(api());
  const signed = `curl -s --retry 30 --retry-delay 1 --resolve ${hostname}:${port}:127.0.0.1 --aws-sigv4 aws:amz:${REGION}:execute-api --user ${ROOT.accessKeyId}:${ROOT.secretAccessKey}`;
  const script = [
    `call() { ${signed} "http://${host}/v1/$1" -H 'content-type: application/json' -d "$2"; }`,
    ...lines.flatMap(({ command }) => [
      command.startsWith('call() {')
        ? ':'
        : command.replace("curl -s 'http://127.0.0.1:3000", `${signed} 'http://${host}`),
      'echo; echo ----',
    ]),
  ];
  const { output } = await run('bash', ['-c', script.join('\n')]);
  const answers = output.split('----\n').map((text) => text.trim());
  const compared = lines.flatMap(({ answer }, index) => (answer ? [{ answer, given: answers[index] ?? '' }] : []));
  expect(compared.length).toBeGreaterThan(8);
  for (const { answer, given } of compared) expect(shape(given), given).toEqual(shape(answer));
});

/** The commands of a page, each with the JSON that the page shows. */
function consoleLines(text: string): { command: string; answer: string | undefined }[] {
  const blocks = [...text.matchAll(/```console\n(.*?)```/gs)].flatMap(([, block = '']) => block.trim().split('\n'));
  return blocks.flatMap((line, at) => {
    if (!line.startsWith('$ ')) return [];
    const next = blocks[at + 1];
    return [{ command: line.slice(2), answer: next?.startsWith('{') ? next : undefined }];
  });
}

/** What does not differ from call to call: the fields, and the values that the caller chose or that say how it ended. */
function shape(text: string): unknown {
  const own = /^(key|holder|code|status|state|outcome|path|size|repeated|released|alias|title|protocol|t)$/;
  return JSON.parse(text, (name, value) => {
    if (name === 'versionId') return undefined; // the bucket of `npm start` keeps no versions
    if (value === null || typeof value === 'object' || own.test(name)) return value;
    return typeof value;
  });
}

describe('who may call', () => {
  const calls: { method: string; path: string }[] = [];
  beforeAll(async () => {
    const { functions } = await readService();
    calls.push(...functions.flatMap(({ routes }) => routes));
  });
  const arn = ({ method, path }: { method: string; path: string }) =>
    `arn:aws:execute-api:${REGION}:${ACCOUNT}:${new URL(api()).hostname.split('.')[0]}/$default/${method}${path}`;
  const status = async ({ method, path }: { method: string; path: string }, credentials?: typeof ROOT) =>
    (await call(`${api()}${path}`, { method, credentials, ...(method === 'POST' && { body: {} }) })).status;

  it('no route lets in a caller without a signature, without a right, or with a right to every other route', async () => {
    expect(calls.length).toBeGreaterThan(15);
    const nobody = await user('nobody', []);
    const other = await user('other', []);
    for (const one of calls) {
      expect(await status(one), `unsigned ${one.path}`).toBe(403);
      expect(await status(one, nobody), `without rights ${one.path}`).toBe(403);
      const Resource = calls.filter((another) => another !== one).map(arn);
      await allow('other', [{ Effect: 'Allow', Action: 'execute-api:Invoke', Resource }]);
      expect(await status(one, other), `with other rights ${one.path}`).toBe(403);
    }
  });

  it('each route lets in a caller with the right to that route alone', async () => {
    const single = await user('single', []);
    for (const one of calls) {
      await allow('single', [{ Effect: 'Allow', Action: 'execute-api:Invoke', Resource: arn(one) }]);
      expect(await status(one, single), one.path).not.toBe(403);
    }
  });
});

it('exclusive runs five executions on one key, one after the other', async () => {
  const role = await serviceRole('target', 'states.amazonaws.com');
  const definition = JSON.stringify({ StartAt: 'Work', States: { Work: { Type: 'Wait', Seconds: 1, End: true } } });
  const { stateMachineArn } = await sfn.send(
    new CreateStateMachineCommand({ name: 'target-work', roleArn: role, definition }),
  );
  const input = JSON.stringify({ key: 'one key', ttlSeconds: 900, stateMachineArn, input: {} });
  const started = await Promise.all(
    Array.from({ length: 5 }, () =>
      sfn.send(new StartExecutionCommand({ stateMachineArn: String(outputs.ExclusiveStateMachineArn), input })),
    ),
  );
  const ends = await Promise.all(started.map(({ executionArn }) => ended(String(executionArn))));
  expect(ends.map(({ status }) => status)).toEqual(Array(5).fill('SUCCEEDED'));
  const { body } = await call(`${api()}/v1/leases?key=one%20key`, { method: 'GET', credentials: ROOT });
  expect(body).toMatchObject({ state: 'released' });
});

async function ended(executionArn: string) {
  for (;;) {
    const execution = await sfn.send(new DescribeExecutionCommand({ executionArn }));
    if (execution.status !== 'RUNNING') return execution;
    await delay(200);
  }
}
