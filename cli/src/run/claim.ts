import type { AcquireOptions } from '../../../clients/typescript/src/acquire.ts';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import type { Begun, BegunRun, SlotOptions } from '../../../clients/typescript/src/once.ts';
import type { Rate } from '../../../clients/typescript/src/rate.ts';
import type { LeaseEntry } from '../../../clients/typescript/src/several.ts';
import { moment, systemSurroundings } from '../../../clients/typescript/src/surroundings.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { misuse } from '../failure.ts';
import type { Output } from '../output.ts';
import type { Service } from '../service.ts';
import type { Options } from '../syntax.ts';
import { agoText, nameOf } from '../verbs/texts.ts';
import { acquireWithAlso, type CommandLease } from './also.ts';

/** The options of `run` for a slot. */
export const SLOT_OPTIONS: Options = {
  'once-per': { value: 'PERIOD', help: 'run the command once in each period, such as 1d or 1w' },
  zone: { value: 'ZONE', help: 'the time zone of days and weeks (UTC)' },
  slot: { value: 'TEXT', help: 'run the command once for this slot, such as a date; an earlier slot is skipped' },
  keep: { value: 'DURATION', help: 'with --once-per or --slot: how long the slot stays done (1d, or two periods)' },
};

/** The slot that a command works for. */
type Slot = SlotOptions & { keepSeconds: number | undefined };

const EXCLUDED = ['slot', 'limit', 'weight', 'shared', 'exclusive', 'also', 'replace'];

/** Reads the options of a slot. @returns undefined without `--once-per` and `--slot` @throws Failure that names the wrong option */
export function slotOf(args: Arguments): Slot | undefined {
  const per = args.text('once-per');
  const zone = args.text('zone');
  const slot = args.text('slot');
  const keepSeconds = args.seconds('keep', { min: 2, whole: true });
  if (per === undefined && slot === undefined) {
    if (keepSeconds ?? zone) throw misuse('--keep and --zone need --once-per or --slot');
    return undefined;
  }
  const name = per === undefined ? 'slot' : 'once-per';
  for (const option of EXCLUDED)
    if (option !== name && (args.is(option) || args.all(option).length > 0))
      throw misuse(`--${name} and --${option} exclude each other`);
  // The service refuses a zone together with a slot.
  return { per, zone, slot, keepSeconds } as Slot;
}

/** The lease or the run of a slot that a command runs under. */
export interface CommandHold {
  lease: CommandLease;
  /** The slot, if the command works for one. */
  slot?: string;
  /**
   * Ends the lease, or completes the slot.
   * @param exitCode the exit code of the command; undefined if the command could not be started
   * @returns the exit code of `run`
   */
  end(exitCode?: number): Promise<number | undefined>;
}

interface HoldOptions {
  options: AcquireOptions & { key: string };
  also: LeaseEntry[];
  slot: Slot | undefined;
  /** The rates of the key, if the command waits for a start. */
  rates: Rate[];
}

/**
 * Acquires the lease of a command, or begins its slot. Then waits for a start at the rates, while heartbeats extend the lease.
 * @returns the lease with its end, or the answer if the slot is done
 * @throws HoldfastError as `acquire`, `onceBegin` and `rateReserve`; LeaseLost if the lease is lost before the start
 */
export async function acquireForCommand(
  service: Service,
  holdOptions: HoldOptions,
  output: Output,
): Promise<CommandHold | Exclude<Begun, BegunRun>> {
  const startedAt = moment(systemSurroundings);
  const hold = await acquireLeaseOrSlot(service, holdOptions, output);
  const { rates, options } = holdOptions;
  if ('outcome' in hold || rates.length === 0) return hold;
  output.progress.show(`waiting for a start of ${options.key}`);
  const { waitMs, signal } = options;
  await service.underRates(hold.lease, { rates, waitMs, signal }, startedAt);
  return hold;
}

async function acquireLeaseOrSlot(
  service: Service,
  { options, also, slot }: HoldOptions,
  output: Output,
): Promise<CommandHold | Exclude<Begun, BegunRun>> {
  if (slot === undefined) {
    const lease = await acquireWithAlso(service, options, also);
    const end = async (exitCode?: number) => {
      // An expired lease does not need a release, and if the service did not answer the heartbeats, a release would only delay the exit.
      if (lease.all.some(({ remainingMs }) => remainingMs > 0)) await lease.release();
      return exitCode;
    };
    return { lease, end };
  }
  const { key, ttlSeconds, waitMs, holder, data, signal } = options;
  const onceOptions = { ttlSeconds, waitMs, holder, signal, ...(data !== undefined && { data }), ...slot };
  const begun = await service.begin(key, onceOptions);
  if (begun.outcome !== 'run') return begun;
  const { run } = begun;
  const lease = Object.assign(run, { all: [run] });
  const end = async (exitCode?: number) => {
    if (exitCode === 0) return (await complete(begun, output)) ? 0 : EXIT.lost;
    if (run.remainingMs > 0) await begun.release();
    return exitCode;
  };
  return { lease, slot: run.slot, end };
}

/** Completes a slot. @returns false if the lease was lost @throws HoldfastError if no answer says whether the slot is done */
async function complete(begun: BegunRun, output: Output): Promise<boolean> {
  try {
    await begun.complete(undefined);
    return true;
  } catch (error) {
    if (!isHoldfastError(error, 'LeaseLost')) throw error;
    output.note(`the lease of ${begun.run.key} is lost (${error.reason}): this command did not complete the slot`);
    return false;
  }
}

/** The line that says who has done the slot, and when. */
export function doneText(key: string, done: Exclude<Begun, BegunRun>): string {
  const by = `by ${nameOf(done.by ?? 'another caller')} at ${done.at} (${agoText(done.at)} ago)`;
  if (done.outcome === 'superseded') return `${key} is done for the later slot ${done.doneSlot}, ${by}`;
  return `${key} is done for ${done.slot}, ${by}`;
}
