import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, realpath, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { living } from '../support/programs/cli.ts';
import { runnersOf } from '../support/programs/run.ts';
import { isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

let keys = 0;
const freshKey = () => `guard/${++keys}`;
const env = { HOLDFAST_ENDPOINT: api.url };

/** The ids of the descendants of a process. */
function descendantsOf(id: number): number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return [[Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])]];
    } catch {
      return []; // no process, or one that has ended
    }
  });
  const below = (one: number): number[] =>
    parents.flatMap(([child = 0, parent]) => (parent === one ? [child, ...below(child)] : []));
  return below(id);
}

const argumentsOf = (id: number): string => readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ');

/** The guard of a supervisor: a child of the supervisor, or of its shell's job. */
const guardOf = (supervisor: number): number | undefined =>
  descendantsOf(supervisor).find((id) => /^holdfast guard|holdfast\/run\/guard\.py/.test(argumentsOf(id)));

/** Whether this machine lets a test have its own root folder, in its own mount namespace. */
const maySetUpRoot = (() => {
  try {
    execFileSync('unshare', ['-rm', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** Words that run the command in a root folder where Node is the only program, and the script beside it. */
async function withoutShell(args: string[]): Promise<string[]> {
  const root = await mkdtemp(join(cli.folder, 'root-'));
  const script = resolve('test/support/programs/without-shell.sh');
  return ['-rm', 'sh', script, root, await realpath(process.execPath), cli.folder, '/app/holdfast.mjs', ...args];
}

describe.runIf(maySetUpRoot)('an image without a shell', () => {
  const start = async (args: string[], more: object = {}) => {
    const child = spawn('unshare', await withoutShell(args), {
      env: { ...env, HOME: '/tmp', PATH: process.env.PATH, ...more },
    });
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk) => {
        printed[name] += chunk;
      });
    child.stdin.end();
    const exited = new Promise<number | null>((done) => child.once('close', done));
    return { child, printed, exited };
  };

  it('holdfast run needs no shell, and exits with the code of the command', async () => {
    const key = freshKey();
    const script = `console.log(process.env.HOLDFAST_KEY, require('fs').existsSync('/bin/sh')); process.exit(7)`;
    const { exited, printed } = await start(['run', key, '--', '/node', '-e', script]);
    expect([await exited, printed]).toEqual([7, { stdout: `${key} false\n`, stderr: '' }]);
    expect((await holdfast.readLease(key)).state).toBe('released');
  });

  const IMMORTAL = `for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => {});
const child = process.argv[1] && require('child_process').spawn('/node', ['-e', process.argv[1]], { stdio: 'ignore' });
console.log(process.pid, child?.pid); setInterval(() => {}, 1000);`;

  it('if holdfast run is killed, the command and its child end without a shell', async () => {
    const { child, printed } = await start(['run', freshKey(), '--', '/node', '-e', IMMORTAL, IMMORTAL]);
    await until(() => printed.stdout).toMatch(/^\d+ \d+\n/);
    child.kill('SIGKILL');
    for (const id of printed.stdout.trim().split(' ').map(Number)) await until(() => living(id)).toBe(false);
  });

  it.runIf(isFull)('if holdfast run is stopped, the command and its child still end in time', async () => {
    const { child, printed, exited } = await start([
      'run',
      freshKey(),
      '--ttl',
      '3',
      '--',
      '/node',
      '-e',
      IMMORTAL,
      IMMORTAL,
    ]);
    await until(() => printed.stdout).toMatch(/^\d+ \d+\n/);
    child.kill('SIGSTOP');
    for (const id of printed.stdout.trim().split(' ').map(Number)) await until(() => living(id)).toBe(false);
    child.kill('SIGCONT');
    expect(await exited).toBe(76);
  });
});

it.runIf(maySetUpRoot)('a command without a shell reads from the terminal, and receives Ctrl-C', async () => {
  const script = `process.stdin.on('data', (line) => console.log('got ' + line)); console.log('on');
process.on('SIGINT', () => { console.log('interrupted'); process.exit(9); });`;
  const words = await withoutShell(['run', freshKey(), '--', '/node', '-e', script]);
  const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const terminal = spawn('script', ['-qfec', `exec unshare ${quoted}`, '/dev/null'], {
    env: { ...env, PATH: process.env.PATH, HOME: '/tmp', TERM: 'dumb' },
  });
  let shown = '';
  terminal.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  await until(() => shown).toContain('on\r\n');
  terminal.stdin.write('typed\n');
  await until(() => shown).toContain('got typed\r\n');
  terminal.stdin.write('\u0003');
  expect(await new Promise((done) => terminal.once('close', done))).toBe(9);
  expect(shown).toMatch(/interrupted\r\n$/);
});

const ARGUMENT = 'argument-which-only-the-command-has';
const VALUE = 'value-which-no-command-line-has';
const secrets = { SECRET: VALUE, 'spring.datasource.password': VALUE, 'ConnectionStrings:Db': VALUE };
const SAYS = `console.log(process.env['spring.datasource.password'] + process.env['ConnectionStrings:Db']); setInterval(() => {}, 1000);`;

describe.concurrent.each(runnersOf(cli))('$name', (runner) => {
  it('command lines never show the environment, and only supervisor and command show the arguments', async () => {
    const { child, stdout, exited } = runner.start(['run', freshKey(), '--', process.execPath, '-e', SAYS, ARGUMENT], {
      env: { ...env, ...secrets },
    });
    await until(stdout).toBe(`${VALUE}${VALUE}\n`);
    const supervisor = child.pid ?? 0;
    const all = [supervisor, ...descendantsOf(supervisor)];
    const guard = guardOf(supervisor) ?? 0;
    const [command = 0] = descendantsOf(guard);
    expect(all).toEqual([supervisor, guard, command]);
    expect(all.filter((id) => argumentsOf(id).includes(VALUE))).toEqual([]);
    expect(all.filter((id) => argumentsOf(id).includes(ARGUMENT))).toEqual([supervisor, command]);
    child.kill('SIGTERM');
    await exited;
  });

  it('no other command line shows arguments even if a shell hands over the terminal', async () => {
    const words = [...runner.words, 'run', freshKey(), '--', process.execPath, '-e'].map((word) => `'${word}'`);
    const typed = `${words.join(' ')} "${SAYS}" ${ARGUMENT}`;
    const terminal = spawn('script', ['-qfec', typed, '/dev/null'], {
      env: {
        ...env,
        ...runner.env,
        ...secrets,
        PATH: process.env.PATH,
        HOME: cli.folder,
        TERM: 'dumb',
        SHELL: '/bin/bash',
      },
    });
    let shown = '';
    terminal.stdout.on('data', (chunk) => {
      shown += chunk;
    });
    await until(() => shown).toContain(`${VALUE}${VALUE}\r\n`);
    const all = descendantsOf(terminal.pid ?? 0);
    const guard = guardOf(terminal.pid ?? 0) ?? 0;
    if (!runner.isPython) expect(all.length).toBeGreaterThan(4); // with the shell, and its job
    expect(all.filter((id) => argumentsOf(id).includes(VALUE))).toEqual([]);
    const [command = 0] = descendantsOf(guard);
    const own = all.filter((id) => !/'?run'? '?guard\//.test(argumentsOf(id)));
    expect(own.filter((id) => argumentsOf(id).includes(ARGUMENT))).toEqual([command]);
    terminal.stdin.write('\u0003');
    await new Promise((done) => terminal.once('close', done));
    expect(await living(guard)).toBe(false);
  });

  it('the guard starts when the wait for the lease starts, and ends with it', async () => {
    const key = freshKey();
    await using _ = await holdfast.acquire(key);
    const { child, exited, stderr } = runner.start(['run', key, '--wait', 'forever', '--', 'true'], { env });
    await until(stderr).toContain('waiting since');
    await until(async () => (await holdfast.readLease(key)).waiting).toBe(1);
    await until(() => guardOf(child.pid ?? 0)).toBeGreaterThan(0);
    const guard = guardOf(child.pid ?? 0) ?? 0;
    child.kill('SIGTERM');
    expect((await exited).code).toBe(143);
    await until(() => living(guard)).toBe(false);
  });

  it('if the guard is killed, the supervisor ends the command and exits with 137', async () => {
    const key = freshKey();
    const { child, exited, stdout } = runner.start(
      ['run', key, '--', 'sh', '-c', 'trap "" TERM; echo $$; while :; do sleep 1; done'],
      { env },
    );
    await until(stdout).toMatch(/^\d+\n/);
    process.kill(guardOf(child.pid ?? 0) ?? 0, 'SIGKILL');
    expect((await exited).code).toBe(137);
    expect(await living(Number(stdout()))).toBe(false);
    expect((await holdfast.readLease(key)).state).toBe('released');
  });

  it('the guard ignores a signal to its group, even if the command sends it', async () => {
    const script = 'trap "echo got it" TERM; kill -s TERM 0; kill -s HUP $$';
    const { code, stdout } = await runner.start(['run', freshKey(), '--', 'sh', '-c', script], { env }).exited;
    expect([code, stdout]).toEqual([129, 'got it\n']);
  });
});

it.runIf(isFull)('the guard is not traced with the Node programs of the user', async () => {
  const log = join(cli.folder, 'traced');
  const tracer = join(cli.folder, 'tracer.cjs');
  await writeFile(
    tracer,
    `require('fs').appendFileSync(${JSON.stringify(log)}, process.argv[1] + ' ' + process.env.NODE_OPTIONS + '\\n');`,
  );
  const plain = join(cli.folder, 'plain.cjs');
  await writeFile(plain, '');
  const NODE_OPTIONS = `--require=${tracer}`;
  const { exited } = cli.start(['run', freshKey(), '--', process.execPath, plain], { env: { ...env, NODE_OPTIONS } });
  expect((await exited).code).toBe(0);
  expect((await readFile(log, 'utf8')).trimEnd().split('\n')).toEqual([
    `${cli.file} ${NODE_OPTIONS}`,
    `${plain} ${NODE_OPTIONS}`,
  ]);
});
