import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { living } from '../support/programs/cli.ts';
import { PYTHON_CLIENT, python } from '../support/programs/python.ts';
import { until } from '../support/time/until.ts';

const PROGRAM = resolve('test/support/programs/terminal-command.ts');

/** Runs its arguments as `python -m holdfast run` does. */
const PYTHON_PROGRAM = `import os, signal, sys
from types import SimpleNamespace
from holdfast.run.command import Command, executable
from holdfast.run.supervise import Supervisor
lost = "LOST" in os.environ
command = Command(lambda: not lost)
signal.signal(signal.SIGCONT, lambda *_: command.kill() if lost else command.resume())
words = sys.argv[2:]
command.start([executable(words[0], os.environ["PATH"]), *words], os.environ, 60)
lease = SimpleNamespace(key="k", expires_at="", remaining=60.0, held=True, lost=None)
sys.exit(Supervisor(command, lease, 1.0, False, print).run())`;

let terminal: ChildProcess;
afterEach(() => {
  terminal.kill('SIGKILL');
});

/** An interactive shell at a terminal of its own. */
function openTerminal(env: Record<string, string> = {}) {
  let output = '';
  const programs = {
    PROGRAM,
    PYTHON_PROGRAM,
    ...PYTHON_CLIENT,
    NODE: process.execPath,
    OF_PYTHON: `${python}`,
  };
  const setUp = { PS1: '$ ', ...programs, PATH: process.env.PATH, TERM: 'dumb', ...env };
  // util-linux's script makes a terminal, and types what it reads.
  terminal = spawn('script', ['-qfec', 'bash --norc --noprofile -i', '/dev/null'], { env: setUp, stdio: 'pipe' });
  terminal.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  return {
    type: (text: string) => terminal.stdin?.write(text),
    /** A shell that is about to become another program may lose a signal, which is not a fault of the command. */
    press: async (key: string) => {
      await delay(500);
      terminal.stdin?.write(key);
    },
    /** Waits until the terminal shows this text on its own lines, after the text of the last wait. */
    async shows(pattern: RegExp) {
      await expect.poll(() => output, { interval: 20 }).toMatch(pattern);
      const found = pattern.exec(output) as RegExpExecArray;
      output = output.slice(found.index + found[0].length);
      return found;
    },
  };
}

/** The line that a user types. PROGRAM is in it for both programs. */
const run = (shell: string, script: string) =>
  `${shell === PYTHON ? '"$OF_PYTHON" -c "$PYTHON_PROGRAM"' : '"$NODE" "$PROGRAM"'} '${shell}' sh -c '${script}'\n`;

const PYTHON = 'python -m holdfast';
const SHELLS = ['/bin/sh', 'dash', 'bash', 'busybox sh'];
const isThere = (shell: string) =>
  shell.startsWith('/') ||
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(`${folder}/${shell.split(' ')[0]}`));

