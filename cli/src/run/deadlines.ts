import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';

/** Folders to try for the file: in a container few may be writable. */
const FOLDERS = [tmpdir(), '/dev/shm', '.'];

/** The fixed length of a line. No line then crosses a page boundary, where it could be read in part. */
const LINE_BYTES = 16;

/** Tells the guard of a process group until when the group may live, by appending lines to a file that has no name. */
export class Deadlines {
  /** For the guard to read. */
  readonly readable: number;
  readonly #writable: number;

  /** @throws Failure if no file can be created */
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

  /** To be called once the guard has inherited the descriptor. */
  handedOver(): void {
    closeSync(this.readable);
  }
}

/** The time on the clock of the guard (scripts.ts), in hundredths of a second. */
const clock = (): number =>
  process.platform === 'linux' ? Number.parseFloat(readFileSync('/proc/uptime', 'utf8')) * 100 : Date.now() / 10;
