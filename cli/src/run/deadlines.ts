import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';

/** Where the file may be made: a container may have little that can be written. */
const FOLDERS = [tmpdir(), '/dev/shm', '.'];

/** A line has this length, so that none lies across two pages and is read in part. */
const LINE_BYTES = 16;

/** Tells the guard of a group until when the group may live: by a file without a name, which gets longer by a line each time. */
export class Deadlines {
  /** For the guard to read. */
  readonly readable: number;
  readonly #writable: number;

  /** @throws Failure where no file can be made */
  constructor(folders: readonly string[] = FOLDERS) {
    const why = [];
    for (const folder of folders)
      try {
        const path = join(folder, `.holdfast-${crypto.randomUUID()}`);
        this.#writable = openSync(path, 'wx', 0o600);
        this.readable = openSync(path, 'r');
        unlinkSync(path);
        return;
      } catch (error) {
        why.push((error as Error).message);
      }
    throw new Failure(`the guard of the command needs a file: ${why.join('; ')}`, EXIT.notExecutable);
  }

  /** @param remainingMs in how many milliseconds from now the group must have ended */
  write(remainingMs: number): void {
    const at = Math.floor(clock() + remainingMs / 10);
    writeSync(this.#writable, `${String(at).padEnd(LINE_BYTES - 1)}\n`);
  }

  /** Once the guard has it. */
  handedOver(): void {
    closeSync(this.readable);
  }
}

/** What the clock of the guard shows (scripts.ts), in hundredths of a second. */
const clock = (): number =>
  process.platform === 'linux' ? Number.parseFloat(readFileSync('/proc/uptime', 'utf8')) * 100 : Date.now() / 10;
