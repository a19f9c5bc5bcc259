import { setTimeout as sleep } from 'node:timers/promises';
import type { components } from '../../../clients/typescript/src/contract.ts';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { exitCodeOf, messageOf, misuse } from '../failure.ts';
import type { Output } from '../output.ts';
import type { Service } from '../service.ts';
import type { Call, Verb } from '../verb.ts';
import { KINDS, listKind } from './kinds.ts';
import { agoText, endText, keyStateText, nameOf, usedText } from './texts.ts';

type Row = components['schemas']['ListedKey'];

const STATES = ['active', 'held', 'expired', 'released', 'free', 'capped'] as const;
const SORTS = ['key', 'expiry', 'held', 'waiting'] as const;
type Sort = (typeof SORTS)[number];

/** How many rows one call of the service can list. */
const MAX_LISTED = 1000;

export const status: Verb = {
  summary: 'list the keys in use, who holds them, and who waits',
  usage: '[PREFIX]',
  words: [0, 1],
  takesKey: true,
  options: {
    all: { help: 'all keys, even those that are released' },
    state: { value: 'STATE', help: 'only keys in this state (active)', choices: STATES },
    kind: {
      value: 'KIND',
      help: 'keys of another kind: slots and who did them, or rates',
      choices: Object.keys(KINDS),
    },
    holder: { value: 'NAME', help: 'only keys of this holder' },
    sort: { value: 'BY', help: 'the order: by key, first to end, longest held, or longest line', choices: SORTS },
    limit: { value: 'N', help: 'only the first N keys' },
    watch: { help: 'keep running, and print the list again when it changes' },
    interval: { value: 'SECONDS', help: 'how often to refresh (2)' },
  },
  notes: `A key is active if it has a holder, expired or not, if a caller or a task waits for it, or if an operator has capped it.
If several callers hold a key, HOLDER to ENDS describe the oldest permit, or with --sort expiry the one that ends first.
holdfast queue KEY shows all holders.`,
  example: 'holdfast status jobs/ --sort held --limit 20',
  async run(call) {
    const { arguments: args, output, connect } = call;
    const kind = args.text('kind') as keyof typeof KINDS | undefined;
    if (kind) {
      await listKind(call, kind);
      return 0;
    }
    const listing = listingOf(args);
    const pauseMs = (args.number('interval', { min: 0.1, max: 3600 }) ?? 2) * 1000;
    if (args.is('watch')) return watch(call, listing, pauseMs);
    if (args.text('interval') !== undefined) throw misuse('--interval needs --watch');
    if (output.isJson && !listing.sort) for await (const row of rowsOf(connect(), listing)) output.json(row);
    else print(await read(connect(), listing), output);
    return 0;
  },
};

interface Listing {
  filter: { prefix?: string; state?: (typeof STATES)[number]; holder?: string };
  /** Undefined for the order of the table. */
  sort: Sort | undefined;
  limit: number | undefined;
}

/** @throws Failure that names the wrong option */
function listingOf(args: Arguments): Listing {
  const [prefix] = args.words;
  const holder = args.text('holder');
  const option = args.text('state') as (typeof STATES)[number] | undefined;
  if (option && args.is('all')) throw misuse('--all and --state exclude each other');
  const state = args.is('all') ? undefined : (option ?? 'active');
  return {
    filter: { ...(prefix && { prefix }), ...(state && { state }), ...(holder && { holder }) },
    sort: (args.text('sort') as Sort | undefined) ?? (args.is('json') && !args.is('watch') ? undefined : 'key'),
    limit: args.number('limit', { min: 1, max: MAX_LISTED, whole: true }),
  };
}

interface Read {
  rows: Row[];
  /** True if there are more rows than the limit. */
  hasMore: boolean;
}

async function read(service: Service, listing: Listing): Promise<Read> {
  const { sort, limit } = listing;
  const rows: Row[] = [];
  for await (const row of rowsOf(service, listing, 1)) rows.push(row);
  if (sort && sort !== 'expiry' && limit === undefined)
    rows.sort(sort === 'held' ? byAge : sort === 'waiting' ? byLine : byKey);
  return { rows: rows.slice(0, limit), hasMore: limit !== undefined && rows.length > limit };
}

