import type { ComponentChildren } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { BreakDialog, CancelDialog, RunNextDialog } from './act-dialogs.ts';
import { Acts, CapNotice } from './cap.ts';
import { Page, refusalOf } from './context.ts';
import { type DetailProps, Drawer } from './drawer.ts';
import { html } from './html.ts';
import {
  At,
  BrokenBy,
  Counting,
  Draining,
  Execution,
  None,
  Nothing,
  Operator,
  Since,
  State,
  TimeLeft,
  Who,
} from './parts.ts';
import { Permits } from './permits.ts';
import { call, type Granted, type Key, type Waiter } from './service.ts';
import { counted, duration } from './texts.ts';

const POLL_EVERY_MS = 2000;
const MAX_WAITERS = 100;

const ask = (key: string, signal: AbortSignal) =>
  call('readLeases', { key, waiters: true, limit: MAX_WAITERS }, signal) as Promise<Key>;

/** One key, with its holders and its line. */
export const KeyDetail = (props: DetailProps) => html`<${Drawer} ...${{ ...props, ask, everyMs: POLL_EVERY_MS }}>
  ${(read: Key, answeredAt: number, onChange: () => void) => html`
    ${read.cap && html`<${CapNotice} cap=${read.cap} />`}
    ${
      read.holders.some(({ mode }) => mode === 'shared')
        ? html`<${Permits} ...${{ read, answeredAt, onChange }} />`
        : html`<${Facts} lease=${read} noun="lease" ...${{ answeredAt, onChange }} />`
    }
    <${Line} read=${read} answeredAt=${answeredAt} onChange=${onChange} />
  `}
<//>`;

interface FactsProps {
  lease: Granted & { hasRecord: boolean };
  noun: 'lease' | 'run';
  answeredAt: number;
  onChange(): void;
  /** More facts, which come first. */
  children?: ComponentChildren;
}

/** An exclusive holder, and what the reader can do to it. */
export function Facts({ lease, noun, answeredAt, onChange, children }: FactsProps) {
  const context = useContext(Page);
  const [breaking, setBreaking] = useState<Granted>();
  const { state, ending, holder, fence, acquiredAt, expiresAt, ttlSeconds, execution, data } = lease;
  const refusal = refusalOf(context, 'breakLease');
  if (!lease.hasRecord) return html`<${NoRecord} /><${Acts} read=${lease} ...${{ noun, onChange }} />`;
  const isHeld = state === 'held' || state === 'expired';
  const isBound = lease.bound && state === 'held';
  return html`
    <div class="standing"><${State} row=${lease} /><${TimeLeft} lease=${lease} answeredAt=${answeredAt} /></div>
    <dl class="facts">
      ${children}
      ${state !== 'free' && html`<dt>${isHeld ? 'Holder' : 'Last holder'}</dt><dd class="mono">${holder === null ? None('no name') : html`<${Who} holder=${holder} />`}</dd>`}
      <dt>Fence</dt><dd class="mono">${fence ?? None('none')}</dd>
      ${acquiredAt && html`<dt>${isHeld ? 'Held since' : 'Was granted'}</dt><dd><${At} instant=${acquiredAt} showsZone />, <${Since} instant=${acquiredAt} /></dd>`}
      ${expiresAt && !isBound && html`<dt>${state !== 'held' ? 'Ended' : ending ? 'Ends at the latest' : 'Ends unless extended'}</dt><dd><${At} instant=${expiresAt} showsZone /></dd>`}
      ${lease.brokenAt && html`<dt>Broken</dt><dd><${BrokenBy} at=${lease.brokenAt} by=${lease.brokenBy} /></dd>`}
      ${lease.supersededBy && html`<dt>Superseded by</dt><dd class="mono"><${Who} holder=${lease.supersededBy} /></dd>`}
      ${isHeld && !ending && !isBound && ttlSeconds !== null && html`<dt>Each heartbeat adds</dt><dd>${duration(ttlSeconds * 1000)}</dd>`}
      ${isHeld && html`<dt>Execution</dt><dd><${Execution} arn=${execution} /></dd>`}
      ${lease.previous && html`<dt>Holder before</dt><dd><${Before} previous=${lease.previous} /></dd>`}
      ${data !== null && html`<dt>Data</dt><dd class="wide"><pre tabindex="0" aria-label="Data">${JSON.stringify(data, null, 2)}</pre></dd>`}
    </dl>
    <${Acts} read=${lease} ...${{ noun, refusal, onChange }}>
      ${isHeld && fence !== null && html`<button type="button" class="danger" disabled=${refusal !== undefined} aria-describedby=${refusal && 'refusal'} onClick=${() => setBreaking(lease)}>Break ${noun}…</button>`}
    <//>
    ${
      breaking &&
      html`<${BreakDialog} noun=${noun} held=${fence === breaking.fence ? lease : breaking} answeredAt=${answeredAt} onClose=${() => setBreaking(undefined)} onDone=${() => {
        setBreaking(undefined);
        onChange();
      }} />`
    }
  `;
}

