import type { components } from '../../../clients/typescript/src/contract.ts';
import type { Rate, RateStart } from '../../../clients/typescript/src/rate.ts';
import { faultOfRates } from '../../../shared/rates/charge.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { Failure, misuse } from '../failure.ts';
import type { Cell, Output } from '../output.ts';
import { Signals } from '../run/signals.ts';
import type { Call, Verb } from '../verb.ts';
import { refusal, waitSeconds } from './holding.ts';
import { ratesText, untilText } from './texts.ts';

type Row = components['schemas']['RateKey'];

/** Parses the rates of a command line, such as `50/1m` or `tokens:100000/1m=2000`. @throws Failure that names the wrong one */
export function ratesOf(texts: readonly string[]): Rate[] {
  const rates = texts.map((text) => {
    const [, name, limit, per, units] = /^(?:([\w-]+):)?(\d+)\/(\d+[smhd])(?:=(\d+))?$/.exec(text) ?? [];
    if (!limit || !per)
      throw misuse(`a rate is N/PERIOD or NAME:N/PERIOD=UNITS, such as 50/1m or tokens:100000/1m=2000, not '${text}'`);
    return { limit: Number(limit), per, ...(name && { name }), ...(units && { units: Number(units) }) };
  });
  const fault = rates.length > 0 ? faultOfRates(rates) : undefined;
  if (fault)
    throw misuse(
      `${texts[Number(fault.path.split('.')[1])] ?? 'a rate'}: ${fault.path.split('.').at(-1)} ${fault.message}`,
    );
  return rates;
}

/** Adds the options `--units`, `--burst` and `--name`. @throws Failure if there are several rates */
function withOptions(rates: Rate[], args: Arguments): Rate[] {
  const [units, burst] = ['units', 'burst'].map((option) => args.number(option, { min: 1, whole: true }));
  const name = args.text('name');
  const optionFields = { ...(units && { units }), ...(burst && { burst }), ...(name && { name }) };
  const [option] = Object.keys(optionFields);
  if (option && rates.length > 1)
    throw misuse(`--${option} works with a single rate: for several, write each as NAME:N/PERIOD=UNITS`);
  return rates.map((one) => ({ ...one, ...optionFields }));
}

export const rate: Verb = {
  summary: 'sleep until a rate allows a start',
  usage: 'KEY N/PERIOD ...',
  words: [2, 5],
  takesKey: 'rate',
  options: {
    units: { value: 'N', help: 'how many units the work takes (1)' },
    burst: { value: 'N', help: 'how many units may start together when the key was idle (as many as --units)' },
    name: { value: 'NAME', help: 'the name of the rate (requests)' },
    wait: { value: 'DURATION', help: 'how late the start may be, or forever (0s)' },
    holder: { value: 'NAME', help: 'the name that other callers see (user@machine/process)' },
  },
  notes: `A rate is, for example, 50/1m. Give up to four: tokens:100000/1m=2000 takes 2000 units of a rate with a name.
The exit code is 0 at the start, or 75 if the start would be later than --wait: then nothing is reserved.
A signal cancels the reservation. This verb does not hold the key: to hold it too, use holdfast run KEY --rate N/PERIOD.`,
  example: 'holdfast rate vendor 50/1m --wait 10m',
  async run({ arguments: args, output, connect }) {
    const [key = '', ...texts] = args.words;
    const rates = withOptions(ratesOf(texts), args);
    const options = { rates, waitMs: waitSeconds(args) * 1000, holder: args.text('holder') };
    const signals = new Signals();
    const service = connect();
    output.progress.show(`waiting for a start of ${key}`);
    try {
      const { settle: _, ...start } = await service.rate(key, { ...options, signal: signals.waiting });
      output.progress.end();
      noteRates(output, key, start.rateChanged);
      if (output.isJson) output.json({ key, ...start });
      return 0;
    } catch (error) {
      if (signals.exitCode !== undefined) return signals.exitCode;
      const { line, code } = await refusal(service, error, { held: EXIT.held });
      output.note(line);
      return code;
    } finally {
      output.progress.end();
    }
  },
};

/** Warns if the caller before named other rates. */
function noteRates(output: Output, key: string, changed: RateStart['rateChanged']): void {
  if (!changed) return;
  const [from, to] = [ratesText(changed.from), ratesText(changed.to)];
  output.note(`the rate of ${key} was ${from}, and is now ${to}: all callers of a key should name the same`);
}

export const rateCells = (row: Row): Cell[] => [row.key, ratesText(row.rates), paidText(row), row.open, capCell(row)];

const capCell = ({ cap }: Row): Cell => (cap?.limit === 0 ? 'paused' : cap?.rates && ratesText(cap.rates));

/** Until when the rates of a key are paid, and how long that is by the clock of this machine. */
function paidText({ paidUntil }: Row): string {
  const leftMs = paidUntil === null ? 0 : Date.parse(paidUntil) - Date.now();
  return leftMs > 0 ? `${paidUntil} (${untilText(leftMs)})` : 'idle';
}

/** Runs `holdfast forget KEY --rate`. */
export async function forgetRate({ arguments: args, output, connect }: Call): Promise<number> {
  const key = args.word(0);
  if (args.text('fence') !== undefined) throw misuse('--rate and --fence exclude each other');
  const service = connect();
  const { paidUntil } = (await service.call('readRates', { key })) as Row;
  if (paidUntil === null) throw new Failure(`no caller has reserved at a rate of ${key}`, EXIT.refused);
  const answer = await service.call('rateForget', { key, paidUntil });
  if (output.isJson) output.json(answer);
  else output.line(`${key} was paid until ${paidUntil}, which is forgotten: the next caller starts at once`);
  return 0;
}
