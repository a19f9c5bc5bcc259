import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deployCommand, liftFencesCommand } from '../../deployment/commands.ts';
import { mergedTags, readRequest } from '../../deployment/request.ts';
import { printed } from '../support/stack/cloudformation.ts';
import { released } from '../support/stack/template.ts';

const EMPTY = {
  ...{ stage: 'prod', parameters: [], reset: [], tags: [], untag: [] },
  ...{ allowedChanges: [], mayCreate: false, isPlan: true },
};

describe('options', () => {
  it.each([
    [
      { stage: 'Prod' },
      "the stage must be 1 to 19 characters of a-z, 0-9 and -, and not begin with code or bounded-code, not 'Prod'",
    ],
    [{ stage: '' }, 'the stage must be 1 to 19'],
    [{ stage: 'a-stage-of-20-letters' }, 'the stage must be 1 to 19'],
    [{ parameters: ['stage=prod'] }, 'set the stage with --stage'],
    [{ parameters: ['allowChange=leasesTable=a'] }, 'name the parameters that may change with --allow-change'],
    [{ parameters: ['memoryMb'] }, "written name=value, and not 'memoryMb'"],
    [{ parameters: ['memoryMB=512'] }, 'there is no parameter memoryMB: do you mean memoryMb?'],
    [{ reset: ['memoryMB'] }, 'there is no parameter memoryMB'],
    [{ reset: ['stage'] }, 'the stage has no default'],
    [{ reset: ['memoryMb'], parameters: ['memoryMb=512'] }, 'memoryMb is in both --param and --reset'],
    [{ allowedChanges: ['leaseTable'] }, 'do you mean leasesTable?'],
    [{ allowedChanges: ['memoryMb'] }, 'memoryMb may always change'],
    [{ allowedChanges: ['stage'] }, 'the stage of a stack can never change'],
    [{ tags: ['team'] }, "a tag is written key=value, and not 'team'"],
    [{ tags: ['=x'] }, 'a tag is written key=value'],
    [{ tags: ['aws:x=1'] }, 'the tag aws:x begins with aws:'],
    [{ tags: ['AWS:x=1'] }, 'begins with aws:'],
    [{ tags: [`${'k'.repeat(129)}=x`] }, 'a key of more than 128 characters'],
    [{ tags: [`k=${'v'.repeat(257)}`] }, 'a value of more than 256 characters'],
    [{ tags: ['k=a*b'] }, 'a character other than letters'],
    [{ tags: ['k#=a'] }, 'a character other than letters'],
    [{ tags: ['team=a', 'team=b'] }, 'the tag team is given twice'],
    [{ tags: ['team=a'], untag: ['team'] }, 'the tag team is in both --tag and --untag'],
    [{ roleArn: 'deployer' }, "--role-arn must be an ARN like arn:aws:iam::111122223333:role/name, not 'deployer'"],
  ])('a deployment is refused if its options have %j', (wrong, words) => {
    expect(() => readRequest(released, { ...EMPTY, ...wrong })).toThrow(words);
  });

  it('a deployment is refused if its options lack what it needs', () => {
    const tags = ['team=platform', 'cost centre=42/a:b', 'owner=équipe', 'empty=', 'team=platform'];
    const request = {
      ...EMPTY,
      parameters: ['memoryMb=256'],
      reset: ['logLevel'],
      allowedChanges: ['bucket'],
      tags,
      untag: ['old'],
    };
    expect(readRequest(released, request)).toEqual({
      stage: 'prod',
      given: { memoryMb: '256' },
      reset: ['logLevel'],
      allowedChanges: ['bucket'],
      mayCreate: false,
      isPlan: true,
      untag: ['old'],
      tags: [
        { Key: 'team', Value: 'platform' },
        { Key: 'cost centre', Value: '42/a:b' },
        { Key: 'owner', Value: 'équipe' },
        { Key: 'empty', Value: '' },
      ],
    });
  });

  it('a deployment is refused if it would give a stack too many tags', () => {
    const before = Array.from({ length: 49 }, (_, at) => ({ Key: `k${at}`, Value: 'v' }));
    const replaced = [
      { Key: 'k0', Value: 'new' },
      { Key: 'one', Value: '' },
    ];
    expect(mergedTags(before, { tags: replaced, untag: [] })).toHaveLength(50);
    const tags = [
      { Key: 'one', Value: '' },
      { Key: 'two', Value: '' },
    ];
    expect(() => mergedTags(before, { tags, untag: [] })).toThrow('51 tags');
    expect(mergedTags(before, { tags, untag: ['k0'] })).toHaveLength(50);
  });
});

