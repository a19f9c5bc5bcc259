import { setTimeout as sleep } from 'node:timers/promises';
import { isHoldfastError } from '../../../client/src/errors.ts';
import type { Lease } from '../../../client/src/lease.ts';
import { EXIT } from '../exit-codes.ts';
import type { Command } from './command.ts';
import type { Deadlines } from './deadlines.ts';

/** How often the clocks are asked at least, in milliseconds: while the machine sleeps, no timer runs. */
const LOOK_MS = 250;

/** How often the processes are counted that a command has left behind, in milliseconds. */
const COUNT_MS = 20;

interface Supervision {
  /** How long the group may take to end after SIGTERM, in milliseconds. */
  graceMs: number;
  /** Where the guard of the group learns how long the lease is held. */
  deadlines: Deadlines;
  /** Is told once of why the command is ended. */
  onLost(why: string): void;
}

/**
 * Lets a command run while its lease is held for certain. When this returns, its whole group has ended, before the lease
 * does: after SIGTERM and some grace, by SIGKILL. What the command leaves behind in its group is ended in the same way.
 * @returns what the command exits with, or EXIT.lost where the lease was lost first
 * @throws Failure where the command could not be started
 */
export async function supervise(lease: Lease, command: Command, supervision: Supervision): Promise<number> {
  const watch = new Watch(lease, command, supervision);
  const look = () => watch.look();
  lease.signal.addEventListener('abort', look);
  process.on('SIGCONT', look);
  try {
    look();
    const exitCode = await command.exited;
    if (command.isAlive) {
      // What got a signal with the command is ending: another one would interrupt that.
      watch.terminate(supervision.graceMs, exitCode < 128 && !command.wasSignalled);
      while (command.isAlive) await sleep(COUNT_MS);
    }
    return watch.isLost ? EXIT.lost : exitCode;
  } finally {
    watch.end();
    command.kill();
    lease.signal.removeEventListener('abort', look);
    process.off('SIGCONT', look);
  }
}

class Watch {
  readonly #lease: Lease;
  readonly #command: Command;
  readonly #supervision: Supervision;
  #isLost = false;
  #told: string | undefined;
  #killAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(lease: Lease, command: Command, supervision: Supervision) {
    this.#lease = lease;
    this.#command = command;
    this.#supervision = supervision;
  }

  /** Whether the lease was lost, or so close to its end that the command was told to end. */
  get isLost(): boolean {
    if (!this.#lease.held) this.look();
    return this.#isLost;
  }

  /** Asks the clocks, and ends what has to end. */
  look(): void {
    const { graceMs, deadlines } = this.#supervision;
    const { lost, remainingMs, expiresAt } = this.#lease;
    if (expiresAt !== this.#told) deadlines.write(remainingMs);
    this.#told = expiresAt;
    if (!this.#isLost && (lost || remainingMs <= graceMs)) {
      this.#isLost = true;
      this.#supervision.onLost(isHoldfastError(lost, 'LeaseLost') ? lost.reason : 'deadline');
      this.terminate(graceMs);
      return;
    }
    const leftMs = Math.min(remainingMs, (this.#killAt ?? Number.POSITIVE_INFINITY) - performance.now());
    this.end();
    if (leftMs <= 0) {
      this.#command.kill();
      return;
    }
    this.#timer = setTimeout(
      () => this.look(),
      Math.max(1, Math.min(LOOK_MS, this.#isLost ? leftMs : leftMs - graceMs)),
    );
  }

  /** Sees to it that the group ends in so many milliseconds. @param asks whether to send SIGTERM first */
  terminate(withinMs: number, asks = true): void {
    this.#killAt ??= performance.now() + withinMs;
    // A stopped process acts on SIGTERM only once it is woken.
    if (asks) for (const signal of ['SIGTERM', 'SIGCONT'] as const) this.#command.signal(signal);
    this.look();
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
