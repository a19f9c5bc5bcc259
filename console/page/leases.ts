import { useContext } from 'preact/hooks';
import { leaseChanges } from './changes.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import { LeaseDetail } from './lease.ts';
import { List, type Table } from './list.ts';
import { Loaded, None, Since, State, TimeLeft } from './parts.ts';
import { usePolled } from './polling.ts';
import { linkTo, type Route } from './route.ts';
import { call, type Lease, type Listing, list } from './service.ts';

const EVERY_MS = 2000;

const FILTERS: Record<string, { label: string; has(lease: Lease): boolean }> = {
  active: { label: 'Active', has: ({ state, waiting }) => state === 'held' || state === 'expired' || waiting },
  held: { label: 'Held', has: ({ state }) => state === 'held' },
  waiting: { label: 'Waited for', has: ({ waiting }) => waiting },
  expired: { label: 'Expired', has: ({ state }) => state === 'expired' },
  released: { label: 'Released', has: ({ state }) => state === 'released' || state === 'free' },
  all: { label: 'All', has: () => true },
};

const texts = ({ key, holder, execution, data }: Lease) => [
  key,
  holder,
  execution,
  data === null ? null : JSON.stringify(data),
];

const columns = (route: Route, at: number): Table<Lease>['columns'] => [
  {
    head: 'Lease',
    cell: ({ key }) =>
      html`<a class="mono" data-row href=${linkTo({ ...route, key })} aria-current=${route.key === key ? 'true' : undefined}>${key}</a>`,
  },
  {
    head: 'State',
    cell: (lease) =>
      html`<${State} of=${lease} />${lease.waiting && html` <span class="state waiting">waited for</span>`}`,
  },
  { head: 'Time left', cell: (lease) => html`<${TimeLeft} lease=${lease} at=${at} />` },
  { head: 'Holder', class: 'mono', cell: ({ holder }) => holder ?? None('no name') },
  { head: 'Fence', class: 'mono number', cell: ({ fence }) => fence },
  {
    head: 'Since',
    cell: ({ acquiredAt, state }) => acquiredAt && state === 'held' && html`<${Since} instant=${acquiredAt} />`,
  },
];

/** Who holds what, and beside it the lease that is open. */
export function LeasesView({ route }: { route: Route }) {
  const { history } = useContext(Page);
  const { key } = route;
  const polled = usePolled(readLeases, {
    everyMs: EVERY_MS,
    fingerprint: ({ rows }) =>
      rows.map(({ key, state, ending, fence, waiting }) => [key, state, ending, fence, waiting].join()).join('\n'),
    onData: ({ rows, more }) => {
      const byName = new Map(rows.map((row) => [row.key, row]));
      if (!more) history.saw({ of: 'leases', rows: byName, compare: leaseChanges }, Date.now());
    },
  });
  const isActive = !FILTERS[route.show] || route.show === 'active';
  const empty = isActive ? 'Nobody holds a lease, and nobody waits for one.' : 'No lease is in this state.';
  return html`<div class="split ${key === undefined ? '' : 'open'}">
    <section class="list" aria-label="Leases">
      <${Loaded} polled=${polled}>${({ rows, more }: Listing<Lease>, at: number) => html`<${List} class="leases" noun="lease" filters=${FILTERS} idOf=${idOf} openId=${key} ...${{ route, rows, more, texts, empty }} columns=${columns(route, at)} />`}<//>
    </section>
    ${key !== undefined && html`<${LeaseDetail} key=${key} leaseKey=${key} route=${route} onChange=${polled.refresh} />`}
  </div>`;
}

const idOf = ({ key }: Lease) => key;

const readLeases = (signal: AbortSignal) =>
  list(
    (cursor) =>
      call('readLeases', { limit: 1000, ...cursor }, signal) as Promise<{ leases: Lease[]; nextCursor: string | null }>,
    ({ leases }) => leases,
  );