describe.each([...SHELLS.filter(isThere), ...(python ? [PYTHON] : [])])('at a terminal, with %s', (shell) => {
  it('the command reads from the terminal, which the shell has back afterwards', async () => {
    const { type, shows } = openTerminal();
    type(run(shell, 'echo on >&2; read x; read y </dev/tty; echo "got $x $y"; exit 5'));
    await shows(/^on\r$/m);
    type('a\nb\n');
    await shows(/^got a b\r$/m);
    type('echo "code $?"; read z; echo "then $z"\nc\n');
    await shows(/^code 5\r$/m);
    await shows(/^then c\r$/m);
  });

  it('a terminal sends Ctrl-C to the command', async () => {
    const { type, press, shows } = openTerminal();
    type(run(shell, 'trap "echo interrupted; exit 9" INT; echo on >&2; while :; do sleep 0.1; done'));
    await shows(/^on\r$/m);
    await press('\u0003');
    await shows(/^(\^C)?interrupted\r$/m);
    type('echo "code $?"\n');
    await shows(/^code 9\r$/m);
    type(run(shell, 'echo on >&2; sleep 60'));
    await shows(/^on\r$/m);
    await press('\u0003');
    type('echo "code $?"; read z; echo "then $z"\nc\n');
    await shows(/^code 130\r$/m);
    await shows(/^then c\r$/m);
  });

  it('Ctrl-Z stops the command and the supervisor, and fg goes on with both', async () => {
    const { type, press, shows } = openTerminal();
    type(run(shell, 'echo on >&2; read x; echo "got $x"; exit 6'));
    await shows(/^on\r$/m);
    await press('\u001a');
    await shows(/\[1\]\+ {2}Stopped .*PROGRAM/);
    type('fg\n');
    await shows(/PROGRAM/);
    type('typed\n');
    await shows(/^got typed\r$/m);
    type('echo "code $?"\n');
    await shows(/^code 6\r$/m);
  });

  it('if the command stops itself some time after Ctrl-Z, the supervisor stops too', async () => {
    const { type, press, shows } = openTerminal({
      LATE: `process.on('SIGTSTP', () => setTimeout(() => { console.log('restored'); process.kill(process.pid, 'SIGSTOP'); }, 500));
process.on('SIGCONT', () => { console.log('continued'); process.exit(8); }); console.log('on'); setInterval(() => {}, 1000)`,
    });
    type(run(shell, 'exec "$NODE" -e "$LATE"'));
    await shows(/^on\r$/m);
    await press('\u001a');
    await shows(/^(\^Z)?restored\r$/m);
    await shows(/\[1\]\+ {2}Stopped .*PROGRAM/);
    type('fg\n');
    await shows(/^continued\r$/m);
    type('echo "code $?"\n');
    await shows(/^code 8\r$/m);
  });

  it('a stopped command ends when its supervisor is killed', async () => {
    const { type, press, shows } = openTerminal();
    type(run(shell, 'echo "on $$." >&2; while :; do sleep 0.1; done'));
    const [, id] = await shows(/^on (\d+)\.\r$/m);
    await press('\u001a');
    await shows(/\[1\]\+ {2}Stopped .*PROGRAM/);
    expect(await living(Number(id))).toBe(true);
    type('kill -9 %1\n');
    await until(() => living(Number(id))).toBe(false);
  });

  it('bg continues the command without the terminal', async () => {
    const { type, press, shows } = openTerminal();
    type(run(shell, 'echo on >&2; sleep 5; echo done; exit 7'));
    await shows(/^on\r$/m);
    await press('\u001a');
    await shows(/\[1\]\+ {2}Stopped .*PROGRAM/);
    type('bg\n');
    await shows(/\[1\]\+ .* &/);
    type('echo "mine"; wait %1; echo "code $?"\n');
    await shows(/^mine\r$/m);
    await shows(/^code 7\r$/m);
  });
});

it.runIf(python)('a Python command that reads in the background stops until fg', async () => {
  const { type, press, shows } = openTerminal();
  type(run(PYTHON, 'echo on >&2; sleep 0.5; read x; echo "got $x"; sleep 60'));
  await shows(/^on\r$/m);
  await press('\u001a');
  await shows(/\[1\]\+ {2}Stopped .*PROGRAM/);
  type('bg\n');
  await shows(/\[1\]\+ .* &/);
  type('wait %1; echo "waited $?"\n'); // wait ends when the job stops
  await shows(/^waited 1(48|49)\r$/m);
  type('fg\n');
  await shows(/PROGRAM/);
  type('typed\n');
  await shows(/^got typed\r$/m);
  await press('\u0003');
  type('echo "code $?"\n');
  await shows(/^code 130\r$/m);
});

it.each(['/bin/sh', ...(python ? [PYTHON] : [])])(
  'a stopped command of %s does not continue if its lease has ended since',
  async (shell) => {
    const { type, press, shows } = openTerminal({ LOST: 'true' });
    type(run(shell, 'echo on >&2; while :; do echo alive; sleep 0.1; done'));
    await shows(/^on\r$/m);
    await press('\u001a');
    await shows(/\[1\]\+ {2}Stopped .*PROGRAM/);
    type('fg\n');
    await shows(/PROGRAM/);
    type('echo "code $?"\n');
    await shows(/^code 137\r$/m);
  },
);
