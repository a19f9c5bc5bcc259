import type { components } from '../../../client/src/contract.ts';
import { EXIT } from '../exit-codes.ts';
import { Failure, misuse } from '../failure.ts';
import type { Call, Verb } from '../verb.ts';
import { agoText, endText, nameOf, stateText } from './words.ts';

type Row = components['schemas']['OnceKey'];

/** The options of `status` that a list of the keys of `once` does not have. */
const NOT_LISTED = ['all', 'state', 'holder', 'sort', 'watch', 'interval'];

const HEAD = ['KEY', 'STATE', 'HOLDER', 'FENCE', 'ENDS', 'DONE', 'BY', 'AGO'];

const isAtWork = ({ state }: Row): boolean => state === 'held' || state === 'expired';

/** The worker, if there is one, and the last slot that was done. The list has no results. */
const cells = (row: Row) => [
  row.key,
  stateText(row),
  isAtWork(row) && row.holder !== null ? nameOf(row.holder) : null,
  row.fence,
  isAtWork(row) ? endText(row) : null,
  row.done?.slot,
  row.done && nameOf(row.done.by ?? 'another caller'),
  row.done && agoText(row.done.at),
];

/** `holdfast status --kind once`. @throws Failure for an option that the list does not have */
export async function listOnce({ arguments: args, output, connect }: Call): Promise<void> {
  for (const option of NOT_LISTED)
    if (args.is(option) || args.text(option) !== undefined)
      throw misuse(`--kind once and --${option} exclude each other`);
  const most = args.number('limit', { least: 1, most: 1000, whole: true }) ?? Number.POSITIVE_INFINITY;
  const [prefix] = args.words;
  const rows: Row[] = [];
  for await (const row of connect().rows('readOnce', prefix ? { prefix } : {}, ({ keys }) => keys)) {
    if (rows.length === most) {
      output.note(`more keys match than the first ${most}`);
      break;
    }
    rows.push(row);
    if (output.isJson) output.json(row);
  }
  if (output.isJson) return;
  rows.sort((left, right) => (left.key < right.key ? -1 : 1));
  output.table(HEAD, rows.map(cells));
}

export const forget: Verb = {
  summary: 'forget that a slot of once is done, so that the next caller works again',
  usage: 'KEY',
  words: [1, 1],
  takesKey: 'once',
  options: { fence: { value: 'N', help: 'only if the key still has this fence, as status --kind once shows it' } },
  notes:
    'The stored result is lost. A command that runs for the key must end first: holdfast break KEY --once --fence N.',
  example: 'holdfast forget backup',
  async run({ arguments: args, output, connect }) {
    const key = args.word(0);
    const service = connect();
    const fence = args.number('fence', { least: 0, whole: true }) ?? (await service.readOnce(key)).fence;
    if (fence === null) throw new Failure(`no caller has begun a slot of ${key}`, EXIT.refused);
    const answer = await service.call('onceForget', { key, fence });
    if (output.isJson) output.json(answer);
    else if (answer.slot === null) output.line(`no slot of ${key} was done`);
    else output.line(`${key} is forgotten for ${answer.slot}: the next caller works again`);
    return 0;
  },
};

/** What the completion says of a key. */
export const onceHelp = ({ done, ...row }: Row): string =>
  isAtWork(row as Row) || !done ? stateText(row) : `done for ${done.slot}`;
