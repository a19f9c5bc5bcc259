import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { html } from './html.ts';
import { Nothing } from './parts.ts';
import { linkTo, type Route, replaceRoute } from './route.ts';
import { counted } from './texts.ts';

interface Column<Row> {
  head: string;
  /** The content of the cell. Undefined or null for an empty cell. */
  cell(row: Row): ComponentChildren;
  class?: string;
  order?: Order<Row>;
  /** The width on a wide screen. Columns without a width share the rest. */
  width?: string;
  /** True if the column is hidden while a row is open beside the list. */
  isSpare?: boolean;
}

/** How a click on the head of a column sorts the list. A second click reverses the order. */
interface Order<Row> {
  by: string;
  /** The value by which the rows are sorted. Rows with the same value are sorted by their id, and rows without a value come last. */
  value(row: Row): string | number | null | undefined;
  /** True for rows that need attention. The order puts them together, and they get a heading. */
  needsAttention?(row: Row): boolean;
  /** True if the first click puts the largest value on top. */
  descends?: boolean;
}

/** The order that the address names. */
interface Sorted<Row> {
  order: Order<Row>;
  isReversed: boolean;
}

type Filters<Row> = Record<string, { label: string; has(row: Row): boolean }>;

export interface Table<Row> {
  /** The first column names the row. */
  columns: Column<Row>[];
  idOf(row: Row): string;
  /** The row that is open beside the list. */
  openId?: string | undefined;
}

interface ListProps<Row> extends Table<Row> {
  route: Route;
  /** What a row is called, for example `key`. */
  noun: string;
  rows: readonly Row[];
  /** True if the service has more rows than these. */
  more?: boolean;
  /** The texts of a row that a search searches. */
  texts(row: Row): (string | null)[];
  /** The filters by name. The list begins with the first filter, and a search with all rows. */
  filters?: Filters<Row>;
  /** The order in which the list begins. The default is that of the first column that has one. An unknown name keeps the order of the service. */
  start?: string;
  /** The text of an empty list. */
  empty: ComponentChildren;
}

const ALL = { all: { label: 'All', has: () => true } };

/** A table with a search and filters above it. */
export function List<Row>(props: ListProps<Row>) {
  const { route, noun, rows, more, texts, columns, empty, idOf } = props;
  const filters: Filters<Row> = props.filters ?? ALL;
  const filter = chosenOf(filters, route.filter || (route.query && 'all'));
  const sorted = sortedBy(columns, route.sort, props.start);
  const found = useMemo(() => {
    const wanted = route.query.toLowerCase();
    const found = rows.filter((row) => texts(row).some((text) => text?.toLowerCase().includes(wanted)));
    return sorted ? inOrder(found, sorted, idOf) : found;
  }, [rows, route.query, route.sort]);
  const shown = found.filter((row) => filters[filter]?.has(row));
  return html`
    <div class="tools">
      <${SearchBox} route=${route} noun=${noun} />
      ${filters !== ALL && html`<${Choices} ...${{ route, filters }} rows=${found} chosen=${filter} />`}
    </div>
    ${more && html`<p class="notice">There are more than ${counted(rows.length, noun)}. Only these are shown and searched.</p>`}
    <p class="unseen" role="status">${counted(shown.length, noun)} shown</p>
    ${shown.length > 0 ? html`<${Rows} ...${props} rows=${shown} sorted=${sorted} />` : html`<${Nothing}>${route.query ? `No ${noun} matches “${route.query}”.` : empty}<//>`}
  `;
}

function sortedBy<Row>(columns: Column<Row>[], sort: string, start?: string): Sorted<Row> | undefined {
  const orders = columns.flatMap(({ order }) => order ?? []);
  const orderBy = (name: string | undefined) => orders.find(({ by }) => by === name);
  const wanted = orderBy(sort.replace(/^-/, ''));
  const order = wanted ?? orderBy(start ?? orders[0]?.by);
  return order && { order, isReversed: wanted !== undefined && sort.startsWith('-') };
}

function inOrder<Row>(rows: Row[], { order, isReversed }: Sorted<Row>, idOf: (row: Row) => string): Row[] {
  const { value: of, descends } = order;
  const none = descends ? '' : '\uffff';
  const placed = rows.map((row) => ({ row, by: of(row) ?? none, id: idOf(row) }));
  placed.sort((one, other) => compare(one.by, other.by) * (descends ? -1 : 1) || compare(one.id, other.id));
  if (isReversed) placed.reverse();
  return placed.map(({ row }) => row);
}

const compare = <Value>(one: Value, other: Value): number => (one < other ? -1 : Number(one > other));

/** The field of the search. Its text is in the address, so that people can link to a search. The shortcut `/` puts the focus here. */
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
      html`<a href=${linkTo({ ...route, filter: name })} aria-current=${name === chosen ? 'true' : undefined}>${label} <span class="count">${rows.filter(has).length}</span></a>`,
  )}</nav>`;
}

