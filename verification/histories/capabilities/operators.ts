import type { Caller } from '../caller.ts';
import type { Other } from '../capability.ts';

/** The longest pauses between two commands, in milliseconds. */
const PAUSES = [50, 500, 3000, 12_000];

interface Options {
  /** The limits that operators set. 0 pauses the key. */
  limits?: readonly number[];
  /** Rates that operators cap now and then, in the place of a limit. */
  rates?: readonly object[];
  /** The kind of the key, if it is not a lock. */
  kind?: 'once' | 'rate';
}

/** Operators that cap keys for a while, and move waiters to the front of the line. */
export const operatorOn = (name: string, keys: readonly string[], options: Options = {}): Other => ({
  ...{ name, steps: 6, share: 0.6 },
  async act(caller) {
    await caller.sleep(caller.random() * caller.pick(PAUSES));
    const key = caller.world.prefix + caller.pick(keys);
    if (options.kind === undefined && caller.random() < 0.5) return moveOne(caller, key);
    const kind = options.kind === 'once' ? { kind: 'once' } : {};
    const what = termsOf(caller, options);
    const forSeconds = caller.random() < 0.3 ? { forSeconds: 1 + Math.floor(caller.random() * 10) } : {};
    await command(caller, { key, ...kind, ...what, ...forSeconds, reason: caller.name });
    if (caller.random() < 0.2) return;
    await caller.sleep(caller.random() * caller.pick(PAUSES));
    const lift = Object.fromEntries(Object.keys(what).map((one) => [one, null]));
    await command(caller, { key, ...kind, ...lift });
  },
});

function termsOf(caller: Caller, { limits = [0, 0, 1, 2], rates = [] }: Options): { limit?: number; rates?: unknown } {
  return rates.length > 0 && caller.random() < 0.6 ? { rates: [caller.pick(rates)] } : { limit: caller.pick(limits) };
}

/** An operator sends the same command again, now and then, as a late retry does. */
async function command(caller: Caller, input: Readonly<Record<string, unknown>>): Promise<void> {
  const again = async (one: Caller) => {
    await one.sleep(one.random() * one.pick(PAUSES));
    await one.call('capKey', input);
  };
  if (caller.random() < 0.1) caller.start(`${caller.name} again`, again);
  await caller.call('capKey', input);
}

/** An operator lists who is in line, and moves one of them. */
async function moveOne(caller: Caller, key: string): Promise<void> {
  const answer = await caller.call('readLeases', { key, waiters: 'true' });
  const { waiters = [] } = (answer?.body ?? {}) as { waiters?: { ticket: string }[] };
  // usually one of the last in line
  const { ticket } = (caller.random() < 0.6 ? waiters.at(-1) : caller.pick(waiters)) ?? {};
  if (ticket === undefined) return;
  await caller.call('runNext', { key, ticket });
  if (caller.random() < 0.1) await caller.call('runNext', { key, ticket });
}

/** Lifts every cap, so that nothing keeps the last caller out. */
export async function liftCaps(
  caller: Caller,
  keys: readonly string[],
  { kind }: Pick<Options, 'kind'> = {},
): Promise<void> {
  for (const name of keys) {
    const key = caller.world.prefix + name;
    if (!caller.world.entries.some(({ call, input }) => call === 'capKey' && input.key === key)) continue;
    await caller.call('capKey', {
      ...{ key, limit: null },
      ...(kind === 'rate' && { rates: null }),
      ...(kind === 'once' && { kind }),
    });
  }
}

/**
 * What a request says of the others that replace: a third of those that wait for the key alone. Half of these also ask the holder to stop.
 * @param lot of the request, so that it says the same again
 */
export function replaceOf(lot: number, asked: Readonly<Record<string, unknown>>): { replace?: string } {
  const { limit, mode, fair, waitSeconds = 0 } = asked;
  const isAlone = limit === undefined && mode !== 'shared';
  if (!isAlone || fair === false || Number(waitSeconds) === 0 || Math.floor(lot / 3) % 3 > 0) return {};
  return { replace: Math.floor(lot / 9) % 2 === 0 ? 'running' : 'waiting' };
}
