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
}

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
  filters?: Record<string, { label: string; has(row: Row): boolean }>;
  compare?(left: Row, right: Row): number;
  /** What is said where nothing is there. */
  empty: string;
}

const ALL = { all: { label: 'All', has: () => true } };

/** Rows with a search and filters over them. */
export function List<Row>(props: ListProps<Row>) {
  const { route, noun, rows, more, texts, compare, empty, idOf } = props;
  const filters: NonNullable<ListProps<Row>['filters']> = props.filters ?? ALL;
  const found = useMemo(() => {
    const wanted = route.query.toLowerCase();
    const byId = (left: Row, right: Row) => (idOf(left) < idOf(right) ? -1 : 1);
    return rows
      .filter((row) => texts(row).some((text) => text?.toLowerCase().includes(wanted)))
      .toSorted(compare ?? byId);
  }, [rows, route.query]);
  const chosen = filters[route.show] ? route.show : (Object.keys(filters)[0] ?? '');
  const shown = found.filter((row) => filters[chosen]?.has(row));
  return html`
    <div class="tools">
      <${SearchBox} route=${route} noun=${noun} />
      ${
        filters !== ALL &&
        html`<nav class="filters" aria-label="Show">${Object.entries(filters).map(
          ([name, { label, has }]) =>
            html`<a href=${linkTo({ ...route, show: name })} aria-current=${name === chosen ? 'true' : undefined}>${label} <span class="count">${found.filter(has).length}</span></a>`,
        )}</nav>`
      }
    </div>
    ${more && html`<p class="notice">There are more than ${counted(rows.length, noun)}. Only these are shown and searched.</p>`}
    <p class="unseen" role="status">${counted(shown.length, noun)} shown</p>
    ${shown.length > 0 ? html`<${Rows} ...${props} rows=${shown} />` : html`<${Nothing}>${route.query ? `No ${noun} matches “${route.query}”.` : empty}<//>`}
  `;
}

/** What is typed is in the address, so that a search can be linked to. `/` puts the focus here. */
function SearchBox({ route, noun }: { route: Route; noun: string }) {
  const search = (event: Event) => replaceRoute({ ...route, query: (event.currentTarget as HTMLInputElement).value });
  return html`<input id="search" type="search" placeholder="Search" aria-label=${`Search each ${noun}`} value=${route.query} onInput=${search} autocomplete="off" spellcheck=${false} />`;
}

function Rows<Row>({ columns, rows, idOf, openId, class: name = '' }: Table<Row> & { rows: Row[] }) {
  return html`<table class="rows ${name}">
    <thead><tr>${columns.map(({ head }) => html`<th scope="col">${head}</th>`)}</tr></thead>
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
