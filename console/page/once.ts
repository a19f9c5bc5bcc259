import { CapBadge, CapNotice } from './cap.ts';
import { type DetailProps, Drawer, fingerprint, KeyLink, Split } from './drawer.ts';
import { html } from './html.ts';
import { Facts } from './key.ts';
import { List, type Table } from './list.ts';
import { At, First, None, Since, State, Who } from './parts.ts';
import { usePolled } from './polling.ts';
import type { Route } from './route.ts';
import { call, type Listing, type OnceKey, reader } from './service.ts';
import { stateText } from './texts.ts';

const POLL_EVERY_MS = 5000;

/** The slot that a row shows: the one for which a caller works, or the last one. */
interface Slot {
  slot: string | null;
  state: string;
  by: string | null;
  at: string | null;
}

function slotOf({ slot, done, holder, acquiredAt, ...row }: OnceKey): Slot {
  const isDone = done?.slot === slot && row.state !== 'held';
  if (isDone && done) return { slot, state: 'done', by: done.by, at: done.at };
  return { slot, state: stateText(row), by: holder, at: acquiredAt };
}

/** The most urgent keys come first: a pause of an operator, and a holder that let its run expire. */
function urgency({ cap, state }: OnceKey): number {
  if (cap) return 0;
  return state === 'expired' ? 1 : state === 'held' ? 2 : 3;
}

const idOf = ({ key }: OnceKey) => key;

const columns = (route: Route): Table<OnceKey>['columns'] => [
  {
    head: 'Key',
    cell: ({ key }) => html`<${KeyLink} name=${key} route=${route} />`,
    order: { by: 'key', value: idOf },
  },
  {
    head: 'State',
    cell: (row) => html`<${State} row=${{ ...slotOf(row), ending: false }} /> <${CapBadge} cap=${row.cap} />`,
    order: {
      by: 'state',
      value: urgency,
      needsAttention: (row) => urgency(row) < 2,
    },
    width: '10.6rem',
  },
  {
    head: 'Slot',
    class: 'mono',
    cell: ({ slot }) => slot,
    order: { by: 'slot', value: ({ slot }) => slot },
  },
  {
    head: 'By',
    class: 'mono',
    cell: (row) => {
      const { by, state } = slotOf(row);
      return by === null ? state !== 'free' && None('no name') : html`<${Who} holder=${by} />`;
    },
    order: { by: 'by', value: (row) => slotOf(row).by },
    width: '20%',
  },
  {
    head: 'When',
    cell: (row) => slotOf(row).at && html`<${Since} instant=${slotOf(row).at} />`,
    order: { by: 'at', value: (row) => slotOf(row).at, descends: true },
    width: '10rem',
    isSpare: true,
  },
];

const ask = (key: string, signal: AbortSignal) => call('readOnce', { key }, signal) as Promise<OnceKey>;

/** One key of `once`: who works or has worked for which slot, and the slot that is done, with its result. */
const OnceDetail = (props: DetailProps) => html`<${Drawer} ...${{ ...props, ask, everyMs: POLL_EVERY_MS }}>
  ${(read: OnceKey, answeredAt: number, onChange: () => void) => {
    const { slot, done, result = null, cap } = read;
    const isDone = slotOf(read).state === 'done';
    const lease = { ...read, ...(isDone && { state: 'done' }), waiting: 0, hasRecord: slot !== null };
    return html`
    ${cap && html`<${CapNotice} cap=${cap} />`}
    <${Facts} noun="run" ...${{ lease, answeredAt, onChange }}><dt>Slot</dt><dd class="mono">${slot}</dd><//>
    <h3>Done</h3>
    ${
      done
        ? html`<dl class="facts">
      <dt>Slot</dt><dd class="mono">${done.slot}</dd>
      <dt>By</dt><dd class="mono">${done.by === null ? None('no name') : html`<${Who} holder=${done.by} />`}</dd>
      <dt>When</dt><dd><${At} instant=${done.at} showsZone />, <${Since} instant=${done.at} /></dd>
      <dt>Result kept until</dt><dd><${At} instant=${done.keptUntil} showsZone /></dd>
      <dt>Result</dt><dd class="wide"><pre tabindex="0" aria-label="Result">${JSON.stringify(result, null, 2)}</pre></dd>
    </dl>`
        : html`<p class="quiet">No slot is done, or its result is no longer kept.</p>`
    }`;
  }}
<//>`;

const readKeys = reader<OnceKey>('readOnce', 'keys');

const texts = ({ key, slot, holder, done, cap }: OnceKey) => [
  ...[key, slot, holder],
  ...(done ? [done.slot, done.by] : []),
  cap ? cap.reason : null,
];

/** The tab Once: the keys of `once`, and beside the list the key that is open. */
export function OnceView({ route }: { route: Route }) {
  const { key } = route;
  const polled = usePolled(readKeys, {
    everyMs: POLL_EVERY_MS,
    fingerprint,
  });
  const empty = html`No caller has begun a slot. To do some work once a day:<${First} words="run hello --once-per 1d" work="date" />`;
  return html`<${Split} label="Once" polled=${polled} detail=${key !== undefined && html`<${OnceDetail} key=${key} subject=${key} route=${route} list=${polled} />`}>
    ${({ rows, more }: Listing<OnceKey>) => html`<${List} noun="key" start="state" idOf=${idOf} openId=${key} ...${{ route, rows, more, texts, empty }} columns=${columns(route)} />`}
  <//>`;
}
