import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { Failure, misuse } from '../failure.ts';
import { alsoEntries, type CommandLease } from '../run/also.ts';
import { acquireForCommand, type CommandHold, doneText, SLOT_OPTIONS, slotOf } from '../run/claim.ts';
import { Command } from '../run/command.ts';
import { assertExecutable } from '../run/executable.ts';
import { discard, startGuard, terminalShell } from '../run/guard/start.ts';
import { Signals } from '../run/signals.ts';
import { supervise } from '../run/supervise.ts';
import type { Call, Verb } from '../verb.ts';
import { ACQUIRE_OPTIONS, acquireOptions, heldExitCode, noteLimit, refusal } from './holding.ts';
import { ratesOf } from './rates.ts';

/** The default of `--grace`, in seconds, unless a third of the ttl is less. */
const GRACE_SECONDS = 5;

export const run: Verb = {
  summary: 'run a command under a lease, and never past the end of the lease',
  usage: 'KEY -- COMMAND ...',
  words: [1, 1],
  takesKey: true,
  takesCommand: true,
  options: {
    ...ACQUIRE_OPTIONS,
    grace: {
      value: 'DURATION',
      help: 'how long the command may take to end after SIGTERM (5s, at most a third of the ttl)',
    },
    also: {
      value: 'KEY=LIMIT',
      help: 'hold a permit of this key too, such as the total of all tenants; may be repeated',
      multiple: true,
      takesLimit: true,
    },
    rate: {
      value: 'N/PERIOD',
      help: 'wait for a start at this rate, such as 100/1m, under the lease; may be repeated',
      multiple: true,
    },
    ...SLOT_OPTIONS,
    'fence-env': { value: 'NAME', help: 'an additional environment variable for the fence' },
  },
  notes: `The command gets the variables HOLDFAST_KEY, HOLDFAST_FENCE and HOLDFAST_HOLDER; with --namespace also
HOLDFAST_NAMESPACE, with a slot HOLDFAST_SLOT, and with --also HOLDFAST_FENCES: the fence of each key, as JSON.

With --once-per or --slot, the exit code is also 0 if the slot is done already. If the command fails, the slot is free
for another machine.

The exit code is that of the command (128 plus the number of a signal), or 64 misuse, 69 no answer,
75 held by another caller or replaced by a newer run, 76 lease lost, 77 not allowed, 126 not executable, 127 not found.`,
  example: 'holdfast run nightly-report --ttl 60s --wait 10m -- echo "the report of the night"',
  run: runUnderLease,
};

async function runUnderLease({ arguments: args, output, connect, settings }: Call): Promise<number> {
  if (process.platform === 'win32')
    throw new Failure('run needs process groups, which Windows does not have', EXIT.misuse);
  const key = args.word(0);
  const options = acquireOptions(args);
  const graceMs = graceSeconds(args, options.ttlSeconds) * 1000;
  const also = alsoEntries(args);
  const slot = slotOf(args);
  const rates = ratesOf(args.all('rate'));
  const heldExit = heldExitCode(args) ?? EXIT.held;
  const fenceName = args.text('fence-env');
  if (fenceName !== undefined && !/^[A-Za-z_]\w*$/.test(fenceName))
    throw misuse(`--fence-env must be the name of a variable, not '${fenceName}'`);
  assertExecutable(args.command[0] ?? '', process.env.PATH);
  const signals = new Signals();
  const waiting = output.progress;
  let hold: CommandHold | undefined;
  const service = connect({
    onEvent: (event) => event.type === 'waiting' && waiting.waitingFor(event),
    // While the command runs, only a loss is printed, and not each heartbeat without an answer.
    onRetry: (why) => hold ?? output.note(why),
  });
  // The guard starts while the lease is acquired, to save time. At a terminal it starts later, because it takes the terminal away from this process.
  const guard = terminalShell() ? undefined : startGuard();
  try {
    const got = await acquireForCommand(
      service,
      { options: { key, ...options, signal: signals.waiting }, also, slot, rates },
      output,
    );
    if ('outcome' in got) {
      if (guard) discard(guard);
      waiting.end();
      output.note(doneText(key, got));
      return 0;
    }
    hold = got;
  } catch (error) {
    if (guard) discard(guard);
    if (signals.exitCode !== undefined) return signals.exitCode;
    const { line, code } = await refusal(service, error, { held: heldExit, isOnce: slot !== undefined });
    waiting.end();
    output.note(line);
    return code;
  } finally {
    waiting.end();
  }
  const { lease } = hold;
  for (const one of lease.all) noteLimit(output, one);

  const mayContinue = () => lease.held;
  const env = environment(hold, settings().namespace, fenceName);
  let exitCode: number | undefined;
  try {
    const command = new Command(args.command, { env, remainingMs: lease.remainingMs, mayContinue, guard });
    signals.forwardTo(command, mayContinue);
    exitCode = await supervise(lease, command, {
      graceMs,
      isOnce: slot !== undefined,
      onLost: (reason) =>
        output.note(`the lease of ${lostKey(lease) ?? key} is lost (${reason}): the command is ended`),
    });
  } finally {
    exitCode = await hold.end(exitCode);
  }
  return exitCode as number;
}

const lostKey = ({ all }: CommandLease): string | undefined => all.find(({ lost }) => lost)?.key;

function graceSeconds(args: Arguments, ttlSeconds: number): number {
  const max = ttlSeconds / 3;
  return args.seconds('grace', { min: 0, max }) ?? Math.min(GRACE_SECONDS, max);
}

/** The environment of the command. It lacks the lease id, because any process of the command could pass that proof on. */
function environment(
  { lease: { key, fence, holder, all }, slot }: CommandHold,
  namespace: string | undefined,
  fenceName: string | undefined,
): NodeJS.ProcessEnv {
  return {
    ...process.env,
    HOLDFAST_KEY: key,
    HOLDFAST_FENCE: String(fence),
    HOLDFAST_HOLDER: holder,
    // If this runs inside of another run, the variable belongs to the keys of the other one.
    HOLDFAST_FENCES:
      all.length > 1 ? JSON.stringify(Object.fromEntries(all.map((one) => [one.key, one.fence]))) : undefined,
    HOLDFAST_SLOT: slot,
    // Without the namespace, `holdfast commit --fenced` would use the fence for a key of another namespace.
    ...(namespace !== undefined && { HOLDFAST_NAMESPACE: namespace }),
    ...(fenceName && { [fenceName]: String(fence) }),
  };
}
