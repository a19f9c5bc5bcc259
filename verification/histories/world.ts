import { DEFAULT_QUOTAS, type RepairMessage } from '../../shared/locks/dependencies.ts';
import { seededRandom } from '../../test/support/chance/seed.ts';
import { Caller, type CallerWorld, type Step, type WorldFacts } from './caller.ts';
import { clients } from './capabilities/clients.ts';
import { commits } from './capabilities/commits.ts';
import { expiry } from './capabilities/expiry.ts';
import { leases } from './capabilities/leases.ts';
import { nameservice } from './capabilities/nameservice.ts';
import { once } from './capabilities/once.ts';
import { patience } from './capabilities/patience.ts';
import { permits } from './capabilities/permits.ts';
import { queue } from './capabilities/queue.ts';
import { rates } from './capabilities/rates.ts';
import { redrives } from './capabilities/redrives.ts';
import { AFTERWARDS, type Capability } from './capability.ts';
import { MachineClock } from './clocks.ts';
import type { FaultCounts } from './faults.ts';
import type { Entry, Violation } from './history.ts';
import { CLOCK_SKEW_MS, type FaultyService } from './service.ts';
import { Simulation } from './simulation.ts';

/** Every capability that takes part in the histories. */
const CAPABILITIES: readonly Capability[] = [
  leases,
  commits,
  nameservice,
  queue,
  permits,
  expiry,
  patience,
  once,
  redrives,
  rates,
  clients,
];

export const CAPABILITY_NAMES: readonly string[] = CAPABILITIES.map(({ name }) => name);

const MACHINES = 3;

/** How far a clock may be from the true time, so that any two clocks agree within the bound. */
const MAX_OFFSET_MS = CLOCK_SKEW_MS / 2 - 45;
/** 5 parts per million make 40 ms in the longest world: the repairs at its end may take an hour and a half. */
const MAX_DRIFT = 5e-6;
const MAX_MS = 8_000_000;
const OFFSET_BEYOND_MS = 30_000;
const DRIFT_BEYOND = 0.02;

interface ClockPlan {
  offsetMs: number;
  rate: number;
  /** The clock is set to another offset at each `atMs`. */
  steps: { atMs: number; offsetMs: number }[];
}

/** Everything that is decided before a history begins. A plan without some of the steps gives a shorter history. */
export interface Plan {
  seed: number;
  facts: WorldFacts;
  clocks: ClockPlan[];
  /** How many calls that wait the service holds at once. Undefined if there is no bound, so that no caller has to sleep. */
  maxHeldCalls: number | undefined;
  callers: string[];
  steps: Step[];
}

export interface History {
  plan: Plan;
  entries: Entry[];
  violations: Violation[];
}

/** @param only the capabilities that take part. All if it is empty. */
export function planWorld(seed: number, only: readonly string[] = [], { foreignRetries = false } = {}): Plan {
  const random = seededRandom(seed ^ 0x9e3779b9);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const withinBound = random() >= 0.15;
  const protocol = random() < 0.3 ? 'native' : 'dynamo';
  const known = CAPABILITIES.filter(({ name, occasional }) =>
    only.length === 0 ? occasional === undefined : only.includes(name),
  ).map(({ name }) => name);
  const facts: WorldFacts = {
    withinBound,
    spreadMs: 2 * (withinBound ? MAX_OFFSET_MS + MAX_MS * MAX_DRIFT : OFFSET_BEYOND_MS + MAX_MS * DRIFT_BEYOND),
    protocol,
    foreignLeases: withinBound && random() < 0.25,
    foreignCommits: withinBound && protocol === 'dynamo' && random() < 0.3,
    foreignRetries,
    sweeps: false,
  };
  // Either a single capability takes part, so that its calls meet, or all of them.
  const picked = random() < 0.4 ? known : [pick(known)];
  const faultRate = random() < 0.1 ? 0 : pick([0.03, 0.08, 0.15, 0.3]);
  const mostly = random() < 0.35 ? pick(['slow', 'slow', 'lostReply', 'delayed', 'error500'] as const) : undefined;
  const callers = Array.from({ length: 2 + Math.floor(random() * 3) }, (_, index) => `caller ${index + 1}`);
  const chosen = CAPABILITIES.filter(({ name }) => picked.includes(name));
  const companions = chosen.flatMap(({ among }) => (among && picked.length === 1 ? [pick(among)] : []));
  const names = [...new Set([...picked, ...companions])];
  const acting = names.filter((name) => !CAPABILITIES.some((one) => one.name === name && one.among));
  facts.sweeps = names.includes(expiry.name);
  const isForeign: Record<string, boolean> = {
    leases: facts.foreignLeases,
    commits: facts.foreignCommits,
    queue: facts.foreignLeases,
    permits: facts.foreignLeases,
  };
  const foreign = names.filter((name) => isForeign[name]).map((name) => `rust ${name}`);
  const others = CAPABILITIES.filter(({ name }) => names.includes(name)).flatMap(({ name, others = [] }) =>
    others.filter(({ share }) => share === undefined).map((other) => ({ capability: name, ...other })),
  );
  const all = [...callers, ...foreign, ...others.map(({ name }) => name)];
  const steps = all.flatMap((name, actor) => {
    const other = others.find((one) => one.name === name);
    return Array.from({ length: other?.steps ?? 4 + Math.floor(random() * 7) }, () => ({
      actor,
      capability: other?.capability ?? (name.startsWith('rust ') ? name.slice(5) : pick(acting)),
      seed: Math.floor(random() * 2 ** 31),
      faultRate,
      mostly,
    }));
  });
  const clocks = Array.from({ length: MACHINES }, () => planClock(random, withinBound));
  setOftenByChance(seed, clocks, withinBound);
  for (const { name, capability, seeds } of planOccasional(seed, names)) {
    const actor = all.push(name) - 1;
    steps.push(...seeds.map((one) => ({ actor, capability, seed: one, faultRate, mostly })));
  }
  for (const { name, capability, seeds } of planGuests(seed, names, only)) {
    const actor = all.push(name) - 1;
    steps.push(...seeds.map((one) => ({ actor, capability, seed: one, faultRate, mostly })));
  }
  const numbered = steps.map((step, id) => ({ ...step, id }));
  return { seed, facts, clocks, maxHeldCalls: maxHeldCalls(seed), callers: all, steps: numbered };
}

