import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { PYTHON_CLIENT } from '../../support/programs/python.ts';
import type { Call, Movement, Player, Report } from './player.ts';
import type { Step } from './row.ts';

const WORKER = 'clients/python/test/vectors_worker.py';

/** The Python client, in a process that takes commands line by line. */
export class PythonPlayer implements Player {
  reports: Report[] = [];
  readonly #python: string;
  readonly #kind: 'sync' | 'asyncio';
  #child: ChildProcess | undefined;
  #answered: (nextMs: number) => void = () => {};
  #before = '';
  #stderr = '';

  constructor(python: string, kind: 'sync' | 'asyncio') {
    this.#python = python;
    this.#kind = kind;
  }

  async begin(call: Call): Promise<void> {
    this.reports = [];
    this.#child ??= this.#start();
    await this.#send({ begin: call });
  }

  #start(): ChildProcess {
    const env = { ...process.env, ...PYTHON_CLIENT };
    const child = spawn(this.#python, [WORKER, this.#kind], { env, stdio: ['pipe', 'pipe', 'pipe'] });
    child.stderr?.on('data', (text) => {
      this.#stderr += text;
    });
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (child !== this.#child) return;
      const report = JSON.parse(line) as Report | { next: number | null };
      if ('next' in report) this.#answered(report.next ?? Number.POSITIVE_INFINITY);
      else this.reports.push(report);
    });
    child.on('exit', () => this.#answered(Number.NaN));
    return child;
  }

  async #send(command: object): Promise<number> {
    const answer = new Promise<number>((resolve) => {
      this.#answered = resolve;
    });
    this.#child?.stdin?.write(`${JSON.stringify(command)}\n`);
    const nextMs = await answer;
    if (Number.isNaN(nextMs)) throw new Error(`the worker has ended: ${this.#stderr}`);
    return nextMs;
  }

  async act(step: Step, index: number): Promise<void> {
    await this.#send({ act: { ...step, index } });
  }

  async move(ms: number, how: Movement): Promise<void> {
    await this.#send({ move: ms, how });
  }

  /** By the statistics of Linux: every thread of the process sleeps, and none has run since the last check. */
  async isIdle(): Promise<boolean> {
    if (process.platform !== 'linux') {
      await delay(30);
      return true;
    }
    const before = this.#before;
    this.#before = this.#threads();
    return this.#before !== '' && this.#before === before;
  }

  /** How often each thread has run. Empty if one runs now. */
  #threads(): string {
    const folder = `/proc/${this.#child?.pid}/task`;
    try {
      const ran = readdirSync(folder).map((thread) => {
        const state = readFileSync(`${folder}/${thread}/stat`, 'utf8').split(') ').at(-1)?.[0];
        return state === 'S' ? `${thread} ${readFileSync(`${folder}/${thread}/schedstat`, 'utf8')}` : undefined;
      });
      return ran.includes(undefined) ? '' : ran.join();
    } catch {
      return ''; // a thread ended between the two reads
    }
  }

  async nextMs(): Promise<number> {
    return this.#send({});
  }

  /** A call without an outcome would go on in the next row. */
  async end(): Promise<void> {
    if (!this.reports.some((one) => 'outcome' in one)) this.stop();
  }

  stop(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }
}
