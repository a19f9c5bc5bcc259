import { useContext } from 'preact/hooks';
import { commitChanges } from './changes.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import { List, type Table } from './list.ts';
import { At, Draining, Ends, Loaded, None } from './parts.ts';
import { usePolled } from './polling.ts';
import type { Route } from './route.ts';
import { type InFlight, type Listing, reader } from './service.ts';

/** How often the commits are read. Each read scans the table of commit records. */
const POLL_EVERY_MS = 5000;

/** The id of a row. Two commits of one path may be under way if they expect different states of the object. */
const idOf = ({ path, expectedEtag, commitId }: InFlight) => [path, expectedEtag, commitId].join('\n');

const texts = ({ path, commitId }: InFlight) => [path, commitId];

const columns = (answeredAt: number): Table<InFlight>['columns'] => [
  {
    head: 'Path',
    class: 'mono',
    cell: ({ path }) => html`<${Ends} text=${path} />`,
    order: { by: 'path', value: idOf },
  },
  {
    head: 'Writer’s time left',
    width: '12rem',
    order: { by: 'left', value: ({ remainingMs }) => remainingMs ?? Number.MAX_VALUE },
    cell: ({ remainingMs, timeoutMs }) =>
      remainingMs === null
        ? None('not known')
        : html`<${Draining} remainingMs=${remainingMs} answeredAt=${answeredAt} wholeMs=${timeoutMs ?? remainingMs} />`,
  },
  { head: 'Commit', class: 'mono', cell: ({ commitId }) => commitId ?? None('of another client') },
  { head: 'Replaces', class: 'mono', cell: ({ expectedEtag }) => expectedEtag ?? None('nothing (a new object)') },
  {
    head: 'Began',
    cell: ({ writtenAt }) => (writtenAt ? html`<${At} instant=${writtenAt} />` : None('not known')),
    width: '10.5rem',
    order: { by: 'began', value: ({ writtenAt }) => writtenAt },
  },
  { head: 'Tries', class: 'number', width: '4.5rem', cell: ({ generation }) => generation + 1 },
];

const readCommits = reader<InFlight>('readInFlight', 'commits');

export function CommitsView({ route }: { route: Route }) {
  const { noticedChanges } = useContext(Page);
  const polled = usePolled(readCommits, {
    everyMs: POLL_EVERY_MS,
    fingerprint: ({ rows }) => rows.map(idOf).sort().join(),
    onData: ({ rows, more }) => {
      const byPath = new Map(rows.map((row) => [row.path, row]));
      if (!more) noticedChanges.saw({ list: 'commits', rows: byPath, compare: commitChanges }, Date.now());
    },
  });
  return html`<section aria-label="Commits in flight">
    <p class="lead">Commits that have begun and have not ended. If a writer was interrupted, its path is free when the bar is empty.</p>
    <${Loaded} polled=${polled}>${({ rows, more }: Listing<InFlight>, answeredAt: number) => html`
      ${more && html`<p class="notice">The table of commit records is long. Only its beginning was read.</p>`}
      <${List} noun="commit" empty="No commit is under way." idOf=${idOf} ...${{ route, rows, texts }} columns=${columns(answeredAt)} />`}<//>
  </section>`;
}
