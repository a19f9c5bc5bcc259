import { useContext } from 'preact/hooks';
import { CapBadge } from './cap.ts';
import { keyChanges } from './changes.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import { LeaseDetail } from './lease.ts';
import { List, type Table } from './list.ts';
import { Cut, Loaded, None, Since, State, TimeLeft, Trouble, Who } from './parts.ts';
import { usePolled } from './polling.ts';
import { linkTo, type Route } from './route.ts';
import { call, type ListedKey, type Listing, list } from './service.ts';
import { compareTexts, isShared, nameOf, roomText, stateText } from './words.ts';

const EVERY_MS = 2000;

const isActive = ({ state, waiting, cap }: ListedKey): boolean =>
  state === 'held' || state === 'expired' || waiting > 0 || cap !== undefined;

const isPaused = ({ cap }: ListedKey): boolean => cap?.limit === 0;

const FILTERS: Record<string, { label: string; has(row: ListedKey): boolean }> = {
  active: { label: 'Active', has: isActive },
  held: { label: 'Held', has: ({ state }) => state === 'held' },
  waiting: { label: 'Waited for', has: ({ waiting }) => waiting > 0 },
  capped: { label: 'Capped', has: ({ cap }) => cap !== undefined },
  expired: { label: 'Expired', has: ({ state }) => state === 'expired' },
  released: { label: 'Released', has: ({ state }) => state === 'released' || state === 'free' },
  all: { label: 'All', has: () => true },
};

const texts = ({ key, holder, execution, data, cap }: ListedKey) => [
  ...[key, holder, execution, cap ? cap.reason : null],
  data === null ? null : JSON.stringify(data),
];

const byKey = (left: ListedKey, right: ListedKey): number => compareTexts(left.key, right.key);

/** The instant from which a key has had its holder. */
const heldSince = ({ state, acquiredAt }: ListedKey): string | null =>
  state === 'held' || state === 'expired' ? acquiredAt : null;

/** Rows that are alike in it are sorted by key. */
const by =
  (field: (row: ListedKey) => string | null) =>
  (left: ListedKey, right: ListedKey): number =>
    compareTexts(field(left), field(right)) || byKey(left, right);

const byLine = (left: ListedKey, right: ListedKey): number => right.waiting - left.waiting || byKey(left, right);

const columns = (route: Route, at: number): Table<ListedKey>['columns'] => [
  {
    head: 'Key',
    cell: ({ key }) =>
      html`<a class="mono" data-row href=${linkTo({ ...route, key })} aria-current=${route.key === key ? 'true' : undefined}><${Cut} text=${key} /></a>`,
    order: { by: 'key', compare: byKey },
  },
  {
    head: 'State',
    cell: (row) =>
      html`${(!isPaused(row) || heldSince(row)) && html`<${State} of=${row} /> `}<${CapBadge} cap=${row.cap} />`,
    order: { by: 'state', compare: by((row) => (isPaused(row) ? 'paused' : stateText(row))) },
  },
  { head: 'In use', cell: (row) => (isShared(row) || Boolean(row.cap?.limit)) && roomText(row) },
  {
    head: 'In line',
    cell: ({ waiting }) => waiting > 0 && html`<span class="state waiting">up to ${waiting}</span>`,
    order: { by: 'waiting', compare: byLine, descends: true },
  },
  {
    head: 'Time left',
    cell: (row) => html`<${TimeLeft} lease=${row} at=${at} />`,
    order: { by: 'expiry', compare: by(({ expiresAt }) => expiresAt) },
  },
  {
    head: 'Holder',
    class: 'mono',
    cell: ({ state, holder, holders }) => [
      holder === null ? state !== 'free' && None('no name') : html`<${Who} holder=${holder} />`,
      holders > 1 && html` <span class="more">and ${holders - 1} more</span>`,
    ],
    order: { by: 'holder', compare: by(({ holder }) => holder && nameOf(holder)) },
  },
  {
    head: 'Held since',
    cell: (row) => heldSince(row) && html`<${Since} instant=${heldSince(row)} />`,
    order: { by: 'held', compare: by(heldSince) },
  },
];

/** Who holds what, and beside it the key that is open. */
export function LeasesView({ route }: { route: Route }) {
  const { history } = useContext(Page);
  const { key } = route;
  const polled = usePolled(readLeases, {
    everyMs: EVERY_MS,
    fingerprint: ({ rows }) =>
      rows
        .map((row) => [row.key, row.state, row.ending, row.fence, row.waiting, row.used, row.cap?.since].join())
        .join('\n'),
    onData: ({ rows, more }) => {
      const byName = new Map(rows.map((row) => [row.key, row]));
      if (!more) history.saw({ of: 'leases', rows: byName, compare: keyChanges }, Date.now());
    },
  });
  const showsActive = !FILTERS[route.show] || route.show === 'active';
  const empty = showsActive ? 'No key is held or capped, and no caller is in line.' : 'No key is in this state.';
  return html`<${Trouble} polled=${polled} />
  <div class="split ${key === undefined ? '' : 'open'}">
    <section class="list" aria-label="Keys">
      <${Loaded} polled=${polled} isSaid>${({ rows, more }: Listing<ListedKey>, at: number) => html`<${List} class="leases" noun="key" filters=${FILTERS} idOf=${idOf} openId=${key} ...${{ route, rows, more, texts, empty }} columns=${columns(route, at)} />`}<//>
    </section>
    ${key !== undefined && html`<${LeaseDetail} key=${key} leaseKey=${key} route=${route} list=${polled} />`}
  </div>`;
}

const idOf = ({ key }: ListedKey) => key;

const readLeases = (signal: AbortSignal) =>
  list(
    (cursor) =>
      call('readLeases', { limit: 1000, ...cursor }, signal) as Promise<{
        leases: ListedKey[];
        nextCursor: string | null;
      }>,
    ({ leases }) => leases,
  );
