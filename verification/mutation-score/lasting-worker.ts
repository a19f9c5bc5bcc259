import {
  type PoolOptions,
  type PoolWorker,
  ThreadsPoolWorker,
  type VitestPluginContext,
  type WorkerRequest,
} from 'vitest/node';

type Callback = (...args: unknown[]) => void;
type Config = Extract<WorkerRequest, { type: 'start' }>['context']['config'];

/** The worker of this process. */
let thread: ThreadsPoolWorker | undefined;

/**
 * Keeps the worker thread from one run of vitest to the next, with the AWS SDK and the product loaded. Stryker runs vitest again for
 * each mutant, and vitest starts a worker for each run: loading would be nine tenths of the time.
 */
export const lastingWorker = () => ({
  name: 'lasting-worker',
  configureVitest({ project, vitest }: VitestPluginContext): void {
    const poolRunner = { name: 'lasting', createPoolWorker: (options: PoolOptions) => new LastingWorker(options) };
    // Stryker names one of vitest's own pools, so the pool in a config would be ignored.
    Object.assign(project.config, { pool: poolRunner.name, poolRunner });
    vitest.onClose(end);
  },
});

async function end(): Promise<void> {
  const ended = thread;
  thread = undefined;
  await ended?.stop();
}

/** The worker of one run, as vitest sees it. */
class LastingWorker implements PoolWorker {
  readonly name = 'lasting';
  readonly #options: PoolOptions;
  #listeners: [event: string, callback: Callback][] = [];
  #isFirst = false;
  #config: Config | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (thread) return;
    this.#isFirst = true;
    thread = new ThreadsPoolWorker(this.#options);
    await thread.start();
    const started = thread;
    thread.on('exit', () => {
      if (thread === started) thread = undefined;
    });
  }

  on(event: string, callback: Callback): void {
    this.#listeners.push([event, callback]);
    thread?.on(event, callback);
  }

  off(event: string, callback: Callback): void {
    this.#listeners = this.#listeners.filter(([, one]) => one !== callback);
    thread?.off(event, callback);
  }

  send(message: WorkerRequest): void {
    // The context has the filter of the tests, which a run must not take from the run before.
    if (message.type === 'start') this.#config = message.context.config;
    if (message.type === 'run') Object.assign(message.context, { config: this.#config });
    if (message.type === 'stop') this.#answer('stopped');
    else if (message.type === 'start' && !this.#isFirst) this.#answer('started');
    else thread?.send(message);
  }

  #answer(type: 'started' | 'stopped'): void {
    for (const [event, callback] of this.#listeners)
      if (event === 'message') queueMicrotask(() => callback({ type, __vitest_worker_response__: true }));
  }

  /** Ends the run. The thread stays. */
  async stop(): Promise<void> {
    for (const [event, callback] of this.#listeners) thread?.off(event, callback);
  }

  deserialize(data: unknown): unknown {
    return data;
  }
}
