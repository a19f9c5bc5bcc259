import { CapBadge } from './cap.ts';
import { useTicking } from './clock.ts';
import { html } from './html.ts';
import { List, type Table } from './list.ts';
import { Cut, Loaded, None, Since, Who } from './parts.ts';
import { usePolled } from './polling.ts';
import type { Route } from './route.ts';
import { call, type Listing, list, type RateKey } from './service.ts';
import { capText, clockTime, compareTexts, duration, ratesText } from './words.ts';

const EVERY_MS = 5000;

const texts = ({ key, rates, by, cap }: RateKey) => [key, by, ratesText(rates), cap ? cap.reason : null];
const idOf = ({ key }: RateKey) => key;

const byKey = (left: RateKey, right: RateKey): number => compareTexts(left.key, right.key);

const COLUMNS: Table<RateKey>['columns'] = [
  { head: 'Key', class: 'mono', cell: ({ key }) => html`<${Cut} text=${key} />`, order: { by: 'key', compare: byKey } },
  { head: 'Rates', class: 'reason', cell: (row) => html`<${Rates} of=${row} />` },
  {
    head: 'Paid until',
    cell: ({ paidUntil }) => paidUntil && html`<${Paid} until=${paidUntil} />`,
    order: {
      by: 'paid',
      compare: (left, right) => compareTexts(right.paidUntil, left.paidUntil) || byKey(left, right),
      descends: true,
    },
  },
  { head: 'Open', class: 'number', cell: ({ open }) => open || null },
  { head: 'Last caller', class: 'mono', cell: ({ by }) => by && html`<${Who} holder=${by} />` },
  {
    head: 'Reserved',
    cell: ({ at }) => at && html`<${Since} instant=${at} />`,
    order: {
      by: 'at',
      compare: (left, right) => compareTexts(right.at, left.at) || byKey(left, right),
      descends: true,
    },
  },
];

/**
 * What the last caller named, and what the caller before did if that differs: they should agree. Below, all of the cap, because rates have no view of one
 * key.
 */
function Rates({ of: { rates, ratesBefore, cap } }: { of: RateKey }) {
  const [now, before] = [ratesText(rates), ratesText(ratesBefore)];
  return html`<span>${now || None('not known')}${before !== now && html` <span class="state ending">before: ${before}</span>`}${cap && html`<br /><${CapBadge} cap=${cap} /> ${cap.rates && `${ratesText(cap.rates)} `}${cap.reason}<br /><span class="quiet">${capText(cap)}</span>`}</span>`;
}

/** The time goes on while the page shows it, so a key becomes idle without a call. */
function Paid({ until }: { until: string }) {
  const ref = useTicking<HTMLTimeElement>((element) => {
    const ms = Date.parse(until) - Date.now();
    element.textContent = ms > 0 ? `${clockTime(until)}, in ${duration(ms)}` : 'idle';
  });
  return html`<time ref=${ref} datetime=${until} title=${clockTime(until, { names: true })}></time>`;
}

const readRates = (signal: AbortSignal) =>
  list(
    (cursor) =>
      call('readRates', { limit: 1000, ...cursor }, signal) as Promise<{ keys: RateKey[]; nextCursor: string | null }>,
    ({ keys }) => keys,
  );

/** The keys that have a rate, and until when each is used up. */
export function RatesView({ route }: { route: Route }) {
  const polled = usePolled(readRates, {
    everyMs: EVERY_MS,
    fingerprint: ({ rows }) =>
      rows.map(({ key, paidUntil, open, cap }) => [key, paidUntil, open, cap?.since].join()).join('\n'),
  });
  return html`<section aria-label="Rates">
    <p class="lead">Until when each key is paid by the starts that callers have reserved. The next caller starts then: earlier with a burst, and at once if the key is idle.</p>
    <${Loaded} polled=${polled}>${({ rows, more }: Listing<RateKey>) => html`<${List} noun="key" columns=${COLUMNS} empty="No caller has reserved a start." ...${{ route, rows, more, texts, idOf }} />`}<//>
  </section>`;
}