const NoRecord = () => html`
  <div class="standing"><span class="state">no record</span></div>
  <p>No caller has used this key, or the last use was longer ago than the retention of records. Is the key spelt right, and is it of this namespace?</p>
`;

const ENDED = { released: 'released', expired: 'expired', executionEnded: 'its execution ended' };

/** The holder before, and how its grant ended. */
function Before({ previous: { holder, ended, at, by } }: { previous: NonNullable<Key['previous']> }) {
  const how =
    ended === 'broken' || ended === 'superseded'
      ? html`${ended} <${BrokenBy} at=${at} by=${by} />`
      : html`${ENDED[ended]} <${At} instant=${at} showsZone />`;
  return html`<span class="mono"><${Who} holder=${holder} /></span>, ${how}`;
}

function Line({
  read: { key, waiting, waiters = [] },
  answeredAt,
  onChange,
}: {
  read: Key;
  answeredAt: number;
  onChange(): void;
}) {
  const context = useContext(Page);
  const [asking, setAsking] = useState<{ Dialog: typeof RunNextDialog; waiter: Waiter }>();
  const refusal = refusalOf(context, 'cancelWaiter');
  return html`
    <h3>Line</h3>
    ${
      waiting === 0
        ? html`<${Nothing}>The line is empty.<//>`
        : html`<p>${waiting > waiters.length ? `More than ${counted(waiters.length, 'waiter')} in line. The next of them are shown.` : `${counted(waiting, 'waiter')} in line, the next one on top.`}</p>
          <ol class="line">${waiters.map((waiter, index) => html`<${WaiterRow} key=${waiter.ticket} position=${index + 1} waiter=${waiter} answeredAt=${answeredAt} refusal=${refusal} onAct=${(Dialog: typeof RunNextDialog) => setAsking({ Dialog, waiter })} />`)}</ol>
          ${refusal && html`<p class="why">${refusal}</p>`}`
    }
    ${
      asking &&
      html`<${asking.Dialog} leaseKey=${key} waiter=${asking.waiter} onClose=${() => setAsking(undefined)} onDone=${() => {
        setAsking(undefined);
        onChange();
      }} />`
    }
  `;
}

const waited = (ms: number): string => `has waited ${duration(ms)}`;

/** The text about a caller that sleeps between two calls, until it is due. */
const asleep = (ms: number): string => `asleep, due ${ms < 0 ? `in ${duration(-ms)}` : `${duration(ms)} ago`}`;

interface WaiterRowProps {
  position: number;
  waiter: Waiter;
  answeredAt: number;
  refusal: string | undefined;
  onAct(dialog: typeof RunNextDialog): void;
}

function WaiterRow({ position, waiter, answeredAt, refusal, onAct }: WaiterRowProps) {
  const { kind, holder, execution, parkedAt, dueAt, movedBy } = waiter;
  const isMoved = movedBy !== undefined;
  return html`<li>
    <span class="position" aria-hidden="true">${position}</span>
    <div>
      <span class="mono"><${Who} holder=${holder} /></span>
      ${isMoved && html`<span><span class="state waiting">runs next</span> <span class="quiet">moved by <${Operator} by=${movedBy} /></span></span>`}
      <span>${kind}, <${Counting} instant=${parkedAt} words=${waited} /></span>
      <span class="quiet">since <${At} instant=${parkedAt} /></span>
      ${dueAt && html`<${Counting} instant=${dueAt} words=${asleep} />`}
      ${kind !== 'caller' && html`<${Deadline} waiter=${waiter} answeredAt=${answeredAt} />`}
      ${execution && html`<${Execution} arn=${execution} />`}
    </div>
    <div>
      ${!isMoved && html`<button type="button" disabled=${refusal !== undefined} onClick=${() => onAct(RunNextDialog)}>Run next…<span class="unseen"> ${holder}</span></button>`}
      <button type="button" disabled=${refusal !== undefined} onClick=${() => onAct(CancelDialog)}>Cancel…<span class="unseen"> the wait of ${holder}</span></button>
    </div>
  </li>`;
}

/** How long a task still waits. For a caller this is not shown, because its deadline is that of one call, and most callers call again. */
function Deadline({ waiter: { parkedAt, deadline }, answeredAt }: Pick<WaiterRowProps, 'waiter' | 'answeredAt'>) {
  const wholeMs = Date.parse(deadline) - Date.parse(parkedAt);
  // The service does not send how much of a wait is left, so this is by the clock of this machine.
  const remainingMs = Date.parse(deadline) - (Date.now() - (performance.now() - answeredAt));
  return html`<${Draining} remainingMs=${remainingMs} answeredAt=${answeredAt} wholeMs=${wholeMs} over="past its deadline" />
    <span class="quiet">stops waiting <${At} instant=${deadline} /></span>`;
}