/** Has its own random numbers, so that everything else stays the same for a seed. */
function maxHeldCalls(seed: number): number | undefined {
  const random = seededRandom(seed ^ 0x3c6ef372);
  return random() < 0.2 ? undefined : Math.floor(7 * random());
}

/** The actors that take part now and then. They have their own random numbers, so that the rest of a seed is the same with and without them. */
function planOccasional(seed: number, names: readonly string[]) {
  const random = seededRandom(seed ^ 0x329c9630);
  return CAPABILITIES.flatMap(({ name: capability, others = [] }) =>
    others.flatMap(({ name, steps, share }) => {
      if (share === undefined || !names.includes(capability) || random() >= share) return [];
      return { name, capability, seeds: Array.from({ length: steps }, () => Math.floor(random() * 2 ** 31)) };
    }),
  );
}

/** The actors of capabilities that join a history of others. They have their own random numbers too. */
function planGuests(seed: number, names: readonly string[], only: readonly string[]) {
  const random = seededRandom(seed ^ 0x51ed270b);
  return CAPABILITIES.flatMap(({ name: capability, occasional = 0, others = [] }) => {
    if (only.length > 0 || names.includes(capability) || random() >= occasional) return [];
    const guests = [...others, ...['a', 'b'].map((letter) => ({ name: `guest ${letter}`, steps: 6 }))];
    return guests.map(({ name, steps }) => {
      return { name, capability, seeds: Array.from({ length: steps }, () => Math.floor(random() * 2 ** 31)) };
    });
  });
}

function planClock(random: () => number, withinBound: boolean): ClockPlan {
  const [offset, drift] = withinBound ? [MAX_OFFSET_MS, MAX_DRIFT] : [OFFSET_BEYOND_MS, DRIFT_BEYOND];
  // mistakes show at the extremes
  const around = (max: number) => (random() < 0.3 ? Math.sign(random() - 0.5) * max : (random() * 2 - 1) * max);
  const steps = random() < 0.2 ? [{ atMs: random() * 30_000, offsetMs: around(offset) }] : [];
  return { offsetMs: around(offset), rate: 1 + around(drift), steps };
}

/**
 * Sets the clocks forward and back in some histories, because some mistakes need one step before a write and another one during it. It has its own random
 * numbers, so that everything else stays the same for a seed.
 */
function setOftenByChance(seed: number, clocks: ClockPlan[], withinBound: boolean): void {
  const random = seededRandom(seed ^ 0x1b873593);
  if (random() >= 0.4) return;
  const max = withinBound ? MAX_OFFSET_MS : OFFSET_BEYOND_MS;
  const meanMs = random() < 0.5 ? 300 : 3000;
  for (const { steps } of clocks) {
    let side = random() < 0.5 ? 1 : -1;
    for (let atMs = 2 * meanMs * random(); atMs < 40_000; atMs += 2 * meanMs * random()) {
      steps.push({ atMs, offsetMs: side * max * (random() < 0.5 ? 1 : random()) });
      side = -side;
    }
  }
}

