import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { type DynamoDBClient, TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import type { SFNClient } from '@aws-sdk/client-sfn';
import { networkError, serviceError } from '../../test/support/faults/cuttable.ts';
import { type FaultSource, REQUEST_FAULTS, type RequestFault } from './faults.ts';
import type { Entry } from './history.ts';
import { effectsOf } from './landed.ts';
import { currentThread, type Thread } from './simulation.ts';

/** What a thread that sends requests carries with it. */
export interface Sender {
  faults: FaultSource;
  /** The call that the requests belong to. */
  entry: Entry;
  /** Simulated milliseconds at which the function's own deadline ends all its requests. */
  deadlineAt: number;
}

interface Store {
  /** When the client gives up on a try, in milliseconds. */
  timeoutMs: number;
  /** The shortest and the longest time of half a round trip. */
  latencyMs: [number, number];
}

/** By how many milliseconds an answer about an execution may be late. 0 while Step Functions and Lambda are not slow. */
export interface Questions {
  maxMs: number;
}

/** The name of the fault that strikes only questions about executions. */
export const QUESTION_LATE = 'question about an execution late';

const DYNAMODB: Store = { timeoutMs: 2000, latencyMs: [1, 6] };
const S3: Store = { timeoutMs: 5000, latencyMs: [3, 20] };

/** Step Functions, and Lambda as far as callbacks of durable functions are concerned. */
const STEP_FUNCTIONS: Store = { timeoutMs: 3000, latencyMs: [5, 30] };
const LAMBDA: Store = { ...STEP_FUNCTIONS };

type Send = () => Promise<object>;

/** Puts faults and simulated time between a DynamoDB client and its emulator. */
export const injectIntoDynamodb = (client: DynamoDBClient): void => inject(client, DYNAMODB);

/** Puts faults and simulated time between a client of S3 and its emulator. */
export const injectIntoS3 = (client: S3Client): void =>
  inject(client as unknown as Pick<DynamoDBClient, 'middlewareStack'>, S3);

/** Puts faults and simulated time between a client and the model of Step Functions. */
export const injectIntoStepFunctions = (client: SFNClient, questions: Questions): void =>
  inject(client as unknown as Pick<DynamoDBClient, 'middlewareStack'>, STEP_FUNCTIONS, questions);

/** Puts faults and simulated time between a client and the model of durable functions. */
export const injectIntoLambda = (client: SFNClient, questions: Questions): void =>
  inject(client as unknown as Pick<DynamoDBClient, 'middlewareStack'>, LAMBDA, questions);

/** Adds the faults as the innermost part of the SDK's stack, so that each try meets its own fault. */
function inject(client: Pick<DynamoDBClient, 'middlewareStack'>, store: Store, questions?: Questions): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const thread = currentThread();
      return thread ? thread.operation(() => next(args)) : next(args);
    },
    { step: 'initialize', priority: 'high', name: 'operations' },
  );
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const thread = currentThread();
      if (!thread || !('faults' in thread.locals)) return next(args);
      const command = String(context.commandName).replace(/Command$/, '');
      const sent = thread.simulation.moment;
      const send = () =>
        thread.simulation.busily(async () => {
          const { result, text } = await whole(await next(args), store);
          note(thread, { command, input: args.input, sent, answer: result, text });
          return result;
        });
      const { headers = {} } = args.request as { headers?: Record<string, string> };
      // The SDK pauses between its tries; the clients here do not, because that would be real time.
      if (!/^attempt=1\b/.test(headers['amz-sdk-request'] ?? '')) await pause(thread);
      const named = { command, label: labelOf(command, args.input), send };
      const request = new Request(thread, { store, questions }, named);
      return (await request.run()) as Awaited<ReturnType<typeof next>>;
    },
    { step: 'deserialize', priority: 'low', name: 'faults' },
  );
}

/** The name of a request in the list of faults. The slot of a held call is named, because the call frees the slot after its grant. */
function labelOf(command: string, input: object): string {
  const { Key: name } = input as { Key?: { key?: { S?: string } } };
  return name?.key?.S?.startsWith('holdfast:held:') ? `${command} of a slot` : command;
}

interface Arrived {
  command: string;
  input: object;
  /** The moment in which the request was sent. */
  sent: number;
  answer: { response: unknown };
  /** The body of the answer. */
  text: string;
}

