import { constants } from 'node:os';
import type { Command } from './command.ts';

/** All but SIGWINCH end a process while it waits for a lease. */
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGWINCH'] as const;

/** The signals to this process: they end the wait, and go to the command once it runs. */
export class Signals {
  readonly #controller = new AbortController();
  #received: NodeJS.Signals | undefined;
  #command: Command | undefined;

  constructor() {
    for (const signal of FORWARDED) process.on(signal, () => this.#receive(signal));
  }

  /** Aborts at the first signal that ends a wait. */
  get waiting(): AbortSignal {
    return this.#controller.signal;
  }

  /** The exit code if a signal has ended the wait. */
  get exitCode(): number | undefined {
    return this.#received && 128 + constants.signals[this.#received];
  }

  /**
   * Passes signals on to the command from now on.
   * @param mayGoOn whether a command that was stopped may go on
   */
  forwardTo(command: Command, mayGoOn: () => boolean): void {
    this.#command = command;
    if (!command.hasTerminal) process.on('SIGTSTP', () => stopWith(command, mayGoOn));
  }

  #receive(signal: NodeJS.Signals): void {
    this.#command?.signal(signal);
    if (this.#command || signal === 'SIGWINCH') return;
    if (this.exitCode !== undefined) process.exit(this.exitCode); // the sender of a second one does not want to wait
    this.#received = signal;
    this.#controller.abort();
  }
}

function stopWith(command: Command, mayGoOn: () => boolean): void {
  command.signal('SIGSTOP'); // a group without a terminal ignores SIGTSTP
  process.kill(process.pid, 'SIGSTOP');
  // Here this process is awake again.
  if (mayGoOn()) command.signal('SIGCONT');
}
