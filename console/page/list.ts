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
  order?: Order<Row>;
}

/** How a click on the head of a column sorts the list. A second click reverses the order. */
interface Order<Row> {
  by: string;
  compare(left: Row, right: Row): number;
  /** Whether the first click puts the largest value on top. */
  descends?: boolean;
}

/** The order of the address. */
interface Sorted<Row> {
  order: Order<Row>;
  isReversed: boolean;
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
  /** What the list can be cut down to, by name; it begins with the first one. */
  filters?: Filters<Row>;
  /** The order in which the list begins: by the first column with an order, if there is none. */
  compare?(left: Row, right: Row): number;
  /** What the list says if it is empty. */
  empty: string;
}

const ALL = { all: { label: 'All', has: () => true } };

/** Rows with a search and filters over them. */
export function List<Row>(props: ListProps<Row>) {
  const { route, noun, rows, more, texts, columns, empty, idOf } = props;
  const filters: Filters<Row> = props.filters ?? ALL;
  const show = chosenOf(filters, route.show);
  const sorted = sortedBy(columns, route.sort, props.compare === undefined);
  const found = useMemo(() => {
    const wanted = route.query.toLowerCase();
    const byId = (left: Row, right: Row) => (idOf(left) < idOf(right) ? -1 : 1);
    return rows
      .filter((row) => texts(row).some((text) => text?.toLowerCase().includes(wanted)))
      .toSorted(sorted ? compareBy(sorted) : (props.compare ?? byId));
  }, [rows, route.query, route.sort]);
  const shown = found.filter((row) => filters[show]?.has(row));
  return html`
    <div class="tools">
      <${SearchBox} route=${route} noun=${noun} />
      ${filters !== ALL && html`<${Choices} ...${{ route, filters }} rows=${found} chosen=${show} />`}
    </div>
    ${more && html`<p class="notice">There are more than ${counted(rows.length, noun)}. Only these are shown and searched.</p>`}
    <p class="unseen" role="status">${counted(shown.length, noun)} shown</p>
    ${shown.length > 0 ? html`<${Rows} ...${props} rows=${shown} sorted=${sorted} />` : html`<${Nothing}>${route.query ? `No ${noun} matches “${route.query}”.` : empty}<//>`}
  `;
}

/** @param begins whether the list begins in the order of a column */
function sortedBy<Row>(columns: Column<Row>[], sort: string, begins: boolean): Sorted<Row> | undefined {
  const orders = columns.flatMap(({ order }) => order ?? []);
  const wanted = orders.find(({ by }) => by === sort.replace(/^-/, ''));
  const order = wanted ?? (begins ? orders[0] : undefined);
  return order && { order, isReversed: wanted !== undefined && sort.startsWith('-') };
}

const compareBy =
  <Row>({ order, isReversed }: Sorted<Row>) =>
  (left: Row, right: Row): number =>
    isReversed ? order.compare(right, left) : order.compare(left, right);

/** What is typed is in the address, so that a search can be linked to. `/` puts the focus here. */
function SearchBox({ route, noun }: { route: Route; noun: string }) {
  const search = (event: Event) => replaceRoute({ ...route, query: (event.currentTarget as HTMLInputElement).value });
  return html`<input id="search" type="search" placeholder="Search" aria-label=${`Search each ${noun}`} value=${route.query} onInput=${search} autocomplete="off" spellcheck=${false} />`;
}

const chosenOf = (filters: object, name: string): string =>
  Object.hasOwn(filters, name) ? name : (Object.keys(filters)[0] ?? '');

interface ChoicesProps<Row> {
  route: Route;
  filters: Filters<Row>;
  chosen: string;
  rows: Row[];
}

function Choices<Row>({ route, filters, chosen, rows }: ChoicesProps<Row>) {
  return html`<nav class="filters" aria-label="Show">${Object.entries(filters).map(
    ([name, { label, has }]) =>
      html`<a href=${linkTo({ ...route, show: name })} aria-current=${name === chosen ? 'true' : undefined}>${label} <span class="count">${rows.filter(has).length}</span></a>`,
  )}</nav>`;
}

interface RowsProps<Row> extends Table<Row> {
  route: Route;
  rows: Row[];
  sorted: Sorted<Row> | undefined;
}

function Head<Row>({
  column: { head, order },
  route,
  sorted,
}: { column: Column<Row> } & Pick<RowsProps<Row>, 'route' | 'sorted'>) {
  if (!order) return html`<th scope="col">${head}</th>`;
  const { by, descends = false } = order;
  if (by !== sorted?.order.by) return html`<th scope="col"><a href=${linkTo({ ...route, sort: by })}>${head}</a></th>`;
  const isUp = descends === sorted.isReversed;
  return html`<th scope="col" aria-sort=${isUp ? 'ascending' : 'descending'}><a href=${linkTo({ ...route, sort: sorted.isReversed ? by : `-${by}` })}>${head}<span aria-hidden="true"> ${isUp ? '↑' : '↓'}</span></a></th>`;
}

function Rows<Row>({ columns, rows, idOf, openId, route, sorted, class: name = '' }: RowsProps<Row>) {
  return html`<table class="rows ${name}">
    <thead><tr>${columns.map((column) => html`<${Head} key=${column.head} ...${{ column, route, sorted }} />`)}</tr></thead>
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
