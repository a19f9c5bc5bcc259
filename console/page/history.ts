import { useContext } from 'preact/hooks';
import type { Change } from './changes.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import { List, type Table } from './list.ts';
import { linkTo, type Route } from './route.ts';
import { clockTime } from './texts.ts';

const COLUMNS: Table<Change>['columns'] = [
  { head: 'Seen at', width: '11rem', cell: ({ at }) => html`<time>${clockTime(at)}</time>` },
  { head: 'List', width: '7rem', cell: ({ list }) => list },
  {
    head: 'Of',
    class: 'mono',
    cell: ({ list, subject }) =>
      list === 'keys' || list === 'once'
        ? html`<a href=${linkTo({ view: list, key: subject })}>${subject}</a>`
        : subject,
  },
  { head: 'Change', class: 'reason', cell: ({ what }) => what },
];

const idOf = ({ at, list, subject, what }: Change) => [at, list, subject, what].join();
const texts = ({ subject, what }: Change) => [subject, what];

/** The tab History: what has changed while the page was open. */
export function HistoryView({ route }: { route: Route }) {
  const { noticedChanges } = useContext(Page);
  return html`<section aria-label="History">
    <p class="lead">What has changed since this page was opened, from one refresh to the next. The page reads only the list that is shown, and only while it is visible.</p>
    <${List} noun="change" empty="Nothing has changed yet." rows=${noticedChanges.changes} columns=${COLUMNS} ...${{ route, idOf, texts }} />
  </section>`;
}
