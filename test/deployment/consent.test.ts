import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CloudFormationDouble, startCloudFormation } from '../support/stack/cloudformation.ts';
import { released } from '../support/stack/template.ts';

/** Runs a command of the release in this folder: its name, the folder, and its arguments. */
const PROGRAM = `import * as commands from './deployment/commands.ts';
const [name, folder, ...args] = process.argv.slice(1);
process.exit(await (name === 'deployCommand' ? commands.deployCommand(folder, args) : commands[name](args)));`;

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
  double = await startCloudFormation(released);
});
afterEach(() => double.stop());

const environment = () => ({
  ...{ PATH: process.env.PATH, HOME: '/nonexistent', AWS_ENDPOINT_URL: double.url, AWS_REGION: 'eu-west-1' },
  ...{ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
});

const WITH_PID = `console.log('pid', process.pid); ${PROGRAM.replace(/^import \* as commands from '(.*)';/, "const commands = await import('$1');")}`;

const words = (name: string, args: string[], program = PROGRAM) => [
  ...['--input-type=module', '-e', program, name, folder, ...args],
];

/** Runs a command without a terminal. */
const run = (name: string, ...args: string[]) =>
  new Promise<{ code: number | null; output: string }>((resolve) => {
    const settings = { env: environment() };
    const child = execFile(process.execPath, words(name, args), settings, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });

/** Types a text at a terminal, sends a signal to the process of the command, or closes the terminal. */
type Answer = { text: string } | { signal: NodeJS.Signals } | 'closes';

/** Runs a command at a new terminal, and answers the question of the command. */
const answerAtTerminal = (answer: Answer, name: string, ...args: string[]) =>
  new Promise<{ code: number | null; output: string }>((resolve) => {
    const quoted = [process.execPath, ...words(name, args, WITH_PID)].map(
      (word) => `'${word.replaceAll("'", "'\\''")}'`,
    );
    const child = spawn('script', ['-qfec', quoted.join(' '), '/dev/null'], { env: environment(), stdio: 'pipe' });
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
const runAtTerminal = (line: string, name: string, ...args: string[]) =>
  answerAtTerminal({ text: `${line}\n` }, name, ...args);

const executed = () => double.actions.filter((action) => action === 'ExecuteChangeSet');

describe('a deployment at a terminal', () => {
  it.each(['', 'n', 'yess'])(
    "a deployment at a terminal changes no stack and exits with 1 if the answer is '%s'",
    async (answer) => {
      const { code, output } = await runAtTerminal(answer, 'deployCommand', '--stage', 'prod');
      expect(output).toContain('Deploy these changes? [y/N]');
      expect(code, output).toBe(1);
      expect(executed()).toEqual([]);
    },
  );

  it.each(['y', 'YES'])(
    'a deployment at a terminal goes on, also for a new stack without --create, if the answer is %s',
    async (answer) => {
      const { code, output } = await runAtTerminal(answer, 'deployCommand', '--stage', 'prod');
      expect(code, output).toBe(0);
      expect(double.stacks.get('holdfast-prod')?.status).toBe('UPDATE_COMPLETE');
    },
  );

  it.each<[string, Answer]>([
    ['Ctrl-C', { text: '\x03' }],
    ['Ctrl-D', { text: '\x04' }],
    ['SIGINT', { signal: 'SIGINT' }],
    ['SIGTERM', { signal: 'SIGTERM' }],
  ])('a deployment that is interrupted at the question by %s leaves no change set and no stack', async (_, answer) => {
    const { code, output } = await answerAtTerminal(answer, 'deployCommand', '--stage', 'prod');
    expect(code, output).toBe(1);
    expect(double.actions).toContain('CreateChangeSet');
    expect(double.changeSets()).toBe(0);
    expect([...double.stacks.keys()]).toEqual([]);
    expect(executed()).toEqual([]);
  });

  it('a deployment whose terminal is closed at the question leaves no change set and no stack', async () => {
    await answerAtTerminal('closes', 'deployCommand', '--stage', 'prod');
    await expect.poll(() => [double.changeSets(), ...double.stacks.keys()]).toEqual([0]);
    expect(double.actions).toContain('DeleteStack');
    expect(executed()).toEqual([]);
  });

  it('a deployment at a terminal needs --create for a new stack if --yes leaves the question out', async () => {
    const { code, output } = await runAtTerminal('', 'deployCommand', '--stage', 'prod', '--yes');
    expect(output).toContain('To create the stack, add --create');
    expect(code).toBe(64);
  });
});

describe('a command without a terminal', () => {
  it('a command without a terminal is refused without --yes before AWS is asked, and --plan needs none', async () => {
    const names = ['deployCommand', 'drainCommand', 'resumeCommand'];
    for (const name of names) {
      const { code, output } = await run(name, '--stage', 'prod');
      expect(output, name).toContain('there is no terminal to ask at: add --yes');
      expect(code, name).toBe(64);
    }
    expect(double.actions).toEqual([]);
    expect(await run('deployCommand', '--stage', 'prod', '--plan')).toMatchObject({ code: 0 });
  });

  it('a command without a terminal deploys, and says what comes next and that no alarm is sent', async () => {
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

  it('a command without a terminal is refused for another account than the one that it names', async () => {
    for (const name of ['deployCommand', 'parametersCommand']) {
      const args = name === 'deployCommand' ? ['--plan'] : [];
      const { code, output } = await run(name, '--stage', 'prod', '--account', '444455556666', ...args);
      expect(output).toContain('for account 111122223333, not for account 444455556666. Nothing was changed');
      expect(code).toBe(64);
    }
    expect(new Set(double.actions)).toEqual(new Set(['GetCallerIdentity']));
  });

  it('a command without a terminal lists the parameters that differ from their defaults, or all, and changes no stack', async () => {
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