interface RowsProps<Row> extends Table<Row> {
  route: Route;
  rows: Row[];
  sorted: Sorted<Row> | undefined;
}

function Head<Row>({
  column: { head, order, width, isSpare },
  route,
  sorted,
}: { column: Column<Row> } & Pick<RowsProps<Row>, 'route' | 'sorted'>) {
  const attributes = { scope: 'col', class: isSpare && 'spare', style: width && { width } };
  if (!order) return html`<th ...${attributes}>${head}</th>`;
  const { by, descends = false } = order;
  if (by !== sorted?.order.by)
    return html`<th ...${attributes}><a href=${linkTo({ ...route, sort: by })}>${head}</a></th>`;
  const isUp = descends === sorted.isReversed;
  return html`<th ...${attributes} aria-sort=${isUp ? 'ascending' : 'descending'}><a href=${linkTo({ ...route, sort: sorted.isReversed ? by : `-${by}` })}>${head}<span aria-hidden="true"> ${isUp ? '↑' : '↓'}</span></a></th>`;
}

/** How many rows are drawn: those near the screen, because drawing a thousand at each refresh would take a tenth of a second. */
const DRAWN = 100;
/** How many of the drawn rows are above the screen. */
const ROWS_DRAWN_ABOVE = 20;
const SCROLL_STEP_ROWS = 10;

/** Says which rows to draw, and how high a row is. Empty rows stand for those above and below, so that the page scrolls as if all were drawn. */
function useNearRows(count: number) {
  const body = useRef<HTMLElement>(null);
  const [from, setFrom] = useState(0);
  const [height, setHeight] = useState(0);
  useEffect(() => {
    let one = 1;
    const follow = () => {
      const top = -(body.current?.getBoundingClientRect().top ?? 0) / one - ROWS_DRAWN_ABOVE;
      setFrom(Math.ceil(top / SCROLL_STEP_ROWS) * SCROLL_STEP_ROWS);
    };
    const measure = () => {
      const rows = body.current?.querySelectorAll('[aria-rowindex]') ?? [];
      const [top, bottom] = [rows[0], rows[rows.length - 1]].map((row) => row?.getBoundingClientRect());
      one = ((bottom?.bottom ?? 0) - (top?.top ?? 0)) / rows.length;
      setHeight(one);
      follow();
    };
    if (count <= DRAWN) return undefined;
    measure();
    addEventListener('scroll', follow, { passive: true });
    addEventListener('resize', measure);
    return () => {
      removeEventListener('scroll', follow);
      removeEventListener('resize', measure);
    };
  }, [count]);
  return { body, height, from: Math.max(0, Math.min(from, count - DRAWN)) };
}

function Rows<Row>({ columns, rows, idOf, openId, route, sorted }: RowsProps<Row>) {
  const { body, height, from } = useNearRows(rows.length);
  const near = rows.slice(from, from + DRAWN);
  const needsAttention = sorted?.order.needsAttention;
  const urgent = needsAttention ? rows.filter(needsAttention).length : 0;
  const headingOf = (row: Row, before: Row | undefined) => {
    const isOne = needsAttention?.(row);
    if (urgent === 0 || (before && isOne === needsAttention?.(before))) return null;
    const words = isOne ? html`Needs attention <span class="count">${urgent}</span>` : 'Others';
    // A cell for each column, because some columns are hidden on a narrow screen.
    const rest = columns.slice(1).map(({ isSpare }) => html`<td class=${isSpare && 'spare'}></td>`);
    return html`<tr key=${`/${isOne}`} class="across"><th scope="rowgroup">${words}</th>${rest}</tr>`;
  };
  const space = (count: number) =>
    count > 0 && html`<tr class="space" aria-hidden="true"><td style=${{ height: `${count * height}px` }}></td></tr>`;
  return html`<table class="rows" aria-rowcount=${rows.length + 1}>
    <thead><tr>${columns.map((column) => html`<${Head} key=${column.head} ...${{ column, route, sorted }} />`)}</tr></thead>
    <tbody ref=${body}>${space(from)}${near.flatMap((row, index) => {
      const id = idOf(row);
      const at = from + index;
      return [
        headingOf(row, rows[at - 1]),
        html`<tr key=${id} class=${id === openId ? 'open' : ''} aria-rowindex=${at + 2}>${columns.map(
          ({ head, cell, class: name, isSpare }, index) =>
            index === 0
              ? html`<th scope="row" class=${name}>${cell(row)}</th>`
              : html`<td data-label=${head} class=${isSpare && 'spare'}><span class=${name}>${cell(row)}</span></td>`,
        )}</tr>`,
      ];
    })}${space(rows.length - from - near.length)}</tbody>
  </table>`;
}
