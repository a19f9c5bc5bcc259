import { createHash } from 'node:crypto';
import { applied, clone, holds } from './expressions.ts';
import {
  Broken,
  type Config,
  type Item,
  type Op,
  type Party,
  Refused,
  type Self,
  type Steps,
  type Task,
} from './types.ts';

export const UNKNOWN = Symbol('unknown');

/** Decides all that chance decides. */
export interface Chooser {
  choose(n: number): number;
  /** Whether each history is gone through, and states are told apart. */
  replays?: boolean;
}

export interface Scenario {
  start(world: World): void;
  notified(world: World, op: Op, task: Task): void;
  crashed(world: World, party: Party): void;
  faults?: number;
  fates?: readonly string[];
  ticks?: number;
  jumps: readonly number[];
  repairs: number;
  deaths?: boolean;
  ttlDeletes?: boolean;
  needsRepair?: boolean;
  /** Its faults are made good by the calls themselves: nobody needs the schedule. */
  unaided?: boolean;
  /** A late duplicate arrives at one step in so many. */
  slow?: number;
  /** One step in so many may be struck. */
  sparse?: number;
  config?: Partial<Config>;
  bugs?: Record<string, boolean>;
  offset?: (party: number, world: World) => number;
}

type Action =
  | { kind: 'step'; party: Party }
  | { kind: 'late'; index: number }
  | { kind: 'die'; task: Task }
  | { kind: 'tick' | 'ttl' | 'repair' };

const ABSENT_PARTY = { name: 'a late duplicate', readAt: Number.NEGATIVE_INFINITY, offset: 0, queried: -1 };

export interface KnownGrant {
  leaseId: string;
  fence: number;
  holder: string;
  requestId: string;
  ticket: string | undefined;
  task: boolean;
  /** Whether anybody was told that it holds. */
  held: boolean;
  claimedSeq?: number;
}

/** One history: parties whose requests arrive in any order, with faults, over one record and its line. A protocol says what must hold. */
export abstract class World {
  readonly config: Config;
  scenario: Scenario;
  time = 1000;
  seq = 0;
  item: Item | undefined;
  readonly rows = new Map<string, Item>();
  /** When a row was put, and when its mark was answered. */
  readonly put = new Map<string, number>();
  readonly joined = new Map<string, number>();
  /** The rows of tasks, also where they are gone. */
  readonly ofTasks = new Set<string>();
  readonly tasks = new Map<string, Task>();
  readonly granted: KnownGrant[] = [];
  highest = -1;
  faulted = false;
  stalled = false;
  stalledSeq = -1;
  foreign = false;
  vanished = false;
  crashes = 0;
  readonly chooser: Chooser;
  readonly log: string[] = [];
  readonly parties: Party[] = [];
  #older: Item | undefined;
  #late: Op[] = [];
  #faults: number;
  #ticks: number;

  constructor(scenario: Scenario, chooser: Chooser) {
    this.config = {
      skew: 1,
      window: 3,
      keep: 4,
      retention: 40,
      second: 1,
      notifiedAfter: 3,
      notifiedPast: 20,
      fresh: 1,
      lookNext: 1,
      lookFar: 2,
      rowEvery: 3,
      patience: 2,
      bugs: scenario.bugs,
      uuid: () => '',
      ...scenario.config,
    };
    this.scenario = scenario;
    this.chooser = chooser;
    this.#faults = scenario.faults ?? 0;
    this.#ticks = scenario.ticks ?? 0;
  }

  note(text: string): void {
    this.log.push(`${this.time} ${text}`);
  }

  spawn(name: string, make: (config: Config, self: Self, party: Party) => Steps<unknown>): Party {
    const id = this.parties.length;
    let made = 0;
    const config = { ...this.config, uuid: () => `${id}.${made++}` };
    const offset = this.scenario.offset?.(id, this) ?? (id % 2 ? config.skew : 0);
    const self: Self = {};
    const party: Party = {
      id,
      name,
      offset,
      config,
      self,
      steps: undefined as never,
      alive: true,
      history: '',
      queried: -1,
    };
    self.joined = () => {
      if (self.row !== undefined) this.joined.set(self.row, this.seq);
    };
    party.steps = make(config, self, party);
    this.parties.push(party);
    this.#resume(party, undefined);
    return party;
  }

