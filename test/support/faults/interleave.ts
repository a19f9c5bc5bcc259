import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

/**
 * Runs actors one request at a time, in an order that a seed decides. Every request waits before the client sends it, and its answer waits
 * before the actor receives it. Once all actors wait, one of them goes on. So each seed names one interleaving, and reproduces it.
 */
export class Interleaver {
  readonly #random: () => number;
  readonly #waiting: (() => void)[] = [];
  #acting = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Resolves when this actor's turn has come. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#next();
    });
  }

  async run(actors: (() => Promise<void>)[]): Promise<void> {
    this.#acting = actors.length;
    await Promise.all(
      actors.map(async (actor) => {
        await this.turn();
        await actor();
        this.#acting--;
        this.#next();
      }),
    );
  }

  #next(): void {
    if (this.#acting === 0 || this.#waiting.length < this.#acting) return;
    const [chosen] = this.#waiting.splice(Math.floor(this.#random() * this.#waiting.length), 1);
    chosen?.();
  }

  /** Makes the requests of a client wait for their turns. */
  gate(client: { middlewareStack: DynamoDBClient['middlewareStack'] }): void {
    client.middlewareStack.add(
      (next) => async (args) => {
        await this.turn();
        try {
          return await next(args);
        } finally {
          await this.turn();
        }
      },
      { step: 'deserialize', priority: 'low', name: 'gate' },
    );
  }
}
