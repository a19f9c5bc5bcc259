import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { html } from './html.ts';
import { Nothing } from './parts.ts';
import { linkTo, type Route, replaceRoute } from './route.ts';
import { counted } from './words.ts';

interface Column<Row> {
  head: string;
  /** What stands in the cell; undefined or null for an empty one. */
  cell(row: Row): ComponentChildren;
  class?: string;
  /** How a click on the head sorts the list. The first order is the one where the list begins. */
  order?: { by: string; compare(left: Row, right: Row): number };
}

type Filters<Row> = Record<string, { label: string; has(row: Row): boolean }>;

export interface Table<Row> {
  /** The first one names the row. */
  columns: Column<Row>[];
  idOf(row: Row): string;
  class?: string;
  /** The row that is open beside the list. */
  openId?: string | undefined;
}

interface ListProps<Row> extends Table<Row> {
  route: Route;
  /** What a row is called, for example lease. */
  noun: string;
  rows: readonly Row[];
  /** Whether the service has more of them than these. */
  more?: boolean;
  /** The texts of a row in which a search looks. */
  texts(row: Row): (string | null)[];
  /** What the list can be cut down to, by name; the first one is where it begins. */
  filters?: Filters<Row>;
  /** A second set of filters, by kind. */
  kinds?: Filters<Row>;
  compare?(left: Row, right: Row): number;
  /** What is said where nothing is there. */
  empty: string;
}

const ALL = { all: { label: 'All', has: () => true } };

/** Rows with a search and filters over them. */
export function List<Row>(props: ListProps<Row>) {
  const { route, noun, rows, more, texts, columns, empty, idOf } = props;
  const filters: Filters<Row> = props.filters ?? ALL;
  const kinds: Filters<Row> = props.kinds ?? ALL;
  const [show, kind] = [chosenOf(filters, route.show), chosenOf(kinds, route.kind)];
  const sort = (columns.find(({ order }) => order?.by === route.sort) ?? columns.find(({ order }) => order))?.order;
  const found = useMemo(() => {
    const wanted = route.query.toLowerCase();
    const byId = (left: Row, right: Row) => (idOf(left) < idOf(right) ? -1 : 1);
    return rows
      .filter((row) => texts(row).some((text) => text?.toLowerCase().includes(wanted)))
      .toSorted(props.compare ?? sort?.compare ?? byId);
  }, [rows, route.query, sort?.by]);
  const shown = found.filter((row) => filters[show]?.has(row) && kinds[kind]?.has(row));
  const choice = { route, rows: found };
  return html`
    <div class="tools">
      <${SearchBox} route=${route} noun=${noun} />
      ${filters !== ALL && html`<${Choices} ...${choice} label="Show" field="show" filters=${filters} chosen=${show} and=${kinds[kind]?.has} />`}
      ${kinds !== ALL && html`<${Choices} ...${choice} label="Kind" field="kind" filters=${kinds} chosen=${kind} and=${filters[show]?.has} />`}
    </div>
    ${more && html`<p class="notice">There are more than ${counted(rows.length, noun)}. Only these are shown and searched.</p>`}
    <p class="unseen" role="status">${counted(shown.length, noun)} shown</p>
    ${shown.length > 0 ? html`<${Rows} ...${props} rows=${shown} sortedBy=${sort?.by} />` : html`<${Nothing}>${route.query ? `No ${noun} matches “${route.query}”.` : empty}<//>`}
  `;
}

/** What is typed is in the address, so that a search can be linked to. `/` puts the focus here. */
function SearchBox({ route, noun }: { route: Route; noun: string }) {
  const search = (event: Event) => replaceRoute({ ...route, query: (event.currentTarget as HTMLInputElement).value });
  return html`<input id="search" type="search" placeholder="Search" aria-label=${`Search each ${noun}`} value=${route.query} onInput=${search} autocomplete="off" spellcheck=${false} />`;
}

const chosenOf = (filters: object, name: string): string =>
  Object.hasOwn(filters, name) ? name : (Object.keys(filters)[0] ?? '');

interface ChoicesProps<Row> {
  route: Route;
  label: string;
  /** The field of the route that has the choice. */
  field: 'show' | 'kind';
  filters: Filters<Row>;
  chosen: string;
  rows: Row[];
  /** The filter of the other set: each choice counts what it would show. */
  and(row: Row): boolean;
}

function Choices<Row>({ route, label, field, filters, chosen, rows, and }: ChoicesProps<Row>) {
  return html`<nav class="filters" aria-label=${label}>${Object.entries(filters).map(
    ([name, { label, has }]) =>
      html`<a href=${linkTo({ ...route, [field]: name })} aria-current=${name === chosen ? 'true' : undefined}>${label} <span class="count">${rows.filter((row) => has(row) && and(row)).length}</span></a>`,
  )}</nav>`;
}

interface RowsProps<Row> extends Table<Row> {
  route: Route;
  rows: Row[];
  sortedBy: string | undefined;
}

function Head<Row>({
  column: { head, order },
  route,
  sortedBy,
}: { column: Column<Row> } & Pick<RowsProps<Row>, 'route' | 'sortedBy'>) {
  if (!order) return html`<th scope="col">${head}</th>`;
  const isSorted = order.by === sortedBy;
  return html`<th scope="col" aria-sort=${isSorted ? 'ascending' : undefined}><a href=${linkTo({ ...route, sort: order.by })}>${head}${isSorted && html`<span aria-hidden="true"> ↑</span>`}</a></th>`;
}

function Rows<Row>({ columns, rows, idOf, openId, route, sortedBy, class: name = '' }: RowsProps<Row>) {
  return html`<table class="rows ${name}">
    <thead><tr>${columns.map((column) => html`<${Head} key=${column.head} ...${{ column, route, sortedBy }} />`)}</tr></thead>
    <tbody>${rows.map((row) => {
      const id = idOf(row);
      return html`<tr key=${id} class=${id === openId ? 'open' : ''}>${columns.map(({ head, cell, class: name }, at) =>
        at === 0
          ? html`<th scope="row" class=${name}>${cell(row)}</th>`
          : html`<td data-label=${head}><span class=${name}>${cell(row)}</span></td>`,
      )}</tr>`;
    })}</tbody>
  </table>`;
}
