import { expect, it } from 'vitest';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const world = await rateWorld();
const { clock } = world;

type Fields = Record<string, unknown>;
/** The calls of the world of tests, and the calls of the API. */
const OPERATIONS = {
  reserve: 'rateReserve',
  settle: 'rateSettle',
  forget: 'rateForget',
  readRates: 'readRates',
  cap: 'capKey',
} as const;
type Operation = keyof typeof OPERATIONS;
type Step = { ms: number } | { operation: Operation; of: number; input: Fields };

/** The service, or the service in memory, with the reservations that it has made for one key. */
class Side {
  readonly #key: string;
  readonly #call: (operation: Operation, input: Fields) => Promise<unknown>;
  readonly #ids: string[] = [];

  constructor(key: string, call: (operation: Operation, input: Fields) => Promise<unknown>) {
    this.#key = key;
    this.#call = call;
  }

  /** @returns what a caller sees, with the numbers of the reservations in place of their ids */
  async play({ operation, of, input }: Exclude<Step, { ms: number }>): Promise<Fields> {
    const reservation = operation === 'settle' && { reservation: this.#ids[of % this.#ids.length] };
    try {
      const answer = (await this.#call(operation, { key: this.#key, ...reservation, ...input })) as Fields;
      if (typeof answer.reservation !== 'string') return answer;
      if (!this.#ids.includes(answer.reservation)) this.#ids.push(answer.reservation);
      return { ...answer, reservation: this.#ids.indexOf(answer.reservation) };
    } catch (error) {
      const { code, context, retryAfterMs, ...fields } = error as { code?: string; context?: Fields } & Fields;
      if (code === undefined) throw error;
      const { boundBy, actual, cap } = { ...fields, ...context } as Fields;
      return { code, retryAfterMs, boundBy, actual, cap };
    }
  }

  get hasNone(): boolean {
    return this.#ids.length === 0;
  }
}

/** The next step of a random play. The holder `two` settles. */
function stepOf(random: () => number, paidUntil: string): Step {
  const pick = <T>(...from: T[]): T => from[Math.floor(random() * from.length)] as T;
  const operation = pick<Operation | 'advance'>(
    ...([
      'reserve',
      'reserve',
      'reserve',
      'settle',
      'settle',
      'forget',
      'readRates',
      'cap',
      'advance',
      'advance',
    ] as const),
  );
  if (operation === 'advance') return { ms: pick(1, 997, 6001, 90_000) };
  const of = Math.floor(random() * 8);
  if (operation === 'settle') {
    const units = { units: pick<Fields>({}, { requests: pick(0, 1, 9, 300) }) };
    return { operation, of, input: pick<Fields>({ cancel: true }, units) };
  }
  if (operation === 'forget') return { operation, of, input: { paidUntil: pick(paidUntil, '2026-01-01T00:00:00Z') } };
  if (operation === 'cap') {
    const rates = pick<Fields[] | null>(null, [{ limit: 5, per: '1m' }], [{ name: 'tokens', limit: 50, per: '10s' }]);
    return { operation, of, input: { ...pick<Fields>({ limit: pick(0, 3, null, null) }, { rates }), reason: 'slow' } };
  }
  if (operation === 'readRates') return { operation, of, input: {} };
  const holder = pick('one', 'two');
  const requests = { limit: pick(7, 10), per: '1m', units: pick(1, 3), ...pick<Fields>({}, { burst: 5 }) };
  const rates = pick<Fields[]>([requests], [requests, { name: 'tokens', limit: 100, per: '10s', units: 7 }]);
  const requestId = pick<Fields>({}, { requestId: pick('q', 'r') });
  const waitSeconds = pick(0, 5, 60);
  return { operation, of, input: { holder, ...requestId, rates, waitSeconds, settle: holder === 'two' } };
}

it('the service in memory answers random calls of rates as the service does', async () => {
  const seed = testSeed();
  const refused = { RateExceeded: 0, InvalidRequest: 0, Conflict: 0, NotFound: 0 };
  const seen = { ...refused, repeated: 0, rateChanged: 0, settled: 0, cancelled: 0, forgotten: 0, paused: 0 };
  const asked = rounds(300, 4);
  const { signal } = new AbortController();
  for (let round = 0; goesOn(round, asked, seen); round++) {
    const random = seededRandom(seed + round);
    const manual = new ManualClock();
    manual.wallMs = clock.now();
    const memory = new MemoryService({ surroundings: manual });
    const key = `memory/${seed}/${round}`;
    const service = new Side(key, (operation, input) => world[operation](input));
    const double = new Side(key, (operation, input) => memory.transport(OPERATIONS[operation], input, signal));
    const steps: Step[] = [];
    for (let count = 0; count < 60; count++) {
      const { paidUntil } = await world.readRate(key);
      const step = stepOf(random, paidUntil ?? '2026-01-01T00:00:00Z');
      steps.push(step);
      if ('ms' in step) {
        clock.advance(step.ms);
        manual.block(step.ms);
      } else if (step.operation !== 'settle' || !service.hasNone) {
        const answer = await service.play(step);
        const why = `seed ${seed + round}: ${JSON.stringify(steps)}`;
        expect(await double.play(step), why).toEqual(answer);
        for (const what of [String(answer.code), ...Object.keys(answer).filter((field) => answer[field] === true)])
          if (what in seen) seen[what as keyof typeof seen] += 1;
        if (answer.rateChanged) seen.rateChanged += 1;
        if (answer.code === 'RateExceeded' && (answer.cap as Fields | undefined)?.limit === 0) seen.paused += 1;
      }
    }
  }
  expectAllHappened(seen);
});
