import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { freePort } from '../../../local/ports.ts';
import type { Movement, Player, Report } from './player.ts';
import { type Received, ScriptedProxy, SECRET } from './proxy.ts';
import {
  difference,
  type Fields,
  isOfWork,
  type Json,
  type Outcome,
  type Row,
  type Step,
  type Vectors,
  waitsForSteps,
} from './row.ts';

/** How long a row goes on after its outcome, in its own milliseconds, to see what is still sent. */
const REST_MS = 60_000;

/** The longest that a row may take, in its own milliseconds. A call without an outcome by then has a fault. */
const LONGEST_MS = 900_000;

/** A client that does not come to rest in this time has a fault, in milliseconds of this machine. */
const STUCK_MS = 60_000;

const MOVEMENTS: Record<string, Movement> = { pause: 'paused', suspend: 'wall', setWall: 'wall' };

/** The real service, for the rows that need one. */
export interface Service {
  url: string;
  /** What others do to a key: acquires as another holder, releases, breaks, reads. */
  others: Record<string, (key: string, step: Step) => Promise<void>>;
  /** How many waiters are in line for a key. */
  waiting(key: string): Promise<number>;
  state(key: string, call: Row['call']): Promise<Fields>;
}

/** Plays a row with a client. @returns what differs from the row */
export async function play(row: Row, player: Player, vectors: Vectors, service?: Service): Promise<string[]> {
  const proxy = new ScriptedProxy(row, vectors, row.state ? service?.url : undefined);
  const url = await proxy.start();
  const { endpoint = url, ...client } = row.client ?? {};
  const closed = `http://127.0.0.1:${await freePort()}`;
  const key = row.state ? `${row.key ?? 'nightly'}/${crypto.randomUUID()}` : (row.key ?? 'nightly');
  const course = new Course(row, { player, proxy, key, service });
  try {
    await course.others('before');
    await player.begin({
      ...{
        call: row.call,
        key,
        options: row.options ?? {},
        client,
        ...(row.random !== undefined && { random: row.random }),
      },
      endpoint: addressOf(endpoint, url, closed),
      waits: waitsForSteps(row),
    });
    await course.run();
    const state = row.state ? await service?.state(key, row.call) : undefined;
    return [
      ...course.differences(),
      ...found(row.state && difference(state, row.state, new Map(), 'the key')),
      ...proxy.mistakes,
    ];
  } finally {
    await player.end();
    await proxy.stop();
  }
}

/** The URL that the client gets, which is wrong in some rows. */
function addressOf(endpoint: string, url: string, closed: string): string {
  if (endpoint === 'closed') return closed;
  return endpoint === 'with a path' ? `${url}/v1` : endpoint;
}

const found = (one: string | undefined): string[] => (one === undefined ? [] : [one]);

interface Stage {
  player: Player;
  proxy: ScriptedProxy;
  key: string;
  service: Service | undefined;
}

class Course {
  readonly #row: Row;
  readonly #stage: Stage;
  readonly #steps: [Step, number][];
  #outcome: Outcome | undefined;

  constructor(row: Row, stage: Stage) {
    this.#row = row;
    this.#stage = stage;
    this.#steps = (row.steps ?? []).map((step, index) => [step, index]);
  }

  /** What others do before the call. */
  async others(when: 'before'): Promise<void> {
    for (const entry of this.#steps.filter(([step]) => step.when === when)) {
      this.#steps.splice(this.#steps.indexOf(entry), 1);
      await this.#act(...entry);
    }
  }

