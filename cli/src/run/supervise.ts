import { setTimeout as sleep } from 'node:timers/promises';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import type { Lease } from '../../../clients/typescript/src/lease.ts';
import { EXIT } from '../exit-codes.ts';
import type { Command } from './command.ts';

/** The longest time between two looks at the clocks, in milliseconds: timers do not run while the machine sleeps. */
const LOOK_MS = 250;

/** How often remaining processes of a command are counted, in milliseconds. */
const COUNT_MS = 20;

interface Supervision {
  /** How long the group may take to end after SIGTERM, in milliseconds. */
  graceMs: number;
  /** True if the command works for a slot. If it succeeded before this process noticed the loss, the service decides whether the slot is done. */
  isOnce: boolean;
  /** Called once with the reason why the command is ended. */
  onLost(why: string): void;
}

/**
 * Lets a command run while its lease is certainly held. When this returns, its whole process group has ended, and before
 * the lease does: first by SIGTERM, and after a grace period by SIGKILL. The same ends processes that the command left behind.
 * @returns the exit code of the command, or EXIT.lost if the lease was lost first
 * @throws Failure if the command could not be started
 */
export async function supervise(lease: Lease, command: Command, supervision: Supervision): Promise<number> {
  const watch = new Watch(lease, command, supervision);
  const look = () => watch.look();
  lease.signal.addEventListener('abort', look);
  process.on('SIGCONT', look);
  try {
    look();
    const exitCode = await command.exited;
    if (exitCode !== 0) watch.mayBeDone = false;
    if (command.isAlive) {
      // Processes that got a signal together with the command are ending. Another signal would interrupt that.
      watch.terminate(supervision.graceMs, exitCode < 128 && !command.wasSignalled);
      while (command.isAlive) await sleep(COUNT_MS);
    }
    return watch.isLost ? EXIT.lost : exitCode;
  } finally {
    watch.end();
    await command.kill();
    lease.signal.removeEventListener('abort', look);
    process.off('SIGCONT', look);
  }
}

class Watch {
  /** Whether a command that has ended may have done its slot, even if the lease has expired by now. */
  mayBeDone: boolean;
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
    this.mayBeDone = supervision.isOnce;
  }

  /** Whether the lease was lost, or so close to its end that the command was told to end. */
  get isLost(): boolean {
    if (!this.#lease.held) this.look();
    return this.#isLost;
  }

  /** Reads the clocks, and ends the command if it is time. */
  look(): void {
    const { graceMs } = this.#supervision;
    const { lost, remainingMs, expiresAt } = this.#lease;
    if (expiresAt !== this.#told) this.#command.extend(remainingMs);
    this.#told = expiresAt;
    if (!this.#isLost && (lost || remainingMs <= graceMs)) {
      if (this.mayBeDone && this.#command.hasEnded) {
        this.end();
        return;
      }
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

  /** Ends the group within so many milliseconds. @param asks whether to send SIGTERM first */
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
