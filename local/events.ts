import { createHash, randomUUID } from 'node:crypto';
import { ACCOUNT, REGION } from '../infrastructure/logical-ids.ts';
import type { EventResources, Queue, Target } from '../infrastructure/read-events.ts';
import type { Functions, TriggeredFunction } from './functions.ts';
import { matches } from './pattern.ts';

/** An event as its source puts it on the default bus, which adds id, time, account and region. */
export interface BusEvent {
  source: string;
  'detail-type': string;
  detail: Record<string, unknown>;
  resources?: string[];
}

/**
 * The default event bus of the local stack. It passes each event to the functions and queues whose patterns in serverless.yml match it, and passes the
 * messages of a queue to its functions after the delay of the queue.
 */
export class Events {
  readonly #functions: Functions;
  readonly #resources: EventResources;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** How long a second of a queue takes, in milliseconds. */
  readonly #secondMs: number;
  #stopped = false;

  constructor(functions: Functions, resources: EventResources, secondMs = 1000) {
    this.#functions = functions;
    this.#resources = resources;
    this.#secondMs = secondMs;
  }

  /** Starts the functions of an event, and does not wait for them, because its sender does not wait either. */
  dispatch(put: BusEvent): void {
    if (this.#stopped) return;
    const time = `${new Date().toISOString().slice(0, 19)}Z`;
    const event = { version: '0', id: randomUUID(), account: ACCOUNT, region: REGION, time, resources: [], ...put };
    for (const lambda of this.#functions.all)
      for (const trigger of lambda.triggers)
        if (trigger.kind === 'pattern' && matches(trigger.pattern, event))
          void this.#functions.invokeForEvent(lambda, event);
    for (const { pattern, targets } of this.#resources.rules)
      if (matches(pattern, event)) for (const target of targets) this.#send(target, event);
  }

  /**
   * Puts a message into a queue of serverless.yml.
   * @param delaySeconds instead of the queue's own delay
   * @returns false if there is no such queue
   */
  put(id: string, body: string, delaySeconds?: number): boolean {
    const queue = this.#resources.queues.find((candidate) => candidate.id === id);
    if (!queue) return false;
    const message = { messageId: randomUUID(), body, sentAt: Date.now() };
    for (const lambda of this.#functions.all)
      if (lambda.triggers.some((trigger) => trigger.kind === 'queue' && trigger.queue === id))
        this.#after(delaySeconds ?? queue.delaySeconds, () => this.#receive(queue, lambda, { message, count: 1 }));
    return true;
  }

  /** Drops the messages that wait, and all later ones. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #send({ functionName, queue: id, transformer }: Target, event: object): void {
    const body = transformer ? transformed(transformer, event) : JSON.stringify(event);
    const named = this.#functions.all.find(({ name }) => name === functionName);
    if (named) void this.#functions.invokeForEvent(named, JSON.parse(body));
    if (id !== undefined) this.put(id, body);
  }

  /** Invokes a function with a message. If that fails, does so again after the visibility timeout. */
  async #receive(queue: Queue, lambda: TriggeredFunction, delivery: Delivery): Promise<void> {
    const { message, count } = delivery;
    const answer = await this.#functions.invokeForEvent(lambda, { Records: [record(queue, message, count)] });
    const { batchItemFailures = [] } = Object(answer?.result);
    if (answer && batchItemFailures.length === 0) return;
    if (count >= queue.maxDeliveries) console.error(`${queue.id}: dropped a message after ${count} tries`);
    else this.#after(queue.visibilitySeconds, () => this.#receive(queue, lambda, { message, count: count + 1 }));
  }

  #after(seconds: number, act: () => void): void {
    if (this.#stopped) return; // the stack may have stopped while a function had a message
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, seconds * this.#secondMs);
    this.#timers.add(timer);
  }
}

/** Applies an input transformer: puts fields of the event into a template, as JSON. */
function transformed(
  { InputPathsMap: paths = {}, InputTemplate: template }: NonNullable<Target['transformer']>,
  event: object,
) {
  return template.replaceAll(/<(\w+)>/g, (_, name) => {
    const path = (paths[name] ?? '$').split('.').slice(1);
    const value = path.reduce<unknown>((at, field) => Object(at)[field], event);
    return JSON.stringify(value ?? null);
  });
}

interface Message {
  messageId: string;
  body: string;
  sentAt: number;
}

/** A message, and the number of times that a function has received it, this time included. */
interface Delivery {
  message: Message;
  count: number;
}

const record = (queue: Queue, { messageId, body, sentAt }: Message, count: number) => ({
  messageId,
  receiptHandle: randomUUID(),
  body,
  attributes: {
    ApproximateReceiveCount: String(count),
    SentTimestamp: String(sentAt),
    SenderId: 'events.amazonaws.com',
    ApproximateFirstReceiveTimestamp: String(Date.now()),
  },
  messageAttributes: {},
  md5OfBody: createHash('md5').update(body).digest('hex'),
  eventSource: 'aws:sqs',
  eventSourceARN: `arn:aws:sqs:${REGION}:${ACCOUNT}:${queue.id}`,
  awsRegion: REGION,
});
