import type { components } from '../../../clients/typescript/src/contract.ts';
import { misuse } from '../failure.ts';
import type { Cell } from '../output.ts';
import type { Call } from '../verb.ts';
import { onceCells, onceHelp } from './once.ts';
import { rateCells } from './rates.ts';
import { ratesText } from './texts.ts';

type Schemas = components['schemas'];

/** How to list the keys of a kind other than leases and permits. */
interface Kind<Row> {
  operation: 'readOnce' | 'readRates';
  head: string[];
  cells(row: Row): Cell[];
  /** The explanation of a key in a completion. */
  help(row: Row): string;
}

/** A row of the list of any kind. */
type Key = { key: string };

const once: Kind<Schemas['OnceKey']> = {
  operation: 'readOnce',
  head: ['KEY', 'STATE', 'HOLDER', 'FENCE', 'ENDS', 'DONE', 'BY', 'AGO'],
  cells: onceCells,
  help: onceHelp,
};
const rate: Kind<Schemas['RateKey']> = {
  operation: 'readRates',
  head: ['KEY', 'RATES', 'PAID UNTIL', 'OPEN', 'CAP'],
  cells: rateCells,
  help: ({ rates }) => ratesText(rates),
};

/** The kinds that `status --kind` lists, and that a verb may take as its key. */
export const KINDS = { once, rate } as Record<'once' | 'rate', Kind<Key>>;

/** The options of `status` that these lists do not have. */
const NOT_LISTED = ['all', 'state', 'holder', 'sort', 'watch', 'interval'];

/** Runs `holdfast status --kind once` or `rate`. @throws Failure for an option that these lists do not have */
export async function listKind({ arguments: args, output, connect }: Call, name: keyof typeof KINDS): Promise<void> {
  for (const option of NOT_LISTED)
    if (args.is(option) || args.text(option) !== undefined)
      throw misuse(`--kind ${name} and --${option} exclude each other`);
  const maxRows = args.number('limit', { min: 1, max: 1000, whole: true }) ?? Number.POSITIVE_INFINITY;
  const [prefix] = args.words;
  const kind = KINDS[name];
  const rows: Key[] = [];
  for await (const row of connect().rows(kind.operation, prefix ? { prefix } : {}, ({ keys }): Key[] => keys)) {
    if (rows.length === maxRows) {
      output.note(`more keys match than the first ${maxRows}`);
      break;
    }
    rows.push(row);
    if (output.isJson) output.json(row);
  }
  if (output.isJson) return;
  rows.sort((left, right) => (left.key < right.key ? -1 : 1));
  output.table(kind.head, rows.map(kind.cells));
}
