import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { isatty } from 'node:tty';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import type { Deadlines } from './deadlines.ts';
import { inForeground, membersOf } from './processes.ts';
import { LEADER, TERMINAL_JOB } from './scripts.ts';

interface CommandOptions {
  env: NodeJS.ProcessEnv;
  /** Has the first deadline already. */
  deadlines: Deadlines;
  /** Whether a command that was stopped at the terminal may continue. Called when it is woken. */
  mayGoOn: () => boolean;
  /** The shell that runs the scripts. */
  shell?: string[];
}

/** A command in a process group of its own, with a guard in it that ends the group when this process ends. */
export class Command {
  /** The exit code of the command: for a signal, 128 plus its number. Rejects with a Failure if no shell can be started. */
  readonly exited: Promise<number>;
  /** Whether the terminal sends its signals to the command itself. */
  readonly hasTerminal: boolean;
  readonly #child: ChildProcess;
  readonly #guard: Duplex;
  readonly #control: Duplex | undefined;
  /** The process group. At a terminal it is known only once its leader has reported it. */
  #group: number | undefined;
  #guardId: number | undefined;
  /** Signals that arrived before the group was known. */
  #early: NodeJS.Signals[] = [];
  #isOver = false;
  #wasSignalled = false;

  constructor(words: string[], { env, deadlines, mayGoOn, shell = ['/bin/sh'] }: CommandOptions) {
    this.hasTerminal = inForeground();
    const [file = '', ...options] = shell;
    const command = [...namedForNoShell(env), ...words];
    if (this.hasTerminal) {
      const stdio: StdioOptions = ['inherit', 'inherit', 'inherit', 'pipe', deadlines.readable, 'pipe'];
      const args = [...options, '-c', TERMINAL_JOB, 'holdfast', LEADER, ...command];
      this.#child = spawn(file, args, { env, stdio });
    } else {
      // The command has its own session, where nothing would keep it from reading the terminal of another job.
      const stdio: StdioOptions = [isatty(0) ? 'ignore' : 'inherit', 'inherit', 'inherit', 'pipe', deadlines.readable];
      const args = [...options, '-c', LEADER, 'holdfast', ...command];
      this.#child = spawn(file, args, { env, stdio, detached: true });
      this.#group = this.#child.pid;
    }
    deadlines.handedOver();
    const [guard, , control] = this.#child.stdio.slice(3) as unknown as [Duplex, null, Duplex | undefined];
    this.#guard = guard;
    this.#control = control;
    for (const pipe of [guard, control]) pipe?.on('error', () => {}); // its reader has ended, as `exited` says
    guard.once('data', (line) => this.#begun(...(String(line).split(' ').map(Number) as [number, number])));
    control?.on('data', () => {
      // The user's shell stops and wakes this process, and so it has to stop as if the command were in its group.
      process.kill(0, 'SIGTSTP');
      if (mayGoOn()) control.write(inForeground() ? 'fg\n' : 'bg\n');
    });
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', ({ message }) => reject(new Failure(message, EXIT.notExecutable)));
      this.#child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
    });
  }

  /** Sends a signal to the whole group. */
  signal(signal: NodeJS.Signals): void {
    if (this.#isOver) return; // the number of the group may be another's
    this.#wasSignalled ||= !['SIGCONT', 'SIGSTOP', 'SIGWINCH'].includes(signal);
    if (this.#group === undefined) this.#early.push(signal);
    else this.#send(this.#group, signal);
  }

  /** Whether the group was sent a signal that may end it. */
  get wasSignalled(): boolean {
    return this.#wasSignalled;
  }

  /** Whether anything of the group still runs, or is stopped, besides the guard. */
  get isAlive(): boolean {
    return !this.#isOver && this.#group !== undefined && membersOf(this.#group, this.#guardId).length > 0;
  }

  /** Ends the whole group and the guard. It must be called at the end. */
  kill(): void {
    if (this.#isOver) return;
    if (this.#group !== undefined) this.#send(this.#group, 'SIGKILL');
    this.#isOver = true;
    this.#guard.destroy(); // this also tells the guard of a group that is just starting
    this.#control?.destroy(); // the shell of a stopped command waits for an answer
  }

  #begun(group: number, guard: number): void {
    this.#group = group;
    this.#guardId = guard;
    for (const signal of this.#early.splice(0)) this.signal(signal);
  }

  #send(group: number, signal: NodeJS.Signals): void {
    try {
      process.kill(-group, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Some shells drop variables whose names are not valid in a shell. `env` restores them. */
function namedForNoShell(env: NodeJS.ProcessEnv): string[] {
  const odd = Object.entries(env).filter(([name]) => !/^[A-Za-z_]\w*$/.test(name));
  return odd.length === 0 ? [] : ['env', ...odd.map(([name, value]) => `${name}=${value}`)];
}
