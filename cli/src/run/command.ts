import { constants } from 'node:os';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { sharedClock } from './clock.ts';
import { type FromGuard, lineOf, readMessages, type ToGuard } from './guard/messages.ts';
import { discard, type Guard, startGuard, startGuardAtTerminal, terminalShell } from './guard/start.ts';
import { inForeground, membersOf } from './processes.ts';

interface CommandOptions {
  /** The whole environment of the command. */
  env: NodeJS.ProcessEnv;
  /** After how many milliseconds the guard ends the command, unless `extend` is called. */
  remainingMs: number;
  /** Returns whether a command that was stopped at the terminal may continue. Called when the user continues it. */
  mayContinue: () => boolean;
  /** A guard that was started before, so that the command does not have to wait for it. At a terminal, another guard is started. */
  guard?: Guard | undefined;
  /** The shell that hands over the terminal. */
  shell?: string[] | undefined;
}

/** How long after the end of the guard its last message may arrive, in milliseconds. */
const LATE_MESSAGE_MS = 1000;

/** A command in a process group of its own. A guard in the group ends the group when this process ends, or when the time of the lease is over. */
export class Command {
  /** The exit code of the command: for a signal, 128 plus its number. Rejects with a Failure if the command cannot be started. */
  readonly exited: Promise<number>;
  /** True if the command has the terminal, which then sends its signals to the command itself. */
  readonly hasTerminal: boolean;
  readonly #guard: Guard;
  readonly #ended: Promise<void>;
  /** The process group and the id of the guard. Undefined until the command runs. */
  #group: [group: number, guard: number] | undefined;
  /** Signals that arrived before the command ran. */
  #early: NodeJS.Signals[] = [];
  #isOver = false;
  #wasSignalled = false;

  constructor(words: string[], { env, remainingMs, mayContinue, guard, shell = terminalShell() }: CommandOptions) {
    this.hasTerminal = shell !== undefined;
    const isReady = !shell && guard !== undefined && isRunning(guard);
    if (guard && !isReady) discard(guard);
    this.#guard = shell ? startGuardAtTerminal(shell) : isReady ? guard : startGuard();
    const { child, messages, control } = this.#guard;
    this.#ended = new Promise((resolve) => {
      child.once('exit', resolve).once('error', () => resolve());
    });
    this.exited = new Promise((resolve, reject) => {
      const fail = (message: string) => reject(new Failure(`${words[0]}: ${message}`, EXIT.notExecutable));
      readMessages<FromGuard>(messages, (message) => {
        if (message[0] === 'failed') fail(`it cannot be executed (${message[1]})`);
        else if (message[0] === 'started') this.#onStarted(message[1], message[2]);
        else resolve(message[1] ?? 128 + constants.signals[message[2] ?? 'SIGKILL']);
      });
      child.once('error', (error) => fail(`its guard cannot be started: ${error.message}`));
      const ended = () => (this.#group ? resolve(137) : fail('its guard has ended'));
      // If this process was stopped, it may see the end of the guard before the message that the command has started.
      child.once('exit', () => (this.#group ? ended() : setTimeout(ended, LATE_MESSAGE_MS)));
    });
    control?.on('data', () => {
      // The command was stopped by the user. The user's shell can stop and continue only this process, so it stops too.
      process.kill(0, 'SIGTSTP');
      if (mayContinue()) control.write(inForeground() ? 'fg\n' : 'bg\n');
    });
    this.extend(remainingMs);
    this.#sendMessage(['run', words, env]);
  }

  /** Lets the command go on. @param remainingMs after how many milliseconds from now the guard ends the group */
  extend(remainingMs: number): void {
    this.#sendMessage(['until', sharedClock() + remainingMs]);
  }

  /** Sends a signal to the whole group. */
  signal(signal: NodeJS.Signals): void {
    if (this.#isOver) return; // the system may have given the number to another group
    this.#wasSignalled ||= !['SIGCONT', 'SIGSTOP', 'SIGWINCH'].includes(signal);
    if (this.#group) this.#sendSignal(this.#group[0], signal);
    else this.#early.push(signal);
  }

  /** True if the group was sent a signal that may end it. */
  get wasSignalled(): boolean {
    return this.#wasSignalled;
  }

  /** True if any process of the group besides the guard and the job of the shell still runs, or is stopped. */
  get isAlive(): boolean {
    return !this.#isOver && this.#group !== undefined && membersOf(this.#group).length > 0;
  }

  /** True if the command has run and its whole group has ended, even if the message of its end has not been read yet. */
  get hasEnded(): boolean {
    return this.#group !== undefined && !this.isAlive;
  }

  /** Ends the whole group and the guard. Must always be called in the end. @returns a promise that resolves when this process has the terminal again */
  kill(): Promise<void> {
    if (this.#isOver) return this.#ended;
    const { child, messages, control } = this.#guard;
    // The shell would print a line about a job that was killed, so a job whose command has ended is asked to end.
    if (this.hasTerminal && this.#group && !this.isAlive) this.#sendMessage(['end']);
    else if (this.#group) this.#sendSignal(this.#group[0], 'SIGKILL');
    else if (!this.hasTerminal) child.kill('SIGKILL');
    this.#isOver = true;
    messages.end(); // this also ends a guard that is about to start the command
    control?.destroy(); // the shell of a stopped command waits for an answer
    return this.#ended;
  }

  #onStarted(group: number, guard: number): void {
    this.#group = [group, guard];
    for (const signal of this.#early.splice(0)) this.signal(signal);
  }

  #sendMessage(message: ToGuard): void {
    if (!this.#isOver) this.#guard.messages.write(lineOf(message));
  }

  #sendSignal(group: number, signal: NodeJS.Signals): void {
    try {
      process.kill(-group, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

const isRunning = ({ child }: Guard): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;