/** Notes what a request did to records and lines, because the checkers must know more than answers show. */
function note({ simulation, locals }: Thread, { command, input, sent, answer, text }: Arrived): void {
  if ((answer.response as { statusCode?: number }).statusCode !== 200) return;
  const effects = effectsOf(command, input, () => JSON.parse(text));
  if (effects.length === 0) return;
  const { entry } = locals as Sender;
  entry.landed ??= [];
  for (const one of effects) entry.landed.push({ ...one, sent, moment: ++simulation.moment, ms: simulation.now });
}

async function pause(thread: Thread): Promise<void> {
  const { faults } = thread.locals as Sender;
  await thread.simulation.sleep(faults.magnitude(20, 2000));
}

/**
 * Reads the answer to its end, because an unread answer would keep its connection. Only the body of
 * an answer of S3 must be a stream again. Streams of all answers would take an eighth of the time of a history.
 */
async function whole<Result extends { response: unknown }>(
  result: Result,
  store: Store,
): Promise<{ result: Result; text: string }> {
  const response = result.response as { body?: unknown };
  if (!(response.body instanceof Readable)) return { result, text: '' };
  const body = Buffer.concat(await chunksOf(response.body));
  response.body = store === S3 ? Readable.from([body]) : body;
  return { result, text: body.toString() };
}

/** Faster than `buffer` of node:stream/consumers, which goes through a Blob. */
async function chunksOf(stream: Readable): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await finished(stream);
  return chunks;
}

class Request {
  readonly #thread: Thread;
  readonly #sender: Sender;
  readonly #store: Store;
  readonly #questions: Questions | undefined;
  readonly #command: string;
  readonly #label: string;
  readonly #send: Send;
  readonly #timeoutAt: number;

  constructor(
    thread: Thread,
    { store, questions }: { store: Store; questions: Questions | undefined },
    { command, label, send }: { command: string; label: string; send: Send },
  ) {
    this.#thread = thread;
    this.#questions = questions;
    this.#sender = thread.locals as Sender;
    this.#store = store;
    this.#command = command;
    this.#label = label;
    this.#send = send;
    this.#timeoutAt = thread.simulation.now + store.timeoutMs;
  }

