import { constants } from 'node:os';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { sharedClock } from './clock.ts';
import { type FromGuard, lineOf, readMessages, type ToGuard } from './guard/messages.ts';
import { discard, type Guard, startGuard, startGuardAtTerminal, terminalShell } from './guard/start.ts';
import { inForeground, membersOf } from './processes.ts';

interface CommandOptions {
  /** All of the command's environment. */
  env: NodeJS.ProcessEnv;
  /** As for `extend`. */
  remainingMs: number;
  /** Whether a command that was stopped at the terminal may continue. Called when it is woken. */
  mayGoOn: () => boolean;
  /** A guard that was started before, so that the command need not wait for one. At a terminal another one is started. */
  guard?: Guard | undefined;
  /** The shell that hands the terminal over. */
  shell?: string[] | undefined;
}

/** How long a message of the guard may be behind its end, in milliseconds. */
const LATE_MESSAGE_MS = 1000;

/** A command in a process group of its own, with a guard in it that ends the group when this process ends, or the time is over. */
export class Command {
  /** The exit code of the command: for a signal, 128 plus its number. Rejects with a Failure if the command cannot be started. */
  readonly exited: Promise<number>;
  /** Whether the terminal sends its signals to the command itself. */
  readonly hasTerminal: boolean;
  readonly #guard: Guard;
  readonly #ended: Promise<void>;
  /** The process group and the guard's id, once the command runs. */
  #group: [group: number, guard: number] | undefined;
  /** Signals that arrived before the command ran. */
  #early: NodeJS.Signals[] = [];
  #isOver = false;
  #wasSignalled = false;

  constructor(words: string[], { env, remainingMs, mayGoOn, guard, shell = terminalShell() }: CommandOptions) {
    this.hasTerminal = shell !== undefined;
    const isReady = !shell && guard !== undefined && runs(guard);
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
        else if (message[0] === 'started') this.#begun(message[1], message[2]);
        else resolve(message[1] ?? 128 + constants.signals[message[2] ?? 'SIGKILL']);
      });
      child.once('error', (error) => fail(`its guard cannot be started: ${error.message}`));
      const ended = () => (this.#group ? resolve(137) : fail('its guard has ended'));
      // A process that was paused may read the message that the command runs only after this event.
      child.once('exit', () => (this.#group ? ended() : setTimeout(ended, LATE_MESSAGE_MS)));
    });
    control?.on('data', () => {
      // The user's shell stops and wakes this process, and so it has to stop as if the command were in its group.
      process.kill(0, 'SIGTSTP');
      if (mayGoOn()) control.write(inForeground() ? 'fg\n' : 'bg\n');
    });
    this.extend(remainingMs);
    this.#tell(['run', words, env]);
  }

  /** @param remainingMs in how many milliseconds from now the guard ends the group */
  extend(remainingMs: number): void {
    this.#tell(['until', sharedClock() + remainingMs]);
  }

  /** Sends a signal to the whole group. */
  signal(signal: NodeJS.Signals): void {
    if (this.#isOver) return; // the number of the group may be another's
    this.#wasSignalled ||= !['SIGCONT', 'SIGSTOP', 'SIGWINCH'].includes(signal);
    if (this.#group) this.#send(this.#group[0], signal);
    else this.#early.push(signal);
  }

  /** Whether the group was sent a signal that may end it. */
  get wasSignalled(): boolean {
    return this.#wasSignalled;
  }

  /** Whether anything of the group still runs, or is stopped, besides the guard and the job of the shell. */
  get isAlive(): boolean {
    return !this.#isOver && this.#group !== undefined && membersOf(this.#group).length > 0;
  }

  /** Whether the command has run and its whole group has ended. If this process was paused, it may learn of that late. */
  get hasEnded(): boolean {
    return this.#group !== undefined && !this.isAlive;
  }

  /** Ends the whole group and the guard. It must be called at the end. @returns when the terminal is this process's again */
  kill(): Promise<void> {
    if (this.#isOver) return this.#ended;
    const { child, messages, control } = this.#guard;
    // The shell would report a job that was killed.
    if (this.hasTerminal && this.#group && !this.isAlive) this.#tell(['end']);
    else if (this.#group) this.#send(this.#group[0], 'SIGKILL');
    else if (!this.hasTerminal) child.kill('SIGKILL');
    this.#isOver = true;
    messages.end(); // this also ends a guard that is just starting the command
    control?.destroy(); // the shell of a stopped command waits for an answer
    return this.#ended;
  }

  #begun(group: number, guard: number): void {
    this.#group = [group, guard];
    for (const signal of this.#early.splice(0)) this.signal(signal);
  }

  #tell(message: ToGuard): void {
    if (!this.#isOver) this.#guard.messages.write(lineOf(message));
  }

  #send(group: number, signal: NodeJS.Signals): void {
    try {
      process.kill(-group, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

const runs = ({ child }: Guard): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;
