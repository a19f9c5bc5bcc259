import type { components } from '../../../client/src/contract.ts';
import type { Verb } from '../verb.ts';
import { stateText, untilText, usedText } from './words.ts';

type Row = components['schemas']['ListedKey'];

const STATES = ['held', 'expired', 'released', 'free'] as const;
const KINDS = ['lease', 'pool'] as const;
const SORTS = ['key', 'expiry'] as const;

export const status: Verb = {
  summary: 'list all keys: leases and pools, who holds them, and who waits',
  usage: '[PREFIX]',
  words: [0, 1],
  options: {
    kind: { value: 'KIND', help: 'only keys of this kind', choices: KINDS },
    state: { value: 'STATE', help: 'only keys in this state', choices: STATES },
    holder: { value: 'NAME', help: 'only keys of this holder' },
    sort: { value: 'BY', help: 'by key, or by which ends first (key)', choices: SORTS },
  },
  notes:
    'In the row of a pool, HOLDER to ENDS are those of the permit that ends first. WAITING is up to how many are in line. ' +
    'holdfast queue KEY shows all holders, and counts the line.',
  example: 'holdfast status jobs/ --state held --sort expiry',
  async run({ arguments: args, output, connect }) {
    const [prefix] = args.words;
    const kind = args.text('kind') as (typeof KINDS)[number] | undefined;
    const state = args.text('state') as (typeof STATES)[number] | undefined;
    const holder = args.text('holder');
    const filter = {
      ...(prefix && { prefix }),
      ...(kind && { kind }),
      ...(state && { state }),
      ...(holder && { holder }),
    };
    const sort = args.text('sort');
    const rows: Row[] = [];
    // All pages are read, so the command sorts: a page that the service sorts costs a read of the whole table.
    for await (const row of connect().rows('readLeases', filter, ({ leases }) => leases)) {
      if (output.isJson && !sort) output.json(row);
      else rows.push(row);
    }
    rows.sort(sort === 'expiry' ? byExpiry : byKey);
    if (output.isJson) for (const row of rows) output.json(row);
    else output.table(HEAD, rows.map(cells));
    return 0;
  },
};

const HEAD = ['KEY', 'KIND', 'STATE', 'USED', 'HOLDER', 'FENCE', 'SINCE', 'ENDS', 'WAITING'];

const cells = (row: Row) => [
  row.key,
  row.kind,
  stateText(row),
  row.used === undefined ? null : usedText({ ...row, used: row.used }),
  holderText(row),
  row.fence,
  row.acquiredAt,
  untilText(row.remainingMs),
  row.waiting || null,
];

/** One holder of a pool stands for all. */
const holderText = ({ holder, holders = 1 }: Row): string | null =>
  holder !== null && holders > 1 ? `${holder} and ${holders - 1} more` : holder;

const byKey = (left: Row, right: Row): number => (left.key < right.key ? -1 : 1);

/** A key without an end comes last. */
const byExpiry = (left: Row, right: Row): number => {
  const [one, other] = [left.expiresAt ?? '\uffff', right.expiresAt ?? '\uffff'];
  return one === other ? byKey(left, right) : one < other ? -1 : 1;
};