/**
 * Yields the rows of the service. With a limit, the service sorts them, and one page is enough. Without a limit `read` sorts them, because each sorted page
 * costs a read of the whole table. But only the service knows which of several permits ends first, and only this command finds the capped keys.
 * @param more how many rows beyond the limit
 */
async function* rowsOf(service: Service, { filter, sort, limit }: Listing, more = 0): AsyncGenerator<Row> {
  const maxRows = limit === undefined ? Number.POSITIVE_INFINITY : limit + more;
  const isSorted = sort !== undefined && (sort === 'expiry' || limit !== undefined);
  const { state: chosen, ...others } = filter;
  const isCapped = chosen === 'capped';
  const state = isCapped ? 'active' : chosen;
  const stateAndSort = { ...(state && { state }), ...(isSorted && { sort }) };
  const request = { ...others, ...stateAndSort, limit: isCapped ? MAX_LISTED : Math.min(maxRows, MAX_LISTED) };
  let count = 0;
  for await (const row of service.rows('readLeases', request, ({ leases }) => leases)) {
    if (isCapped && !row.cap) continue;
    yield row;
    if (++count === maxRows) return;
  }
}

function print({ rows, hasMore }: Read, output: Output): void {
  if (output.isJson) for (const row of rows) output.json(row);
  else output.table(HEAD, rows.map(cells));
  if (hasMore) output.note(`more keys match than the first ${rows.length}`);
}

/** Prints the list each time that the list has changed. At a terminal the list is drawn again at each refresh. */
async function watch({ output, connect, settings }: Call, listing: Listing, pauseMs: number): Promise<never> {
  const service = connect({ onRetry: undefined, timeoutMs: pauseMs });
  let seen = '';
  for (let failed = false; ; ) {
    try {
      const { rows, hasMore } = await read(service, listing);
      failed = false;
      const now = fingerprint(rows);
      const at = new Date().toISOString();
      if (output.isJson) {
        if (now !== seen) output.json({ at, leases: rows });
      } else if (output.startScreen() || now !== seen) {
        output.line(`${at}${hasMore ? `  the first ${rows.length} keys` : ''}`);
        output.table(HEAD, rows.slice(0, output.screenLines - 3).map(cells));
        output.line('');
      }
      seen = now;
    } catch (error) {
      if (!isHoldfastError(error) || exitCodeOf(error) !== EXIT.noAnswer) throw error;
      if (!failed) output.note(messageOf(error, settings().endpoint));
      failed = true;
    }
    await sleep(pauseMs);
  }
}

/** A text that changes with the list, but not with a heartbeat. */
const fingerprint = (rows: Row[]): string =>
  JSON.stringify(rows.map((row) => [row.key, keyStateText(row), usedText(row), row.holders, row.fence, row.waiting]));

const HEAD = ['KEY', 'STATE', 'USED', 'HOLDER', 'FENCE', 'HELD', 'ENDS', 'WAITING'];

const hasHolder = ({ state }: Row): boolean => state === 'held' || state === 'expired';

const cells = (row: Row) => [
  row.key,
  keyStateText(row),
  row.limit === null && row.holders <= 1 && !row.cap?.limit ? null : usedText(row),
  holderText(row),
  row.fence,
  hasHolder(row) ? agoText(row.acquiredAt) : null,
  endText(row),
  row.waiting || null,
];

/** Names one of several holders, and counts the others. */
function holderText({ holder, holders }: Row): string | null {
  if (holder === null) return null;
  return holders > 1 ? `${nameOf(holder)} and ${holders - 1} more` : nameOf(holder);
}

const byKey = (left: Row, right: Row): number => (left.key < right.key ? -1 : 1);

/** A key without a holder comes last. */
function byAge(left: Row, right: Row): number {
  const [one = '', other = ''] = [left, right].map((row) => (hasHolder(row) && row.acquiredAt) || '\uffff');
  return one === other ? byKey(left, right) : one < other ? -1 : 1;
}

const byLine = (left: Row, right: Row): number => right.waiting - left.waiting || byKey(left, right);
