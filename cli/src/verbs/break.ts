import type { components } from '../../../clients/typescript/src/contract.ts';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import { inShell, stopCommand } from '../../../deployment/stop-command.ts';
import type { Arguments } from '../arguments.ts';
import { shown } from '../escape.ts';
import { exitCodeOf, Failure, messageOf, misuse } from '../failure.ts';
import type { Key } from '../service.ts';
import type { Call, Verb } from '../verb.ts';
import { duration, EXECUTION_END, isOfBound, untilEnd, untilText } from './texts.ts';

type Schemas = components['schemas'];
type Holding = Pick<Schemas['KeySummary'], 'state' | 'holder' | 'fence' | 'acquiredAt' | 'expiresAt' | 'execution'> & {
  /** Missing in the run of a slot. */
  bound?: boolean;
};

/** How many holders are listed at most. */
const MAX_LISTED = 10;

/** How long to try to read the holders, in milliseconds. Without them, the command still prints the error. */
const READ_MS = 2000;

export const breakVerb: Verb = {
  summary: 'end a lease or a permit, named by the fence that you saw',
  usage: 'KEY',
  words: [1, 1],
  takesKey: true,
  options: {
    fence: { value: 'N', help: 'the fence of the lease or the permit, as queue shows it' },
    once: { help: 'end the run of a slot, as status --kind once shows it' },
    now: { help: 'give the key to the next caller at once, even if the holder still works' },
  },
  notes: `The holder stops at its next heartbeat, and then releases the lease. The next caller gets the key then, or when the
lease expires. With --now only the fence protects your data from late writes of the holder. Without --fence nothing is
broken: the command prints who holds the lease, and the command that ends the lease.`,
  example: 'holdfast break nightly-report --fence 1795215137091',
  async run(call) {
    const { arguments: args, output, connect } = call;
    const fence = args.number('fence', { min: 0, whole: true });
    if (fence === undefined)
      throw await withHolders(call, misuse('--fence is missing: break ends the lease that you saw'));
    const wait = !args.is('now') && { wait: true };
    const kind = args.is('once') && { kind: 'once' as const };
    // With --now, the record loses the name of the execution, so it is read before.
    const held = output.isJson ? undefined : holdersOf(await readOf(call)).find((one) => one.fence === fence);
    try {
      const answer = await connect().call('breakLease', { key: args.word(0), fence, ...wait, ...kind });
      if (output.isJson) output.json(answer);
      else for (const line of [...brokenLines(answer), ...stopLines(held)]) output.line(line);
      return 0;
    } catch (error) {
      if (!isHoldfastError(error, 'NotFound') && !isHoldfastError(error, 'Conflict')) throw error;
      throw await withHolders(call, error);
    }
  },
};

/** The lines that say until when the holder may work, and what happens next. */
function brokenLines({ key, fence, ended, ...answer }: Schemas['Broken']): string[] {
  const { holderUntil, lastHeartbeatAt } = answer;
  const holder = answer.holder ?? 'the holder';
  const now = Date.now();
  const leftMs = holderUntil ? Date.parse(holderUntil) - now : undefined;
  const isBound = holderUntil !== null && isOfBound(holderUntil);
  const timed = leftMs === undefined ? 'an unknown time' : `${holderUntil} (${untilText(leftMs)})`;
  const until = isBound ? EXECUTION_END : timed;
  const last = lastHeartbeatAt && `the last came ${duration(now - Date.parse(lastHeartbeatAt))} ago`;
  if (!ended)
    return [
      `the grant of ${key} with the fence ${fence} is ending`,
      last
        ? `${holder} stops at its next heartbeat (${last}), and then releases the key; at the latest, the grant ends ${isBound ? 'when' : 'at'} ${until}`
        : `no heartbeat has come since the grant: unless one comes, ${holder} may work until ${until}`,
    ];
  const broken = `the grant of ${holder} on ${key}, with the fence ${fence}, is broken`;
  // An expired holder has already stopped, by the clocks of its own process.
  if (leftMs !== undefined && leftMs <= 0) return [broken];
  const heartbeat = last ?? 'none has come since the grant';
  return [broken, `${holder} may work on until ${until}, or its next heartbeat (${heartbeat}), beside the next holder`];
}

/** Adds the current holders of the key, and the commands that end their leases, to a failure. */
async function withHolders(call: Call, error: Error): Promise<Failure> {
  const { arguments: args, output } = call;
  const key = args.word(0);
  const actual = (await readOf(call)) ?? namedBy(error);
  if (actual && output.isJson) output.json({ key, actual });
  const held = actual && holdersOf(actual).filter(({ state }) => state === 'held' || state === 'expired');
  const lines = held?.slice(0, MAX_LISTED).flatMap((one) => holdingLines(one, args)) ?? [];
  if (held?.length === 0) lines.push(`no caller holds ${shown(key)}`);
  if (held && held.length > MAX_LISTED) lines.push(`${held.length - MAX_LISTED} more hold ${shown(key)}`);
  return new Failure([messageOf(error), ...lines].join('\n'), exitCodeOf(error));
}

/** Reads the key with its holders, or the run of a slot. Undefined if that fails. */
async function readOf({ arguments: args, connect }: Call): Promise<Holding | Key | undefined> {
  try {
    const service = connect({});
    const [key, limits] = [args.word(0), { timeoutMs: READ_MS }];
    if (args.is('once')) return await service.readOnce(key, limits);
    return await service.readKey(key, {}, limits);
  } catch (reason) {
    if (!isHoldfastError(reason) && !(reason instanceof Failure)) throw reason;
    return undefined;
  }
}

const holdersOf = (read: Holding | Key | undefined): Holding[] =>
  read && 'holders' in read ? read.holders : read ? [read] : [];

/** The holder that an error names. */
const namedBy = (error: Error): Holding | undefined =>
  isHoldfastError(error, 'Conflict') ? (error.actual as Schemas['KeySummary']) : undefined;

/** The line that says how to stop the execution of a bound grant, which does not expire. */
function stopLines({ bound, execution, holder }: Partial<Holding> = {}): string[] {
  const command = bound && execution ? stopCommand(execution) : undefined;
  return command === undefined ? [] : [`to stop the execution of ${shown(holder ?? 'the holder')}: ${command}`];
}

function holdingLines(holding: Holding, args: Arguments): string[] {
  const { state, holder, fence, acquiredAt, expiresAt } = holding;
  const key = args.word(0);
  const since = acquiredAt ? ` since ${acquiredAt}` : '';
  const until = untilEnd(expiresAt);
  const by = shown(holder ?? 'another caller');
  const held = `${shown(key)} ${state === 'held' ? 'is' : 'was'} held by ${by}${since}${until}`;
  if (fence === null) return [`${held}, without a fence`];
  const options = ['endpoint', 'profile', 'namespace', 'region'].map((name) => {
    const value = args.text(name);
    return value === undefined ? '' : ` --${name} ${inShell(value)}`;
  });
  const switches = ['once', 'now'].map((name) => (args.is(name) ? ` --${name}` : ''));
  const given = `--fence ${fence}${switches.join('')}${options.join('')}`;
  const seen = `${held}, with the fence ${fence}`;
  // A key with invisible characters cannot be copied from the terminal.
  if (shown(key) !== key) return [seen];
  return [
    seen,
    ...stopLines(holding),
    `to end it: holdfast break ${key.startsWith('-') ? `${given} -- ${inShell(key)}` : `${inShell(key)} ${given}`}`,
  ];
}
