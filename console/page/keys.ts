import { useContext } from 'preact/hooks';
import { CapBadge } from './cap.ts';
import { keyChanges } from './changes.ts';
import { Page } from './context.ts';
import { KeyLink, Split } from './drawer.ts';
import { html } from './html.ts';
import { KeyDetail } from './key.ts';
import { List, type Table } from './list.ts';
import { First, Fullness, None, Since, State, TimeLeft, Who } from './parts.ts';
import { usePolled } from './polling.ts';
import type { Route } from './route.ts';
import { type ListedKey, type Listing, reader } from './service.ts';
import { isShared, nameOf, stateText, usedAndCapText } from './texts.ts';

const POLL_EVERY_MS = 2000;

const readKeys = reader<ListedKey>('readLeases', 'leases');

const isActive = ({ state, waiting, cap }: ListedKey): boolean =>
  state === 'held' || state === 'expired' || waiting > 0 || cap !== undefined;

const isPaused = ({ cap }: ListedKey): boolean => cap?.limit === 0;

const FILTERS: Record<string, { label: string; has(row: ListedKey): boolean }> = {
  active: { label: 'Active', has: isActive },
  all: { label: 'All', has: () => true },
};

const idOf = ({ key }: ListedKey) => key;

const texts = ({ key, holder, execution, data, cap }: ListedKey) => [
  ...[key, holder, execution, cap ? cap.reason : null],
  data === null ? null : JSON.stringify(data),
];

/** Since when the current holder has had the key. */
const heldSince = ({ state, acquiredAt }: ListedKey): string | null =>
  state === 'held' || state === 'expired' ? acquiredAt : null;

/** From this length, a line needs attention. */
const LONG_LINE = 10;

/** The most urgent keys come first: a long line, a cap or a pause of an operator, a holder that let its lease expire. */
function urgency({ state, waiting, cap }: ListedKey): number {
  if (waiting >= LONG_LINE) return 0;
  if (cap) return 1;
  return state === 'expired' ? 2 : 3;
}

/** The longest line comes first. */
const byUrgency = (row: ListedKey): string =>
  urgency(row) + (urgency(row) === 0 ? String(1e9 - row.waiting) : isPaused(row) ? 'paused' : stateText(row));

const columns = (route: Route, answeredAt: number): Table<ListedKey>['columns'] => [
  {
    head: 'Key',
    cell: ({ key }) => html`<${KeyLink} name=${key} route=${route} />`,
    order: { by: 'key', value: idOf },
  },
  {
    head: 'State',
    cell: (row) =>
      html`${(!isPaused(row) || heldSince(row)) && html`<${State} row=${row} /> `}<${CapBadge} cap=${row.cap} />`,
    order: { by: 'state', value: byUrgency, needsAttention: (row) => urgency(row) < 3 },
    width: '10.6rem',
  },
  {
    head: 'In use',
    cell: (row) =>
      (isShared(row) || Boolean(row.cap?.limit)) && html`<${Fullness} row=${row} words=${usedAndCapText(row)} />`,
    width: '11.6rem',
  },
  {
    head: 'In line',
    cell: ({ waiting }) => waiting > 0 && html`<span class="state waiting">up to ${waiting}</span>`,
    order: { by: 'waiting', value: ({ waiting }) => waiting, descends: true },
    width: '6.2rem',
  },
  {
    head: 'Time left',
    cell: (row) => !isShared(row) && html`<${TimeLeft} lease=${row} answeredAt=${answeredAt} />`,
    order: { by: 'expiry', value: (row) => (isShared(row) ? null : row.expiresAt) },
    width: '12.4rem',
    isSpare: true,
  },
  {
    head: 'Holder',
    class: 'mono',
    cell: ({ state, holder, holders }) => [
      holder === null ? state !== 'free' && None('no name') : html`<${Who} holder=${holder} />`,
      holders > 1 && html` <span class="more">and ${holders - 1} more</span>`,
    ],
    order: { by: 'holder', value: ({ holder }) => holder && nameOf(holder) },
    width: '21%',
  },
  {
    head: 'Held since',
    cell: (row) => heldSince(row) && html`<${Since} instant=${heldSince(row)} />`,
    order: { by: 'held', value: heldSince },
    width: '9rem',
    isSpare: true,
  },
];

/** The tab Keys: who holds which key, and beside the list the key that is open. */
export function KeysView({ route }: { route: Route }) {
  const { noticedChanges } = useContext(Page);
  const { key } = route;
  const polled = usePolled(readKeys, {
    everyMs: POLL_EVERY_MS,
    fingerprint: ({ rows }) =>
      rows
        .map((row) => [row.key, row.state, row.ending, row.fence, row.waiting, row.used, row.cap?.since].join())
        .join('\n'),
    onData: ({ rows, more }) => {
      const byName = new Map(rows.map((row) => [row.key, row]));
      if (!more) noticedChanges.saw({ list: 'keys', rows: byName, compare: keyChanges }, Date.now());
    },
  });
  const empty = html`No key is in use. To hold one for a minute:<${First} words="run hello" work="sleep 60" />`;
  return html`<${Split} label="Keys" polled=${polled} detail=${key !== undefined && html`<${KeyDetail} key=${key} subject=${key} route=${route} list=${polled} />`}>
    ${({ rows, more }: Listing<ListedKey>, answeredAt: number) => html`<${List} noun="key" start="state" filters=${FILTERS} idOf=${idOf} openId=${key} ...${{ route, rows, more, texts, empty }} columns=${columns(route, answeredAt)} />`}
  <//>`;
}