  async run(): Promise<object> {
    const fault = this.#sender.faults.draw(this.#possible(), this.#command);
    if (fault) {
      this.#sender.faults.note(fault);
      this.#sender.entry.faults.push(`${this.#label} ${fault}`);
    }
    const { faults } = this.#sender;
    switch (fault) {
      case undefined:
        return this.#exchange(this.#latency(), this.#latency() + this.#questionLateMs());
      case 'lostBefore':
        await this.#sleep(this.#latency());
        throw networkError('ECONNREFUSED', 'connect');
      case 'lostReply':
        await this.#landAfter(this.#latency());
        await this.#sleep(this.#latency());
        throw networkError('ECONNRESET', 'read');
      case 'reset':
        if (faults.random() < 0.5) await this.#landAfter(this.#latency());
        throw networkError('ECONNRESET', 'write');
      case 'error500':
        if (faults.random() < 0.5) await this.#landAfter(this.#latency());
        throw serviceError(this.#store === S3 ? 'InternalError' : 'InternalServerError', 500);
      case 'throttled':
        await this.#sleep(this.#latency());
        throw throttling(this.#store);
      case 'transactionConflict':
        await this.#sleep(this.#latency());
        throw transactionConflict(this.#command);
      case 's3Conflict':
        await this.#sleep(this.#latency());
        throw serviceError('ConditionalRequestConflict', 409);
      case 'slow':
        return this.#exchange(this.#latency(), faults.between(1000, 4000));
      case 'delayed':
        return this.#exchange(faults.magnitude(100, 40_000), this.#latency());
      case 'duplicated':
        this.#stray(this.#latency() + faults.magnitude(1, 60_000) + this.#duplicateAfterMs());
        return this.#exchange(this.#latency(), this.#latency());
      case 'freeze':
        return this.#freeze(faults.magnitude(500, 100_000));
      case 'death':
        if (faults.random() < 0.5) await this.#landAfter(this.#latency());
        return this.#die();
    }
  }

  #possible(): RequestFault[] {
    const isWrite = /^(Put|Update|Delete|Transact|Send)/.test(this.#command);
    // A third-party client stalls and crashes by other faults, and its protocol does not withstand an unconditional PUT that arrives a minute late.
    const foreign = ['lostBefore', 'lostReply', 'slow', 'delayed', 'throttled', 'error500', 'reset'];
    return REQUEST_FAULTS.filter((kind) => {
      if (this.#sender.entry.foreign)
        return foreign.includes(kind) || (kind === 'duplicated' && isWrite && this.#store === DYNAMODB);
      if (kind === 'transactionConflict') return isWrite && this.#store === DYNAMODB;
      if (kind === 's3Conflict') return isWrite && this.#store === S3;
      return isWrite || kind !== 'duplicated';
    });
  }

  /** The request arrives and its answer comes back, unless the client gives up before that. */
  async #exchange(thereMs: number, backMs: number): Promise<object> {
    const { now } = this.#thread.simulation;
    const givesUpAt = Math.min(this.#timeoutAt, this.#sender.deadlineAt);
    if (now + thereMs + backMs > givesUpAt) {
      this.#stray(thereMs, now + thereMs > givesUpAt);
      await this.#sleep(givesUpAt - now);
      throw this.#gaveUp();
    }
    await this.#sleep(thereMs);
    const answer = await this.#send().then(
      (result) => () => result,
      (error) => () => {
        throw error;
      },
    );
    await this.#sleep(backMs);
    return answer();
  }

  /** The function stands still before it sends the request, or before it sees the answer. */
  async #freeze(ms: number): Promise<object> {
    const isBefore = this.#sender.faults.random() < 0.5;
    if (isBefore) await this.#sleep(ms);
    const answer = await this.#send();
    if (!isBefore) await this.#sleep(ms);
    if (this.#thread.simulation.now > this.#sender.deadlineAt) throw this.#gaveUp();
    return answer;
  }

  #die(): Promise<never> {
    this.#thread.die();
    return new Promise(() => {});
  }

  async #landAfter(ms: number): Promise<void> {
    await this.#sleep(ms);
    await this.#send();
  }

  /** The request arrives even though its caller has stopped waiting for the answer. */
  #stray(ms: number, isLate = true): void {
    const { simulation } = this.#thread;
    if (isLate) this.#sender.entry.strays += 1;
    simulation.spawn('stray', {}, async () => {
      await simulation.sleep(ms);
      await this.#send().catch(() => undefined);
    });
  }

  #gaveUp(): Error {
    if (this.#thread.simulation.now >= this.#sender.deadlineAt)
      return Object.assign(new Error('Request aborted'), { name: 'AbortError' });
    return Object.assign(new Error('the request timed out'), { name: 'TimeoutError' });
  }

  /**
   * A task or a callback takes one result, and the refusal of a second result does not say whose the first was. docs/safety.md assumes that Step Functions
   * and Lambda answer for the first of two copies of a request, so the second copy must come later. A store may answer for either copy.
   */
  #duplicateAfterMs(): number {
    return isOfMessages(this.#store) ? this.#store.latencyMs[1] : 0;
  }

  #questionLateMs(): number {
    const { maxMs = 0 } = this.#questions ?? {};
    if (maxMs === 0 || !/^(DescribeExecution|GetDurableExecution)$/.test(this.#command)) return 0;
    this.#sender.faults.note('questionLate');
    this.#sender.entry.faults.push(QUESTION_LATE);
    return this.#sender.faults.between(0, maxMs);
  }

  #latency(): number {
    return this.#sender.faults.between(...this.#store.latencyMs);
  }

  #sleep(ms: number): Promise<void> {
    return this.#thread.simulation.sleep(ms);
  }
}

const isOfMessages = (store: Store): boolean => store === STEP_FUNCTIONS || store === LAMBDA;

function throttling(store: Store): Error {
  if (store === S3) return serviceError('SlowDown', 503);
  if (store === LAMBDA) return serviceError('TooManyRequestsException', 429);
  return serviceError(store === DYNAMODB ? 'ProvisionedThroughputExceededException' : 'ThrottlingException', 400);
}

function transactionConflict(command: string): Error {
  if (command !== 'TransactWriteItems') return serviceError('TransactionConflictException', 400);
  return new TransactionCanceledException({
    message: 'Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict]',
    $metadata: { httpStatusCode: 400 },
    CancellationReasons: [{ Code: 'TransactionConflict' }],
  });
}
