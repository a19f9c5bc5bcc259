import { CapBadge } from './cap.ts';
import { html } from './html.ts';
import { List, type Table } from './list.ts';
import { Counting, Ends, First, Loaded, None, Since, Who } from './parts.ts';
import { usePolled } from './polling.ts';
import type { Route } from './route.ts';
import { type Listing, type RateKey, reader } from './service.ts';
import { capText, clockTime, duration, ratesText } from './texts.ts';

const POLL_EVERY_MS = 5000;

const texts = ({ key, rates, by, cap }: RateKey) => [key, by, ratesText(rates), cap ? cap.reason : null];
const idOf = ({ key }: RateKey) => key;

/** The text about the time until which a key is paid. It changes each second, so a key becomes idle without a call. */
const paid = (until: string) => (ms: number) => (ms < 0 ? `${clockTime(until)}, in ${duration(-ms)}` : 'idle');

const COLUMNS: Table<RateKey>['columns'] = [
  {
    head: 'Key',
    class: 'mono',
    cell: ({ key }) => html`<${Ends} text=${key} />`,
    order: { by: 'key', value: idOf },
  },
  { head: 'Rates', class: 'reason', cell: (row) => html`<${Rates} row=${row} />` },
  {
    head: 'Paid until',
    width: '15rem',
    cell: ({ paidUntil }) => paidUntil && html`<${Counting} instant=${paidUntil} words=${paid(paidUntil)} />`,
    order: {
      by: 'paid',
      value: ({ paidUntil }) => paidUntil,
      descends: true,
    },
  },
  { head: 'Open', class: 'number', width: '4.5rem', cell: ({ open }) => open || null },
  { head: 'Last caller', class: 'mono', width: '14rem', cell: ({ by }) => by && html`<${Who} holder=${by} />` },
  {
    head: 'Reserved',
    width: '9rem',
    cell: ({ at }) => at && html`<${Since} instant=${at} />`,
    order: {
      by: 'at',
      value: ({ at }) => at,
      descends: true,
    },
  },
];

/**
 * The rates that the last caller named, and those of the caller before if they differ, because callers should agree. The whole cap is below, because
 * there is no view of one key with rates.
 */
function Rates({ row: { rates, ratesBefore, cap } }: { row: RateKey }) {
  const [now, before] = [ratesText(rates), ratesText(ratesBefore)];
  return html`<span>${now || None('not known')}${before !== now && html` <span class="state ending">before: ${before}</span>`}${cap && html`<br /><${CapBadge} cap=${cap} /> ${cap.rates && `${ratesText(cap.rates)} `}${cap.reason}<br /><span class="quiet">${capText(cap)}</span>`}</span>`;
}

const readRates = reader<RateKey>('readRates', 'keys');

/** The tab Rates: the keys that have rates, and until when each is used up. */
export function RatesView({ route }: { route: Route }) {
  const polled = usePolled(readRates, {
    everyMs: POLL_EVERY_MS,
    fingerprint: ({ rows }) =>
      rows.map(({ key, paidUntil, open, cap }) => [key, paidUntil, open, cap?.since].join()).join('\n'),
  });
  return html`<section aria-label="Rates">
    <p class="lead">Callers have reserved starts, which use up each key until the time shown. The next caller starts at that time, or earlier with a burst. At an idle key, the next caller starts at once.</p>
    <${Loaded} polled=${polled}>${({ rows, more }: Listing<RateKey>) => html`<${List} noun="key" columns=${COLUMNS} empty=${html`No caller has reserved a start. To reserve one:<${First} words="run hello --rate 10/1m" work="date" />`} ...${{ route, rows, more, texts, idOf }} />`}<//>
  </section>`;
}