  async run(): Promise<void> {
    const { player, proxy } = this.#stage;
    for (;;) {
      await this.#rest();
      const { changes } = proxy;
      const entry = await this.#dueStep();
      if (entry) await this.#act(...entry);
      else if (changes !== proxy.changes) continue;
      else if (proxy.dueAt <= proxy.now) proxy.sendDue();
      else if (proxy.busy > 0) await delay(2);
      else {
        const next = proxy.now + Math.max(0, await player.nextMs());
        const at = Math.min(next, proxy.dueAt, ...this.#steps.map(([step]) => step.at ?? Number.POSITIVE_INFINITY));
        const end = this.#outcome ? Number(this.#outcome.at) + REST_MS : LONGEST_MS;
        if (at > end || !Number.isFinite(at)) break;
        await this.#move(Math.max(0, at - proxy.now), 'runs');
      }
    }
  }

  async #dueStep(): Promise<[Step, number] | undefined> {
    for (const entry of this.#steps) {
      if (!(await this.#isDue(entry[0]))) continue;
      this.#steps.splice(this.#steps.indexOf(entry), 1);
      return entry;
    }
    return undefined;
  }

  /** A step is due at its time, after a number of requests of an operation, or when a number of callers are in line. */
  async #isDue({ at = Number.POSITIVE_INFINITY, after }: Step): Promise<boolean> {
    const { proxy, service, key } = this.#stage;
    if (typeof after !== 'string') return at <= proxy.now;
    const [operation = '', count = '1'] = after.split(' ');
    const seen = operation === 'waiters' ? await service?.waiting(key) : proxy.count(operation);
    return Number(seen) >= Number(count);
  }

  async #act(step: Step, index: number): Promise<void> {
    const { player, service, key } = this.#stage;
    const movement = MOVEMENTS[step.do];
    const other = service?.others[step.do];
    if (movement) return this.#move(Number(step.ms), movement, step.do !== 'setWall');
    if (isOfWork(step) || step.do === 'cancel') return player.act(step, index);
    if (!other) throw new Error(`no party can ${step.do}`);
    return other(key, step);
  }

  /** @param isTrue whether true time goes on too: false for a clock that is set */
  async #move(ms: number, how: Movement, isTrue = true): Promise<void> {
    const { player, proxy } = this.#stage;
    if (isTrue) proxy.now += ms;
    await player.move(ms, how);
  }

  /** Waits until the client and the proxy have nothing more to do at this moment. */
  async #rest(): Promise<void> {
    const { player, proxy } = this.#stage;
    const startedAt = performance.now();
    for (let calm = 0; calm < 2; ) {
      const before = proxy.changes + player.reports.length;
      const idle = await player.isIdle(proxy.open);
      for (let turns = 0; turns < 4; turns++) await turn();
      this.#note();
      calm = idle && before === proxy.changes + player.reports.length ? calm + 1 : 0;
      if (performance.now() - startedAt > STUCK_MS)
        throw new Error(`the client does not come to rest: ${this.#seen()}`);
    }
  }

  #note(): void {
    const { player, proxy } = this.#stage;
    const report = player.reports.find((one): one is Extract<Report, { outcome: object }> => 'outcome' in one);
    if (report) this.#outcome ??= { ...report.outcome, at: proxy.now };
  }

  #seen(): string {
    return JSON.stringify({ received: this.#stage.proxy.received, reports: this.#stage.player.reports });
  }

  differences(): string[] {
    const { player, proxy } = this.#stage;
    const { outcome, requests, events, steps = [] } = this.#row;
    const names = new Map<string, Json>();
    const seen = this.#outcome as unknown as Json | undefined;
    const gave = (index: number) =>
      player.reports.find((one): one is Extract<Report, { step: number }> => 'step' in one && one.step === index)?.gave;
    return [
      ...found(difference(seen, outcome as unknown as Json, names, 'the outcome')),
      ...steps.flatMap((step, index) =>
        step.gives === undefined ? [] : found(difference(gave(index), step.gives, names, `step ${index + 1}`)),
      ),
      ...(requests ? this.#requests(proxy.received, requests, names) : []),
      ...(events ? found(difference(this.#events(events), events, names, 'the events')) : []),
      ...(JSON.stringify(player.reports).includes(SECRET) ? ['a text has the lease id'] : []),
    ];
  }

  /** The events: whole if the row names fields, and otherwise only the type. */
  #events(expected: Json[]): Json {
    const events = this.#stage.player.reports.flatMap((one) => ('event' in one ? [one.event] : []));
    return events.map((event, at) => (typeof expected[at] === 'object' ? event : (event.type ?? null)));
  }

  #requests(received: Received[], expected: Exclude<Row['requests'], undefined>, names: Map<string, Json>): string[] {
    const listed = received.map(({ at, operation }) => `${Math.round(at)} ${operation}`).join(', ');
    if (received.length !== expected.length)
      return [`there were ${received.length} requests, not ${expected.length}: ${listed}`];
    return expected.flatMap(([at, operation, fields = {}], index) => {
      const one = received[index] as Received;
      const path = `request ${index + 1} (of ${listed})`;
      if (one.operation !== operation) return [`${path} is ${one.operation}, not ${operation}`];
      return found(difference({ at: one.at, ...one.fields } as Json, { at, ...fields } as Json, names, path));
    });
  }
}