describe('the commands', () => {
  /** The requests that arrived at AWS. */
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.url));
    response.writeHead(403).end();
  });
  let endpoint: string;
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const run = (args: string[], env: NodeJS.ProcessEnv = {}) =>
    new Promise<{ code: number | null; output: string }>((resolve) => {
      const settings = {
        env: {
          ...{ PATH: process.env.PATH, HOME: '/nonexistent', AWS_ENDPOINT_URL: endpoint },
          ...{ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', ...env },
        },
      };
      const child = execFile(process.execPath, ['deployment/main.ts', ...args], settings, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, output: stdout + stderr }),
      );
    });

  const wrong: [string[], string][] = [
    [['lift-fences'], 'usage: lift-fences --table NAME'],
    [['lift-fences', '--table', ''], '--table is empty'],
    [['lift-fences', '--table', 'a', '--table', 'b'], '--table is given twice'],
    [['lift-fences', '--table', 'a', '--region', 'nowhere'], "there is no region 'nowhere'"],
    [['lift-fences', '--table', 'a'], 'no region: give --region'],
    [['lift-fences', 'a'], "Unexpected argument 'a'"],
    [['deploy'], '--stage is missing'],
    [['deploy', '--stage', 'a', '--stage', 'b'], '--stage is given twice'],
    [['deploy', '--stage', 'a', '--region', ''], '--region is empty'],
    [['deploy', '--colour', 'a'], "Unknown option '--colour'"],
  ];
  /** Runs a command in this process, without a region. */
  const called = ([name = '', ...args]: string[], env: Record<string, string> = {}) =>
    printed(() => (name === 'deploy' ? deployCommand('release', args) : liftFencesCommand(args)), {
      ...{ AWS_ENDPOINT_URL: endpoint, AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined, ...env },
    });

  it.each(wrong)('the command %j is refused with 64, without a request to AWS', async (args, words) => {
    const { code, output } = await called(args);
    expect(output).toContain(words);
    expect(code).toBe(64);
    expect(asked).toEqual([]);
  });

  it('the commands name a caller that is refused, and do not blame Node', async () => {
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent("Object.defineProperty(process,'version',{value:'v20.20.0'})")}`;
    const { code, output } = await run(['lift-fences', '--table', 'a'], { AWS_REGION: 'eu-west-1', NODE_OPTIONS });
    expect(output).toMatch(/^AWS refuses these credentials: .*\n$/);
    expect(code).toBe(64);
    expect(asked.splice(0)).toEqual(['/']);
  });

  it('the commands say that there are no credentials, and how to set some', async () => {
    const none = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_EC2_METADATA_DISABLED: 'true' };
    const { code, output } = await run(['lift-fences', '--table', 'a'], { AWS_REGION: 'eu-west-1', ...none });
    expect(output).toMatch(/^there are no AWS credentials: set AWS_PROFILE, or .*\n$/);
    expect([code, asked]).toEqual([64, []]);
  });

  it('the commands say if AWS does not answer in a region without hosts', async () => {
    const lookup = `import dns from 'node:dns';
      dns.lookup = (host, _, answer) => answer(Object.assign(new Error('no ' + host), { code: 'ENOTFOUND' }));`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(lookup)}`;
    const env = { AWS_REGION: 'eu-wset-1', AWS_ENDPOINT_URL: '', NODE_OPTIONS };
    const { code, output } = await run(['lift-fences', '--table', 'a'], env);
    expect(output).toContain(
      "AWS does not answer in region 'eu-wset-1': is it mistyped? no sts.eu-wset-1.amazonaws.com",
    );
    expect(code).toBe(64);
  });

  it.each<[Record<string, string>, string]>([
    [{ AWS_REGION: 'EU-West-1' }, 'EU-West-1'],
    [{ AWS_REGION: '', AWS_DEFAULT_REGION: 'eu_west_1' }, 'eu_west_1'],
  ])('the command is refused with 64 if the environment is %j', async (env, region) => {
    const { code, output } = await called(['lift-fences', '--table', 'a'], env);
    expect(output).toContain(`there is no region '${region}'`);
    expect(code).toBe(64);
    expect(asked).toEqual([]);
  });
});
