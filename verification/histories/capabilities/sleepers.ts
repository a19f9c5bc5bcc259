import type { Caller } from '../caller.ts';
import type { Other } from '../capability.ts';
import { replaceOf } from './operators.ts';
import { idFor } from './schedule.ts';

// Callers that wait in line as the client does. They sleep between two calls for as long as the service says, or for another time.

const TTLS = [2, 3, 5, 10];

/** From 200 ms to the longest time that the contract allows, short ones as likely as long ones. @param lot 0 to 1 */
export const sleepMsOf = (lot: number): number => Math.round(200 * 1500 ** lot);

interface Options {
  /** Whether operators cancel some of their tickets. */
  cancels?: boolean;
  /** Further terms of their requests. */
  terms?: (caller: Caller, key: string) => object;
}

type Request = Readonly<Record<string, unknown>> & { key: string; holder: string; requestId: string };

/** Starts callers that sleep, alone or several at once. */
export const sleepersOn = (
  name: string,
  keys: readonly string[],
  { cancels = false, terms = () => ({}) }: Options = {},
): Other => ({
  ...{ name, steps: 8, share: 0.7 },
  async act(caller) {
    const id = idFor(caller);
    const key = caller.world.prefix + (caller.random() < 0.7 ? keys[0] : caller.pick(keys));
    const named = { key, holder: `sleeper/${id}`, requestId: id, ttlSeconds: caller.pick(TTLS) };
    const asked = { ...named, ...terms(caller, key) };
    const request = { ...asked, ...replaceOf(Number.parseInt(id, 36), { ...asked, waitSeconds: 1 }) };
    caller.start(`sleeper ${id}`, (one) => waitInTurns(one, request, cancels));
    await caller.sleep(caller.random() * caller.pick([50, 500, 5000, 30_000]));
  },
});

async function waitInTurns(one: Caller, request: Request, cancels: boolean): Promise<void> {
  const { simulation } = one.world;
  const untilMs = simulation.now + one.pick([5000, 30_000, 120_000, 400_000]);
  for (let more: { ticket?: string } = {}; ; ) {
    const waits = { waitSeconds: 1 + Math.floor(20 * one.random()), sleepMs: sleepMsOf(one.random()) };
    const asked = { ...request, ...more, ...waits };
    if (one.random() < 0.08) one.start(`${one.name} again`, async (other) => void (await other.call('acquire', asked)));
    const answer = await one.call('acquire', asked);
    if (answer?.outcome === 'ok') return work(one, request, answer.body.leaseId);
    if (['LeaseLost', 'InvalidRequest', 'Superseded'].includes(answer?.outcome ?? '')) return;
    const {
      retryWith,
      comeBackMs = 1000,
      keptMs = 5000,
    } = (answer?.body ?? {}) as {
      retryWith?: { ticket?: string };
      comeBackMs?: number;
      keptMs?: number;
    };
    if (retryWith) more = retryWith;
    if (simulation.now >= untilMs) return giveUp(one, request, more);
    if ((await sleepOn(one, { request, ...more, comeBackMs, keptMs, cancels })) === 'never') return;
  }
}

interface Sleeping {
  request: Request;
  ticket?: string;
  comeBackMs: number;
  keptMs: number;
  cancels: boolean;
}

/** @returns `never` if the caller does not come back */
async function sleepOn(
  one: Caller,
  { request, ticket, comeBackMs, keptMs, cancels }: Sleeping,
): Promise<'never' | undefined> {
  const dice = one.random();
  if (dice < 0.05) return 'never';
  if (dice < 0.1) return void (await one.sleep(keptMs + one.random() * 20_000));
  if (dice < 0.2) return void (await one.sleep(comeBackMs + one.random() * (keptMs - comeBackMs)));
  if (dice < 0.25) return void (await one.sleep(one.random() * comeBackMs));
  const isCancelled = cancels && ticket !== undefined && dice < 0.34;
  if (dice < 0.3 || isCancelled) {
    const beforeMs = one.random() * comeBackMs;
    await one.sleep(beforeMs);
    if (isCancelled) await one.call('cancelWaiter', { key: request.key, ticket });
    else await giveUp(one, request, ticket === undefined ? {} : { ticket });
    // The caller may come back without knowing that, as a duplicate of its call does.
    if (one.random() < 0.5) return 'never';
    await one.sleep(comeBackMs - beforeMs);
    return undefined;
  }
  await one.sleep(comeBackMs + 20 * one.random());
  return undefined;
}

/** Withdraws the request of a caller, with its ticket or without it. */
async function giveUp(
  one: Caller,
  { key, requestId, holder }: Request,
  { ticket }: { ticket?: string },
): Promise<void> {
  const named = ticket !== undefined && one.random() < 0.7 ? { ticket } : {};
  await one.call('withdraw', { key, requestId, holder, ...named });
}

/** Works and releases. A holder that may be asked to stop sends several heartbeats. */
async function work(one: Caller, { key, replace }: Request, leaseId: unknown): Promise<void> {
  for (let beats = replace === 'running' ? 6 : 1; beats > 0; beats--) {
    await one.sleep((one.random() * 3000) / Math.sqrt(beats));
    if (beats === 1 && one.random() >= 0.2) break;
    if ((await one.call('heartbeat', { key, leaseId }))?.outcome === 'LeaseLost') break;
  }
  if (one.random() < 0.85) await one.call('release', { key, leaseId });
}
