import { setTimeout as sleep } from 'node:timers/promises';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import type { Lease } from '../../../clients/typescript/src/lease.ts';
import { EXIT } from '../exit-codes.ts';
import type { Command } from './command.ts';

/** How often the clocks are checked, in milliseconds, because timers do not run while the machine sleeps. */
const CHECK_MS = 250;

/** How often remaining processes of a command are counted, in milliseconds. */
const COUNT_MS = 20;

interface Supervision {
  /** How long the group may take to end after SIGTERM, in milliseconds. */
  graceMs: number;
  /** True if the command works for a slot: if it succeeded before this process noticed the loss, the service decides whether the slot is done. */
  isOnce: boolean;
  /** Called with the reason when the command must end. */
  onLost(why: string): void;
}

/**
 * Lets a command run while its lease is certainly held. Before the lease ends, its whole process group is ended by SIGTERM, and after a grace period by
 * SIGKILL. Processes that the command leaves behind are ended in the same way.
 * @returns the exit code of the command, or EXIT.lost if the lease was lost first
 * @throws Failure if the command could not be started
 */
export async function supervise(lease: Lease, command: Command, supervision: Supervision): Promise<number> {
  const watch = new Watch(lease, command, supervision);
  const tick = () => watch.tick();
  lease.signal.addEventListener('abort', tick);
  process.on('SIGCONT', tick);
  try {
    tick();
    const exitCode = await command.exited;
    if (exitCode !== 0) watch.mayBeDone = false;
    if (command.isAlive) {
      // Processes that got a signal together with the command are ending already. A second signal could interrupt their clean-up.
      watch.terminate(supervision.graceMs, exitCode < 128 && !command.wasSignalled);
      while (command.isAlive) await sleep(COUNT_MS);
    }
    return watch.isLost ? EXIT.lost : exitCode;
  } finally {
    watch.end();
    await command.kill();
    lease.signal.removeEventListener('abort', tick);
    process.off('SIGCONT', tick);
  }
}

/** Watches the clocks of a lease, and ends the command in time. */
class Watch {
  /** True if a command that has ended may have done its slot, even if the lease has expired by now. */
  mayBeDone: boolean;
  readonly #lease: Lease;
  readonly #command: Command;
  readonly #supervision: Supervision;
  #isLost = false;
  #extendedUntil: string | undefined;
  #killAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(lease: Lease, command: Command, supervision: Supervision) {
    this.#lease = lease;
    this.#command = command;
    this.#supervision = supervision;
    this.mayBeDone = supervision.isOnce;
  }

  /** True if the lease was lost, or so close to its end that the command was ended. */
  get isLost(): boolean {
    if (!this.#lease.held) this.tick();
    return this.#isLost;
  }

  /** Checks the clocks, and ends the command if it is time. */
  tick(): void {
    const { graceMs } = this.#supervision;
    const { lost, remainingMs, expiresAt } = this.#lease;
    if (expiresAt !== this.#extendedUntil) this.#command.extend(remainingMs);
    this.#extendedUntil = expiresAt;
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
      () => this.tick(),
      Math.max(1, Math.min(CHECK_MS, this.#isLost ? leftMs : leftMs - graceMs)),
    );
  }

  /** Ends the group within this many milliseconds. @param asks whether to send SIGTERM first */
  terminate(withinMs: number, asks = true): void {
    this.#killAt ??= performance.now() + withinMs;
    // A stopped process acts on SIGTERM only when it continues.
    if (asks) for (const signal of ['SIGTERM', 'SIGCONT'] as const) this.#command.signal(signal);
    this.tick();
  }

  /** Stops watching. */
  end(): void {
    clearTimeout(this.#timer);
  }
}