/** How often each seed was played. A failed history is played again and again while it is made shorter. */
const plays = new Map<number, number>();

/** Plays a plan to its end, stops all faults, and checks the answers to all callers. */
export async function play(plan: Plan, service: FaultyService, counts: FaultCounts): Promise<History> {
  await service.begin({ ...DEFAULT_QUOTAS, maxHeldCalls: plan.maxHeldCalls });
  const nth = plays.get(plan.seed) ?? 0;
  plays.set(plan.seed, nth + 1);
  const simulation = new Simulation(plan.seed);
  const clocks = plan.clocks.map(({ offsetMs, rate }) => new MachineClock(simulation, offsetMs, rate));
  const world: CallerWorld = {
    simulation,
    service,
    clocks,
    foreignClock: new MachineClock(simulation, 0, 1),
    entries: [],
    counts,
    // The keys decide which row a scan meets first, so they must be the same each time that a seed is played.
    prefix: 'w0-',
    unique: `w${plan.seed}-${nth}-`,
    facts: plan.facts,
    calm: false,
  };
  strikeClocks(plan, world);
  const seeds = new Set<number>();
  service.messages.send = (message) => receive(message, world, seeds);
  for (const [actor, name] of plan.callers.entries()) {
    const steps = plan.steps.filter((step) => step.actor === actor);
    simulation.spawn(name, {}, () => takeSteps(new Caller(name, world), steps));
  }
  await simulation.run();
  await settle(world, plan);
  const violations = CAPABILITIES.flatMap((capability) => capability.check(world.entries, plan.facts));
  return { plan, entries: world.entries, violations };
}

/**
 * Sends a message to the repair after its delay. One message in five is lost.
 * @param seeds the seeds of earlier messages. Two runs with one seed would make the same ids, and take each other's writes for their own.
 */
function receive({ delaySeconds, ...message }: RepairMessage, world: CallerWorld, seeds: Set<number>): void {
  const { simulation, entries } = world;
  if (entries.length % 5 === 0) return;
  const caller = new Caller('repair queue', world);
  let seed = entries.length;
  while (seeds.has(seed)) seed += 2 ** 20;
  seeds.add(seed);
  caller.begin({ seed, faultRate: 0 });
  simulation.at(simulation.now + delaySeconds * 1000, () =>
    simulation.spawn('repair queue', {}, async () => void (await caller.call('repairQueues', message))),
  );
}

function strikeClocks({ clocks, facts }: Plan, { simulation, clocks: machines, counts }: CallerWorld): void {
  for (const [index, { offsetMs, rate, steps }] of clocks.entries()) {
    counts.clockOffset += offsetMs === 0 ? 0 : 1;
    counts.clockDrift += rate === 1 ? 0 : 1;
    for (const step of steps)
      simulation.at(step.atMs, () => {
        counts.clockStep += 1;
        machines[index]?.stepTo(step.offsetMs);
      });
  }
  if (!facts.withinBound) counts.clockBeyondBound += 1;
}

async function takeSteps(caller: Caller, steps: Step[]): Promise<void> {
  for (const step of steps) {
    caller.begin(step);
    const capability = CAPABILITIES.find(({ name }) => name === step.capability);
    // Most steps come at once, some come after earlier grants have expired.
    const pause = caller.random() < 0.2 ? caller.random() * 12_000 : caller.random() * 150;
    // Some come so late that expired records may be cleaned up.
    const jump = caller.world.facts.sweeps && caller.random() < 0.15 ? 60_000 + caller.random() * 70_000 : 0;
    await caller.sleep(pause + jump);
    const other = capability?.others?.find(({ name }) => name === caller.name);
    if (other) await other.act(caller);
    else await (caller.name.startsWith('rust ') ? capability?.actForeign?.(caller) : capability?.act(caller));
  }
}

/** Ends the history without faults and, unless they agreed anyway, with right clocks. */
async function settle(world: CallerWorld, plan: Plan): Promise<void> {
  const { simulation } = world;
  world.calm = true;
  const names = new Set(plan.steps.map(({ capability }) => capability));
  const isRight = world.facts.withinBound;
  const right = isRight ? world : { ...world, calm: true, clocks: [new MachineClock(simulation, 0, 1)] };
  const caller = new Caller(AFTERWARDS, right);
  caller.begin({ seed: plan.seed, faultRate: 0 });
  simulation.spawn(AFTERWARDS, {}, async () => {
    for (const capability of CAPABILITIES) if (names.has(capability.name)) await capability.settle(caller);
  });
  await simulation.run();
}
