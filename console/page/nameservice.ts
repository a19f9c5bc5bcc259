import { useContext } from 'preact/hooks';
import { headOf, lagOf, recordChanges } from './changes.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import { List, type Table } from './list.ts';
import { At, Loaded, None } from './parts.ts';
import { usePolled } from './polling.ts';
import type { Route } from './route.ts';
import { type Listing, type NameRecord, reader } from './service.ts';

const POLL_EVERY_MS = 5000;

const FILTERS: Record<string, { label: string; has(record: NameRecord): boolean }> = {
  live: { label: 'In use', has: ({ retracted }) => !retracted },
  behind: { label: 'Index behind', has: (record) => !record.retracted && lagOf(record) > 0 },
  retracted: { label: 'Retracted', has: ({ retracted }) => retracted },
  all: { label: 'All', has: () => true },
};

const idOf = ({ alias }: NameRecord) => alias;

const COLUMNS: Table<NameRecord>['columns'] = [
  {
    head: 'Alias',
    cell: ({ alias, kind, retracted }) => html`<span class="mono">${alias}</span>
      ${kind === 'graph_source' && html` <span class="state">graph source</span>`}
      ${retracted && html` <span class="state">retracted</span>`}`,
    order: { by: 'alias', value: idOf },
  },
  {
    head: 'Index lag',
    cell: (record) => html`<${Lag} record=${record} />`,
    order: { by: 'lag', value: lagOf, descends: true },
  },
  { head: 'Head', cell: (record) => 'commit' in record && html`<${Pointer} ...${record.commit} />` },
  { head: 'Index', cell: ({ index }) => html`<${Pointer} ...${index} />` },
  { head: 'Status', cell: ({ status }) => status.state },
  {
    head: 'Updated',
    cell: ({ updatedAt }) => html`<${At} instant=${updatedAt} />`,
    order: { by: 'updated', value: ({ updatedAt }) => updatedAt, descends: true },
  },
];

function Lag({ record }: { record: NameRecord }) {
  if (headOf(record) === undefined) return None('no commits of its own');
  const lag = lagOf(record);
  return lag === 0
    ? html`<span class="state held">up to date</span>`
    : html`<span class="state expired">${lag} behind</span>`;
}

const Pointer = ({ t, address }: { t: number; address: string | null }) =>
  html`<span class="pointer"><span class="number">t ${t}</span>${address !== null && html`<span class="mono address" title=${address}>${address}</span>`}</span>`;

const readRecords = reader<NameRecord>('readNames', 'records');

/** The tab Names: the heads of the nameservice, and how far each index is behind. */
export function NameserviceView({ route }: { route: Route }) {
  const { noticedChanges } = useContext(Page);
  const polled = usePolled(readRecords, {
    everyMs: POLL_EVERY_MS,
    fingerprint: ({ rows }) => rows.map(({ alias, updatedAt }) => alias + updatedAt).join(),
    onData: ({ rows, more }) => {
      const byName = new Map(rows.map((row) => [row.alias, row]));
      if (!more) noticedChanges.saw({ list: 'nameservice', rows: byName, compare: recordChanges }, Date.now());
    },
  });
  return html`<section aria-label="Names">
    <${Loaded} polled=${polled}>${({ rows, more }: Listing<NameRecord>) => html`<${List} noun="alias" filters=${FILTERS} columns=${COLUMNS} texts=${(record: NameRecord) => [record.alias]} empty=${rows.length === 0 ? 'The nameservice has no aliases.' : 'No alias is in this state.'} start="lag" ...${{ route, rows, more, idOf }} />`}<//>
  </section>`;
}
