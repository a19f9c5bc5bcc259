import { expect, it } from 'vitest';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { onceWorld } from '../support/worlds/once.ts';

// The service in memory has one clock, and so it needs no margin.
const world = await onceWorld({ clockSkewMs: 0 });
const { clock } = world;

type Input = Record<string, unknown>;
type Answer = Record<string, unknown>;
type Call = (input: Input) => Promise<unknown>;
type Operation = keyof typeof OPERATIONS;

/** The calls of the test's world, with the names that they have in the API. */
const OPERATIONS = {
  begin: 'onceBegin',
  complete: 'onceComplete',
  release: 'release',
  heartbeat: 'heartbeat',
  forget: 'onceForget',
  readOnce: 'readOnce',
} as const;

/** A step that both services play. A break is missing, because its repeat has another answer in memory. `of`: the number of the grant that it names. */
interface Step {
  operation: Operation | 'advance';
  of?: number;
  input?: Input;
  ms?: number;
}

/** The service, or the service in memory, with the grants that it has made for one key. */
class Side {
  readonly #key: string;
  readonly #call: (operation: Operation) => Call;
  readonly #grants: { leaseId: string; fence: number; request?: string }[] = [];

  constructor(key: string, call: (operation: Operation) => Call) {
    this.#key = key;
    this.#call = call;
  }

