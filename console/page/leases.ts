import { useContext } from 'preact/hooks';
import { keyChanges } from './changes.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import { LeaseDetail } from './lease.ts';
import { List, type Table } from './list.ts';
import { Loaded, None, Since, State, TimeLeft } from './parts.ts';
import { usePolled } from './polling.ts';
import { linkTo, type Route } from './route.ts';
import { call, type ListedKey, type Listing, list } from './service.ts';
import { usedText } from './words.ts';

const EVERY_MS = 2000;

const FILTERS: Record<string, { label: string; has(row: ListedKey): boolean }> = {
  active: { label: 'Active', has: ({ state, waiting }) => state === 'held' || state === 'expired' || waiting > 0 },
  held: { label: 'Held', has: ({ state }) => state === 'held' },
  waiting: { label: 'Waited for', has: ({ waiting }) => waiting > 0 },
  expired: { label: 'Expired', has: ({ state }) => state === 'expired' },
  released: { label: 'Released', has: ({ state }) => state === 'released' || state === 'free' },
  all: { label: 'All', has: () => true },
};

const KINDS: typeof FILTERS = {
  all: { label: 'All kinds', has: () => true },
  lease: { label: 'Leases', has: ({ kind }) => kind === 'lease' },
  pool: { label: 'Pools', has: ({ kind }) => kind === 'pool' },
};

const texts = ({ key, kind, holder, execution, data }: ListedKey) => [
  ...[key, kind, holder, execution],
  data === null ? null : JSON.stringify(data),
];

const compareTexts = (left: string, right: string): number => (left < right ? -1 : Number(left > right));

const byKey = (left: ListedKey, right: ListedKey): number => compareTexts(left.key, right.key);

/** A key without an end comes last. */
const byExpiry = (left: ListedKey, right: ListedKey): number =>
  compareTexts(left.expiresAt ?? '\uffff', right.expiresAt ?? '\uffff') || byKey(left, right);

const columns = (route: Route, at: number): Table<ListedKey>['columns'] => [
  {
    head: 'Key',
    cell: ({ key }) =>
      html`<a class="mono" data-row href=${linkTo({ ...route, key })} aria-current=${route.key === key ? 'true' : undefined}>${key}</a>`,
    order: { by: 'key', compare: byKey },
  },
  { head: 'Kind', cell: (row) => (row.kind === 'pool' ? `pool, ${usedText(row)} in use` : 'lease') },
  {
    head: 'State',
    cell: (row) =>
      html`<${State} of=${row} />${row.waiting > 0 && html` <span class="state waiting">up to ${row.waiting} in line</span>`}`,
  },
  {
    head: 'Time left',
    cell: (row) => html`<${TimeLeft} lease=${row} at=${at} />`,
    order: { by: 'expiry', compare: byExpiry },
  },
  {
    head: 'Holder',
    class: 'mono',
    cell: ({ holder, holders = 1 }) => [holder ?? None('no name'), holders > 1 && ` and ${holders - 1} more`],
  },
  { head: 'Fence', class: 'mono number', cell: ({ fence }) => fence },
  {
    head: 'Since',
    cell: ({ acquiredAt, state }) => acquiredAt && state === 'held' && html`<${Since} instant=${acquiredAt} />`,
  },
];

/** Who holds what, and beside it the lease or the pool that is open. */
export function LeasesView({ route }: { route: Route }) {
  const { history } = useContext(Page);
  const { key } = route;
  const polled = usePolled(readLeases, {
    everyMs: EVERY_MS,
    fingerprint: ({ rows }) =>
      rows.map((row) => [row.key, row.state, row.ending, row.fence, row.waiting, row.used].join()).join('\n'),
    onData: ({ rows, more }) => {
      const byName = new Map(rows.map((row) => [row.key, row]));
      if (!more) history.saw({ of: 'leases', rows: byName, compare: keyChanges }, Date.now());
    },
  });
  const isActive = !FILTERS[route.show] || route.show === 'active';
  const empty = isActive ? 'No key is held, and no caller is in line.' : 'No key is in this state.';
  return html`<div class="split ${key === undefined ? '' : 'open'}">
    <section class="list" aria-label="Leases and pools">
      <${Loaded} polled=${polled}>${({ rows, more }: Listing<ListedKey>, at: number) => html`<${List} class="leases" noun="key" filters=${FILTERS} kinds=${KINDS} idOf=${idOf} openId=${key} ...${{ route, rows, more, texts, empty }} columns=${columns(route, at)} />`}<//>
    </section>
    ${key !== undefined && html`<${LeaseDetail} key=${key} leaseKey=${key} route=${route} onChange=${polled.refresh} />`}
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
