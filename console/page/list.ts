import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
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
  /** On a wide screen. Columns without a width share what is left. */
  width?: string;
  /** Whether the column gives way while a row is open beside the list. */
  isSpare?: boolean;
}

/** How a click on the head of a column sorts the list. A second click reverses the order. */
interface Order<Row> {
  by: string;
  /** What the rows are sorted by. Rows that are alike in it are sorted by their id, and rows without it come last. */
  of(row: Row): string | number | null | undefined;
  /** Which rows need a look. The order has them together, and they get a heading. */
  needsLook?(row: Row): boolean;
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
  /** What the list can be cut down to, by name. The list begins with the first one, and a search with all rows. */
  filters?: Filters<Row>;
  /** The order in which the list begins, of the first column that has one by default. Another name leaves the rows as they come. */
  start?: string;
  /** What the list says if it is empty. */
  empty: ComponentChildren;
}

const ALL = { all: { label: 'All', has: () => true } };

/** Rows with a search and filters over them. */
export function List<Row>(props: ListProps<Row>) {
  const { route, noun, rows, more, texts, columns, empty, idOf } = props;
  const filters: Filters<Row> = props.filters ?? ALL;
  const show = chosenOf(filters, route.show || (route.query && 'all'));
  const sorted = sortedBy(columns, route.sort, props.start);
  const found = useMemo(() => {
    const wanted = route.query.toLowerCase();
    const found = rows.filter((row) => texts(row).some((text) => text?.toLowerCase().includes(wanted)));
    return sorted ? inOrder(found, sorted, idOf) : found;
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

function sortedBy<Row>(columns: Column<Row>[], sort: string, start?: string): Sorted<Row> | undefined {
  const orders = columns.flatMap(({ order }) => order ?? []);
  const orderBy = (name: string | undefined) => orders.find(({ by }) => by === name);
  const wanted = orderBy(sort.replace(/^-/, ''));
  const order = wanted ?? orderBy(start ?? orders[0]?.by);
  return order && { order, isReversed: wanted !== undefined && sort.startsWith('-') };
}

function inOrder<Row>(rows: Row[], { order, isReversed }: Sorted<Row>, idOf: (row: Row) => string): Row[] {
  const { of, descends } = order;
  const none = descends ? '' : '\uffff';
  const placed = rows.map((row) => ({ row, by: of(row) ?? none, id: idOf(row) }));
  placed.sort((one, other) => compare(one.by, other.by) * (descends ? -1 : 1) || compare(one.id, other.id));
  if (isReversed) placed.reverse();
  return placed.map(({ row }) => row);
}

const compare = <Value>(one: Value, other: Value): number => (one < other ? -1 : Number(one > other));

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
  column: { head, order, width, isSpare },
  route,
  sorted,
}: { column: Column<Row> } & Pick<RowsProps<Row>, 'route' | 'sorted'>) {
  const place = { scope: 'col', class: isSpare && 'spare', style: width && { width } };
  if (!order) return html`<th ...${place}>${head}</th>`;
  const { by, descends = false } = order;
  if (by !== sorted?.order.by) return html`<th ...${place}><a href=${linkTo({ ...route, sort: by })}>${head}</a></th>`;
  const isUp = descends === sorted.isReversed;
  return html`<th ...${place} aria-sort=${isUp ? 'ascending' : 'descending'}><a href=${linkTo({ ...route, sort: sorted.isReversed ? by : `-${by}` })}>${head}<span aria-hidden="true"> ${isUp ? '↑' : '↓'}</span></a></th>`;
}

/** The page draws this many rows, those near the screen, because a thousand at each refresh would take a tenth of a second. */
const DRAWN = 100;
/** This many of the drawn rows are above the screen. */
const ABOVE = 20;
const STEP = 10;

/** Which rows to draw, and how high one is. The rows before and after keep their place, so the page scrolls as if all were drawn. */
function useNearRows(count: number) {
  const body = useRef<HTMLElement>(null);
  const [from, setFrom] = useState(0);
  const [height, setHeight] = useState(0);
  useEffect(() => {
    let one = 1;
    const look = () => {
      const first = -(body.current?.getBoundingClientRect().top ?? 0) / one - ABOVE;
      setFrom(Math.ceil(first / STEP) * STEP);
    };
    const measure = () => {
      const rows = body.current?.querySelectorAll('[aria-rowindex]') ?? [];
      const [top, bottom] = [rows[0], rows[rows.length - 1]].map((row) => row?.getBoundingClientRect());
      one = ((bottom?.bottom ?? 0) - (top?.top ?? 0)) / rows.length;
      setHeight(one);
      look();
    };
    if (count <= DRAWN) return undefined;
    measure();
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', measure);
    return () => {
      removeEventListener('scroll', look);
      removeEventListener('resize', measure);
    };
  }, [count]);
  return { body, height, from: Math.max(0, Math.min(from, count - DRAWN)) };
}

function Rows<Row>({ columns, rows, idOf, openId, route, sorted }: RowsProps<Row>) {
  const { body, height, from } = useNearRows(rows.length);
  const near = rows.slice(from, from + DRAWN);
  const needsLook = sorted?.order.needsLook;
  const looks = needsLook ? rows.filter(needsLook).length : 0;
  const headingOf = (row: Row, before: Row | undefined) => {
    const isOne = needsLook?.(row);
    if (looks === 0 || (before && isOne === needsLook?.(before))) return null;
    const words = isOne ? html`Needs a look <span class="count">${looks}</span>` : 'Others';
    // Cell by cell, because some columns give way.
    const rest = columns.slice(1).map(({ isSpare }) => html`<td class=${isSpare && 'spare'}></td>`);
    return html`<tr key=${`/${isOne}`} class="across"><th scope="rowgroup">${words}</th>${rest}</tr>`;
  };
  const space = (of: number) =>
    of > 0 && html`<tr class="space" aria-hidden="true"><td style=${{ height: `${of * height}px` }}></td></tr>`;
  return html`<table class="rows" aria-rowcount=${rows.length + 1}>
    <thead><tr>${columns.map((column) => html`<${Head} key=${column.head} ...${{ column, route, sorted }} />`)}</tr></thead>
    <tbody ref=${body}>${space(from)}${near.flatMap((row, index) => {
      const id = idOf(row);
      const at = from + index;
      return [
        headingOf(row, rows[at - 1]),
        html`<tr key=${id} class=${id === openId ? 'open' : ''} aria-rowindex=${at + 2}>${columns.map(
          ({ head, cell, class: name, isSpare }, place) =>
            place === 0
              ? html`<th scope="row" class=${name}>${cell(row)}</th>`
              : html`<td data-label=${head} class=${isSpare && 'spare'}><span class=${name}>${cell(row)}</span></td>`,
        )}</tr>`,
      ];
    })}${space(rows.length - from - near.length)}</tbody>
  </table>`;
}