  /** @returns the answer, with the number of a grant in the place of its fence */
  async play({ operation, of = 0, input }: Step): Promise<Answer> {
    if (operation === 'advance') return {};
    const at = of % Math.max(1, this.#grants.length);
    const grant = this.#grants[at] ?? { leaseId: 'o.none', fence: 1 };
    // The service knows a grant by the name of its request, so for an earlier grant of a request it answers how the last one ended.
    const isEarlier = this.#grants.some(({ request }, nth) => nth > at && request && request === grant.request);
    if (isEarlier && ['complete', 'release', 'heartbeat'].includes(operation)) return {};
    const named = { forget: { fence: grant.fence }, begin: {}, readOnce: {} };
    const own = operation in named ? named[operation as keyof typeof named] : { leaseId: grant.leaseId };
    try {
      const answer = (await this.#call(operation)({ key: this.#key, ...own, ...input })) as Answer;
      const request = input?.requestId && `${input.requestId} of ${answer.holder}`;
      if (answer.outcome === 'run' && !answer.repeated) this.#grants.push({ ...answer, request } as never);
      return this.#seen(answer);
    } catch (error) {
      const { code, context, ...fields } = error as { code?: string; context?: Answer };
      if (code === undefined) throw error;
      const { reason, field, retryWith } = { ...fields, ...context } as Answer;
      return { code, reason, field, retryWith };
    }
  }

  /** The numbers of the grants rise as the fences do. */
  #numberOf = (fence: unknown) => {
    const at = this.#grants.findIndex((one) => one.fence === fence);
    return at < 0 ? fence : at;
  };

  #seen(answer: Answer): Answer {
    const { outcome, slot, doneSlot, result, repeated, completed, reason, released, forgotten, fence, state } = answer;
    const { holder, ended } = (answer.previous ?? {}) as Answer;
    const done = answer.done as Answer | undefined;
    return {
      ...{ outcome, slot, doneSlot, repeated, completed, released, forgotten, state, reason },
      ...{ result: result ?? null, by: answer.doneBy, fence: this.#numberOf(fence), before: holder, ended },
      ...(done && { done: [done.slot, done.by, this.#numberOf(done.fence)] }),
    };
  }
}

let keys = 0;

/** A new key of the service and of a service in memory, whose clocks show the same time. */
function setting() {
  const manual = new ManualClock();
  manual.wallMs = clock.now();
  const memory = new MemoryService({ surroundings: manual });
  const { signal } = new AbortController();
  const inMemory = (operation: Operation) => (input: Input) => {
    const holder = operation === 'begin' && { holder: 'tester' };
    return memory.transport(OPERATIONS[operation], { ...holder, ...input } as never, signal);
  };
  const key = `memory/${++keys}`;
  const sides = [new Side(key, (operation) => world[operation] as Call), new Side(key, inMemory)];
  return async (step: Step): Promise<Answer[]> => {
    if (step.ms !== undefined) {
      clock.advance(step.ms);
      manual.block(step.ms);
    }
    return Promise.all(sides.map((side) => side.play(step)));
  };
}

const begin = (input: Input = {}): Step => ({ operation: 'begin', input });
const grant = (operation: Operation, of = 0): Step => ({ operation, of });
const advance = (ms: number): Step => ({ operation: 'advance', ms });

it.each<[string, Step[], Answer]>([
  ['completes a run that it has released', [begin(), grant('release'), grant('complete')], { reason: 'released' }],
  [
    'completes a run again after its slot was forgotten',
    [begin(), grant('complete'), grant('forget'), grant('complete')],
    { reason: 'released' },
  ],
  [
    'begins a slot after a later slot was kept for a shorter time',
    [
      ...[begin({ slot: '1', keepSeconds: 3600, ttlSeconds: 2 }), grant('complete')],
      ...[begin({ slot: '2', keepSeconds: 2, ttlSeconds: 2 }), grant('complete', 1)],
      ...[advance(4000), begin({ slot: '1' })],
    ],
    { outcome: 'superseded' },
  ],
  [
    'begins a slot that is later by its bytes',
    [begin({ slot: '\uff5e' }), grant('complete'), begin({ slot: '😀' })],
    { outcome: 'run' },
  ],
  [
    'begins a period after a slot that sorts after all periods is done',
    [begin({ slot: 'zzz' }), grant('complete'), begin({ per: '1d' })],
    { code: 'Conflict', field: 'per' },
  ],
  [
    'goes on for the period of an earlier call',
    [begin({ per: '1d', slot: '2026-01-01' }), grant('complete'), begin({ per: '1d', slot: '2025-12-31' })],
    { outcome: 'superseded', doneSlot: '2026-01-01' },
  ],
  [
    'begins a day of another zone',
    [begin({ per: '1d', zone: 'Pacific/Kiritimati' }), grant('complete'), begin({ per: '1w', zone: 'Europe/Berlin' })],
    { outcome: 'run' },
  ],
  [
    'forgets a slot while a run is expired',
    [begin({ slot: '1', ttlSeconds: 2 }), advance(3000), grant('forget')],
    { code: 'LeaseHeld' },
  ],
  [
    'begins with a request whose run it has released, for a slot that was done before',
    [
      ...[begin({ slot: '1' }), grant('complete'), begin({ slot: '2', requestId: 'q' })],
      ...[grant('release', 1), begin({ slot: '1', requestId: 'q' })],
    ],
    { outcome: 'done' },
  ],
  [
    'begins with a request whose run has expired',
    [begin({ requestId: 'q', ttlSeconds: 2 }), advance(3000), begin({ requestId: 'q' })],
    { outcome: 'run', ended: 'expired' },
  ],
  [
    'begins with a request of which two runs have expired',
    [
      ...[begin({ requestId: 'q', ttlSeconds: 2 }), advance(3000)],
      ...[begin({ requestId: 'q', ttlSeconds: 2 }), advance(3000), begin({ requestId: 'q' })],
    ],
    { outcome: 'run', ended: 'expired' },
  ],
  [
    'completes a run that it has released, and that another caller has begun',
    [begin(), grant('release'), begin({ holder: 'other' }), grant('complete')],
    { reason: 'taken' },
  ],
  [
    'begins after a slot was forgotten, whose worker is not named because it completed',
    [begin(), grant('complete'), grant('forget'), begin()],
    { outcome: 'run', ended: undefined },
  ],
])('The service in memory answers as the service does if a caller %s', async (_, steps, expected) => {
  const play = setting();
  let last: Answer[] = [];
  for (const step of steps) last = await play(step);
  expect(last[0]).toMatchObject(expected);
  expect(last[1]).toEqual(last[0]);
});

/** The next step of a random play. */
function stepOf(random: () => number): Step {
  const pick = <T>(...from: T[]): T => from[Math.floor(random() * from.length)] as T;
  const of = Math.floor(random() * 8);
  const operation = pick<Step['operation']>(
    ...(['begin', 'begin', 'begin', 'complete', 'complete', 'release', 'heartbeat', 'forget'] as const),
    ...(['readOnce', 'advance', 'advance'] as const),
  );
  if (operation === 'advance') return advance(pick(1003, 2006, 9027));
  if (operation === 'complete') return { operation, of, input: { result: of } };
  if (operation !== 'begin') return { operation, of };
  const ttlSeconds = pick(2, 5, 60);
  const slot = pick<Input>({ slot: pick('1', '2', '\uff5e', '😀') }, { per: pick('5s', '1m') }, {});
  const requestId = pick<Input>({}, { requestId: pick('q', 'r') });
  const keep = pick<Input>({}, { keepSeconds: pick(120, 200, 3600) });
  return begin({ ...slot, ...requestId, ...keep, ttlSeconds, holder: pick('one', 'two') });
}

it('the service in memory answers as the service does to the same random calls', async () => {
  const seed = testSeed();
  const happened = { run: 0, done: 0, superseded: 0, LeaseHeld: 0, LeaseLost: 0, taken: 0, released: 0 };
  const asked = rounds(300, 8);
  for (let round = 0; goesOn(round, asked, happened); round++) {
    const random = seededRandom(seed + round);
    const play = setting();
    const steps: Step[] = [];
    for (let count = 0; count < 40; count++) {
      const step = stepOf(random);
      steps.push(step);
      const [ofService, inMemory] = await play(step);
      expect(inMemory, `seed ${seed + round}: ${JSON.stringify(steps)}`).toEqual(ofService);
      for (const what of [ofService?.outcome, ofService?.code, ofService?.reason])
        if (String(what) in happened) happened[what as keyof typeof happened] += 1;
    }
  }
  expectAllHappened(happened);
});
