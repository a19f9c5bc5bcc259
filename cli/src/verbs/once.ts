import type { components } from '../../../clients/typescript/src/contract.ts';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import type { Cell } from '../output.ts';
import type { Verb } from '../verb.ts';
import { forgetRate } from './rates.ts';
import { agoText, endText, keyStateText, nameOf } from './texts.ts';

type Row = components['schemas']['OnceKey'];

const isAtWork = ({ state }: Row): boolean => state === 'held' || state === 'expired';

/** The cells of a row: who works, if a caller does, and the last slot that was done. */
export const onceCells = (row: Row): Cell[] => [
  row.key,
  keyStateText(row),
  isAtWork(row) && row.holder !== null ? nameOf(row.holder) : null,
  row.fence,
  isAtWork(row) ? endText(row) : null,
  row.done?.slot,
  row.done && nameOf(row.done.by ?? 'another caller'),
  row.done && agoText(row.done.at),
];

export const forget: Verb = {
  summary: 'forget that a slot of once is done, or what is reserved at a rate',
  usage: 'KEY',
  words: [1, 1],
  takesKey: 'once',
  options: {
    fence: { value: 'N', help: 'only if the key still has this fence, as status --kind once shows it' },
    rate: { help: 'forget the reserved starts of the key, as status --kind rate shows them' },
  },
  notes: `The stored result of a slot is lost. A command that runs for the key must end first: holdfast break KEY --once --fence N.
With --rate the next caller may start at once. Callers that have a start keep it, so more may start than the rate allows.`,
  example: 'holdfast forget backup',
  async run(call) {
    const { arguments: args, output, connect } = call;
    if (args.is('rate')) return forgetRate(call);
    const key = args.word(0);
    const service = connect();
    const fence = args.number('fence', { min: 0, whole: true }) ?? (await service.readOnce(key)).fence;
    if (fence === null) throw new Failure(`no caller has begun a slot of ${key}`, EXIT.refused);
    const answer = await service.call('onceForget', { key, fence });
    if (output.isJson) output.json(answer);
    else if (answer.slot === null) output.line(`no slot of ${key} was done`);
    else output.line(`slot ${answer.slot} of ${key} is forgotten: the next caller does the work again`);
    return 0;
  },
};

/** The explanation of a key in a completion. */
export const onceHelp = ({ done, ...row }: Row): string =>
  isAtWork(row as Row) || row.cap || !done ? keyStateText(row) : `done for ${done.slot}`;