  /** What the schedule does. */
  abstract repair(key: string, config: Config): Steps<void>;
  /** In the end a caller that does not wait has the key alone. @throws Refused where it does not */
  abstract acquireLast(config: Config): Steps<unknown>;
  /** What must hold after each write. */
  protected onWrite(_before: Item | undefined, _party: Party): void {}
  /** What the checks know, so that states are told apart. */
  protected checked(): unknown[] {
    return [];
  }
  /** A call is refused. */
  onRefused(_error: Refused, _self: Self): void {}

  /** Whether TTL may delete the record: a free lease, or a pool. */
  #mayVanish({ lease_version, used, lease_expiry }: Item): boolean {
    return (lease_version === undefined || used !== undefined) && lease_expiry < this.time;
  }

  protected onForeign(): void {
    this.foreign = true;
  }

  protected onTold(op: Op, task: Task): void {
    if (!op.error) {
      if (op.grant.remaining < op.whole - this.config.fresh)
        throw new Broken(`${op.token} is told of ${op.grant.remaining} of ${op.whole}`);
      const grant = this.granted.find(({ leaseId }) => leaseId === op.grant.leaseId);
      if (grant) grant.held = true;
      return;
    }
    const had = this.granted.some(({ requestId, held }) => requestId === task.request.requestId && held);
    if (op.error === 'LeaseLost' && !task.retried && !had)
      throw new Broken(`${op.token} is told LeaseLost of a grant that nobody had`);
  }

  *#repairAfter({ ms, key }: Op, config: Config): Steps<void> {
    yield { op: 'sleep', ms };
    yield* this.repair(key, config);
  }

  /** When the faults have stopped. */
  calm(): void {
    this.#faults = 0;
    this.#ticks = 0;
    this.scenario = { ...this.scenario, fates: [], deaths: false, repairs: 0, ttlDeletes: false };
  }

  ready = (): Party[] =>
    this.parties.filter(
      ({ alive, pending }) => alive && pending && (pending.op !== 'sleep' || Number(pending.wakeAt) <= this.time),
    );

  /** @returns whether anything was left to do */
  step(): boolean {
    const actions = this.#actions();
    if (!actions.some(({ kind }) => kind === 'step' || kind === 'late')) return this.sleepOn();
    this.act(actions[this.chooser.choose(actions.length)] as Action);
    return true;
  }

  /** @returns whether anybody sleeps */
  sleepOn(): boolean {
    const wakeAt = this.parties.flatMap(({ alive, pending }) =>
      alive && pending?.op === 'sleep' ? [Number(pending.wakeAt)] : [],
    );
    if (wakeAt.length === 0) return false;
    this.time = Math.min(...wakeAt);
    return true;
  }

  /** Delivers what is on its way twice. @returns whether there was any */
  deliverLate(): boolean {
    if (this.#late.length === 0) return false;
    this.act({ kind: 'late', index: 0 });
    return true;
  }

  act(action: Action): void {
    this.seq++;
    switch (action.kind) {
      case 'tick':
        this.#stall();
        return;
      case 'ttl':
        this.note('TTL deletes the record');
        this.#older = this.item;
        this.item = undefined;
        this.vanished = true;
        return;
      case 'repair':
        this.scenario = { ...this.scenario, repairs: this.scenario.repairs - 1 };
        this.spawn('schedule', (config) => this.repair('k', config));
        return;
      case 'die':
        this.#faults--;
        this.faulted = true;
        action.task.alive = false;
        this.note(`${action.task.token} dies`);
        return;
      case 'late': {
        const [op] = this.#late.splice(action.index, 1);
        if (!op) return;
        this.note(`late duplicate of ${op.op}`);
        this.#perform(op, ABSENT_PARTY as unknown as Party);
        return;
      }
      case 'step':
        this.#stepOf(action.party);
    }
  }

  hash(): string {
    const alive = this.parties.map(({ alive, history, pending }) =>
      alive ? [history, pending?.unanswered, pending?.wakeAt] : 0,
    );
    const tasks = [...this.tasks.values()].map(({ token, state, alive }) => [token, state, alive]);
    const known = [
      this.time,
      this.item,
      this.#older,
      [...this.rows.values()],
      tasks,
      this.#late,
      alive,
      this.#faults,
      this.#ticks,
    ];
    return createHash('md5')
      .update(JSON.stringify([...known, this.scenario.repairs, this.checked()]))
      .digest('base64');
  }

  #actions(): Action[] {
    const actions: Action[] = this.ready().map((party) => ({ kind: 'step', party }));
    const { ttlDeletes, deaths, repairs, slow = 1 } = this.scenario;
    if (slow === 1 || this.#late.length === 0 || this.chooser.choose(slow) === 0)
      for (const index of this.#late.keys()) actions.push({ kind: 'late', index });
    if (this.#ticks > 0 && actions.length > 0) actions.push({ kind: 'tick' });
    if (ttlDeletes && this.item && this.#mayVanish(this.item)) actions.push({ kind: 'ttl' });
    if (this.#faults > 0 && deaths)
      for (const task of this.tasks.values())
        if (task.alive && task.state === 'waiting') actions.push({ kind: 'die', task });
    if (repairs > 0 && this.rows.size > 0) actions.push({ kind: 'repair' });
    return actions;
  }

  /** All stand still. A call ends, and a packet arrives or is lost, long before the retention is over. */
  #stall(): void {
    this.#ticks--;
    this.stalled = true;
    this.stalledSeq = this.seq;
    const { jumps } = this.scenario;
    this.time += jumps[this.chooser.choose(jumps.length)] ?? 0;
    this.note('a standstill');
    const cut = this.time - this.config.retention;
    this.#late = this.#late.filter(({ sentAt }) => sentAt >= cut);
    for (const party of this.parties)
      if (party.alive && party.pending && party.pending.op !== 'sleep' && Number(party.readAt) < cut)
        this.#unknown(party, party.pending);
  }

  #unknown(party: Party, op: Op): void {
    if (op.op === 'tell') this.#answer(party, 'unanswered');
    else this.#answer(party, UNKNOWN, true);
  }

  #stepOf(party: Party): void {
    const op = party.pending as Op;
    if (op.op === 'sleep') {
      this.#answer(party, undefined);
      return;
    }
    const fate = this.#fateOf(party, op);
    if (fate !== 'ok') {
      this.#faults--;
      this.faulted = true;
    }
    this.note(
      `${party.name}: ${op.op} ${op.ticket ?? ''} ${String(op.update ?? '').slice(0, 44)} ${fate === 'ok' ? '' : fate}`,
    );
    switch (fate) {
      case 'crash':
      case 'crashAfter':
        if (fate === 'crashAfter') this.#perform(op, party);
        party.alive = false;
        party.pending = undefined;
        this.crashes++;
        this.scenario.crashed(this, party);
        return;
      case 'lostRequest':
      case 'lostReply':
      case 'lostWrite':
        if (fate !== 'lostRequest') this.#perform(op, party);
        if (op.op === 'tell') this.#answer(party, 'unanswered');
        else party.pending = { ...op, unanswered: true }; // the SDK sends it again
        return;
      case 'unknown':
        if (this.chooser.choose(2)) this.#perform(op, party);
        this.#unknown(party, op);
        return;
      case 'stale':
        this.#answer(party, this.#perform({ ...op, stale: true }, party));
        return;
      default: {
        const result = this.#perform(op, party);
        if (fate === 'dup') this.#late.push(clone({ ...op, unanswered: false, sentAt: party.readAt }));
        this.#answer(party, result);
      }
    }
  }

  #fateOf(party: Party, op: Op): string {
    const { fates = [], sparse = 1 } = this.scenario;
    const possible = ['ok'];
    if (this.#faults > 0 && !party.spared) for (const fate of fates) if (this.#mayMeet(fate, op)) possible.push(fate);
    if (sparse > 1 && this.chooser.choose(sparse)) return 'ok';
    return possible[this.chooser.choose(possible.length)] ?? 'ok';
  }

  #mayMeet(fate: string, op: Op): boolean {
    if (fate === 'stale') return /^look/.test(op.op) && this.#older !== undefined;
    if (fate === 'lostWrite') return op.op === 'update' && !op.foreign;
    return fate === 'dup' ? isWrite(op) : true;
  }

  #answer(party: Party, value: unknown, thrown = false): void {
    if (this.chooser.replays)
      party.history = createHash('md5')
        .update(party.history + JSON.stringify(value ?? null) + thrown)
        .digest('base64');
    this.#resume(party, value, thrown);
  }

  #resume(party: Party, first: unknown, thrown = false): void {
    let value = first;
    let throws = thrown;
    for (;;) {
      let result: IteratorResult<Op, unknown>;
      try {
        result = throws ? party.steps.throw(value) : party.steps.next(value);
      } catch (error) {
        if (!(error instanceof Refused || error === UNKNOWN)) throw error;
        result = { done: true, value: undefined };
      }
      throws = false;
      if (result.done) {
        party.alive = false;
        party.pending = undefined;
        return;
      }
      const op = result.value;
      if (op.op === 'now' || op.op === 'true') {
        value = op.op === 'now' ? this.time + party.offset : this.time;
        party.readAt = this.time;
        party.history += `${op.op}${value}`;
        continue;
      }
      party.pending = op.op === 'sleep' ? { ...op, wakeAt: this.time + op.ms } : { ...op, unanswered: false };
      return;
    }
  }

  #perform(op: Op, party: Party): unknown {
    const seen = op.stale ? this.#older : this.item;
    switch (op.op) {
      case 'get':
        return clone(this.item ?? {});
      case 'look':
        return clone(seen ?? {});
      case 'lookBoth':
        return clone({ record: seen ?? {}, row: this.rows.get(op.ticket) });
      case 'getRow':
        return clone(this.rows.get(op.ticket));
      case 'query':
        party.queried = this.seq;
        return clone([...this.rows.values()].sort((a, b) => (a.ticket < b.ticket ? -1 : 1)));
      case 'putRow':
        this.rows.set(op.item.ticket, clone(op.item));
        if (op.item.token !== undefined) this.ofTasks.add(op.item.ticket);
        this.put.set(op.item.ticket, this.seq);
        return {};
      case 'updateRow':
      case 'deleteRow':
        return this.#writeRow(op);
      case 'later':
        this.spawn('message', (config) => this.#repairAfter(op, config));
        return {};
      case 'tell':
        return this.#tell(op);
      default:
        return this.#write(op, party);
    }
  }

  #writeRow(op: Op): unknown {
    const old = this.rows.get(op.ticket);
    if (!holds(op.condition, old, expressionsOf(op))) return { won: false, old: clone(old) };
    if (op.op === 'deleteRow') {
      this.rows.delete(op.ticket);
      return { won: true, old: clone(old) };
    }
    const next = applied(op.update, old, expressionsOf(op));
    if (next.deadline !== old?.deadline) {
      this.joined.delete(op.ticket);
      this.put.set(op.ticket, this.seq);
    }
    this.rows.set(op.ticket, next);
    return { won: true, item: clone(next) };
  }

  #tell(op: Op): string {
    const task = this.tasks.get(op.token);
    if (task?.unreachable) return 'unanswered';
    if (task?.state !== 'waiting' || !task.alive) return 'gone';
    task.state = op.error ? 'failed' : 'told';
    task.error = op.error;
    this.note(`  told ${op.token} ${op.error ?? `fence ${op.grant.fence}`}`);
    this.onTold(op, task);
    if (!op.error) this.scenario.notified(this, op, task);
    return 'delivered';
  }

  #write(op: Op, party: Party): unknown {
    const before = this.item;
    const { unanswered } = op;
    if (!holds(op.condition, before, expressionsOf(op))) return { won: false, old: clone(before), unanswered };
    this.#older = before;
    if (op.op === 'put') this.item = clone(op.item);
    else if (op.op === 'delete') this.item = undefined;
    else this.item = { key: op.key, ...applied(op.update, before, expressionsOf(op)) };
    if (op.foreign) this.onForeign();
    else this.onWrite(before, party);
    return { won: true, item: clone(this.item), old: clone(before), unanswered };
  }
}

const isWrite = (op: Op): boolean => ['put', 'update', 'updateRow', 'deleteRow'].includes(op.op) && !op.foreign;

const expressionsOf = ({ names, values }: Op) => ({ names, values });
