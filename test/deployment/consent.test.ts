import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ask } from '../../deployment/ask.ts';
import { deployCommand, drainCommand, parametersCommand, resumeCommand } from '../../deployment/commands.ts';
import { type CloudFormationDouble, printed, startCloudFormation } from '../support/stack/cloudformation.ts';
import { released } from '../support/stack/template.ts';
import { aFew } from '../support/time/rounds.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-consent-'));
  const text = JSON.stringify(released);
  await writeFile(join(folder, 'template.json'), text);
  await writeFile(join(folder, 'SHA256SUMS'), `${createHash('sha256').update(text).digest('hex')}  template.json\n`);
  await mkdir(join(folder, 'functions'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let double: CloudFormationDouble;
beforeEach(async () => {
  double = await startCloudFormation();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await double.stop();
});

const ENVIRONMENT = {
  ...{ HOME: '/nonexistent', AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
};
const executed = () => double.actions.filter((action) => action === 'ExecuteChangeSet');

it.each([
  ...['', 'n', 'yess'].map((answer) => [answer, false] as const),
  ...['y', 'YES'].map((answer) => [answer, true] as const),
])("the answer '%s' to the question of a command means %s", async (answer, isYes) => {
  const stdin = new PassThrough();
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as never);
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const asked = ask('Deploy these changes?');
  stdin.write(`${answer}\n`);
  expect(await asked).toBe(isYes);
  expect(write.mock.calls.join()).toContain('Deploy these changes? [y/N]');
});

describe('a deployment at a terminal', () => {
  /** Runs a command of the release in this folder: the folder, and the arguments of the command. */
  const PROGRAM = `console.log('pid', process.pid); const { deployCommand } = await import('./deployment/commands.ts');
    const [folder, ...args] = process.argv.slice(1); process.exit(await deployCommand(folder, args));`;

  /** Types a text at the terminal, sends a signal to the process of the command, or closes the terminal. */
  type Answer = { text: string } | { signal: NodeJS.Signals } | 'closes';

  /** Deploys at a new terminal, and answers the question of the command. */
  const answerAtTerminal = (answer: Answer) =>
    new Promise<{ code: number | null; output: string }>((resolve) => {
      const words = ['--input-type=module', '-e', PROGRAM, folder, '--stage', 'prod'];
      const quoted = [process.execPath, ...words].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
      const env = { PATH: process.env.PATH, AWS_ENDPOINT_URL: double.url, ...ENVIRONMENT };
      const child = spawn('script', ['-qfec', quoted.join(' '), '/dev/null'], { env, stdio: 'pipe' });
      let output = '';
      let isAnswered = false;
      child.stdout.setEncoding('utf8').on('data', (text) => {
        output += text;
        if (isAnswered || !output.includes('[y/N]')) return;
        isAnswered = true;
        if (answer === 'closes') child.kill('SIGKILL');
        else if ('text' in answer) child.stdin.write(answer.text);
        else process.kill(Number(/pid (\d+)/.exec(output)?.[1]), answer.signal);
      });
      child.on('close', (code) => resolve({ code, output }));
    });

  it('after a yes at the terminal, a deployment creates the stack without --create', async () => {
    const { code, output } = await answerAtTerminal({ text: 'y\n' });
    expect(code, output).toBe(0);
    expect(double.stacks.get('holdfast-prod')?.status).toBe('UPDATE_COMPLETE');
  });

  const INTERRUPTIONS: [string, Answer][] = [
    ['Ctrl-C', { text: '\x03' }],
    ['Ctrl-D', { text: '\x04' }],
    ['SIGINT', { signal: 'SIGINT' }],
    ['SIGTERM', { signal: 'SIGTERM' }],
    ['the end of the terminal', 'closes'],
  ];
  it.each(aFew(1, INTERRUPTIONS))(
    'a deployment that %s interrupts at the question leaves nothing behind',
    async (_, answer) => {
      const { code, output } = await answerAtTerminal(answer);
      if (answer !== 'closes') expect(code, output).toBe(1);
      await expect.poll(() => [double.changeSets(), ...double.stacks.keys()]).toEqual([0]);
      expect(double.actions).toEqual(expect.arrayContaining(['CreateChangeSet', 'DeleteStack']));
      expect(executed()).toEqual([]);
    },
  );
});

describe('a command without a terminal', () => {
  const COMMANDS = {
    deployCommand: (args: string[]) => deployCommand(folder, args),
    ...{ drainCommand, parametersCommand, resumeCommand },
  };
  const ELSEWHERE = { AWS_ENDPOINT_URL_DYNAMODB: undefined, AWS_ENDPOINT_URL_S3: undefined };
  const run = (name: keyof typeof COMMANDS, ...args: string[]) =>
    printed(() => COMMANDS[name](args), { ...ENVIRONMENT, ...ELSEWHERE, AWS_ENDPOINT_URL: double.url });

  it('a command without a terminal is refused without --yes, except with --plan', async () => {
    for (const name of ['deployCommand', 'drainCommand', 'resumeCommand'] as const) {
      const { code, output } = await run(name, '--stage', 'prod');
      expect(output, name).toContain('there is no terminal to ask at: add --yes');
      expect(code, name).toBe(64);
    }
    expect(double.actions).toEqual([]);
    expect(await run('deployCommand', '--stage', 'prod', '--plan')).toMatchObject({ code: 0 });
  });

  it('a deployment without a terminal says what comes next', async () => {
    const refused = await run('deployCommand', '--stage', 'prod', '--yes');
    expect(refused).toMatchObject({
      code: 64,
      output: expect.stringContaining('region eu-west-1. To create the stack'),
    });
    const { code, output } = await run('deployCommand', '--stage', 'prod', '--yes', '--create');
    expect(code, output).toBe(0);
    expect(output).toContain('export HOLDFAST_ENDPOINT=https://api.test\n  holdfast doctor\n');
    expect(output).toContain('alarmTopicArn is empty');
    const again = await run('deployCommand', '--stage', 'prod', '--yes');
    expect(again).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
  });

  it('a command without a terminal is refused for another account than it names', async () => {
    for (const name of ['deployCommand', 'parametersCommand'] as const) {
      const args = name === 'deployCommand' ? ['--plan'] : [];
      const { code, output } = await run(name, '--stage', 'prod', '--account', '444455556666', ...args);
      expect(output).toContain('for account 111122223333, not for account 444455556666. Nothing was changed');
      expect(code).toBe(64);
    }
    expect(new Set(double.actions)).toEqual(new Set(['GetCallerIdentity']));
  });

  it('the command parameters lists changed parameters, or all with --all', async () => {
    await run('deployCommand', '--stage', 'prod', '--yes', '--create', '--param', 'memoryMb=256');
    double.actions.length = 0;
    const { code, output } = await run('parametersCommand', '--stage', 'prod');
    expect(output).toBe('codeBucket holdfast-code-111122223333-eu-west-1\nmemoryMb 256\nstage prod\n');
    expect(code).toBe(0);
    const all = await run('parametersCommand', '--stage', 'prod', '--all');
    expect(all.output.split('\n')).toEqual(expect.arrayContaining(['logLevel INFO', 'alarmTopicArn']));
    expect(new Set(double.actions)).toEqual(new Set(['GetCallerIdentity', 'DescribeStacks', 'GetTemplate']));
    const none = await run('parametersCommand', '--stage', 'other');
    expect(none).toMatchObject({ code: 64, output: expect.stringContaining('there is no stack holdfast-other') });
  });
});
