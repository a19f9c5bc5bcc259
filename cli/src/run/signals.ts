import { constants } from 'node:os';
import type { Command } from './command.ts';

/** The signals that are passed on to the command. All but SIGWINCH also end a wait for the lease. */
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGWINCH'] as const;

/** Takes the signals to this process: they end the wait for the lease, and when the command runs, they are passed on to it. */
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

  /** The exit code if a signal has ended the wait. Undefined if none has. */
  get exitCode(): number | undefined {
    return this.#received && 128 + constants.signals[this.#received];
  }

  /**
   * Passes signals on to the command from now on.
   * @param mayContinue returns whether a command that was stopped may continue
   */
  forwardTo(command: Command, mayContinue: () => boolean): void {
    this.#command = command;
    if (!command.hasTerminal) process.on('SIGTSTP', () => stopWith(command, mayContinue));
  }

  #receive(signal: NodeJS.Signals): void {
    this.#command?.signal(signal);
    if (this.#command || signal === 'SIGWINCH') return;
    if (this.exitCode !== undefined) process.exit(this.exitCode); // a second signal means: end at once
    this.#received = signal;
    this.#controller.abort();
  }
}

function stopWith(command: Command, mayContinue: () => boolean): void {
  command.signal('SIGSTOP'); // not SIGTSTP, which a group without a terminal ignores
  process.kill(process.pid, 'SIGSTOP');
  // The line above returns when this process is continued.
  if (mayContinue()) command.signal('SIGCONT');
}
