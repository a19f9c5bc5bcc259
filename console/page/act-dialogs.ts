import { useContext, useState } from 'preact/hooks';
import { stopCommand } from '../../deployment/stop-command.ts';
import { Page } from './context.ts';
import { Confirm } from './dialog.ts';
import { html } from './html.ts';
import { At, Cut } from './parts.ts';
import { call, type Key, Problem, type Waiter } from './service.ts';
import { clockTime, counted, duration } from './texts.ts';

type Held = Pick<Key, 'key' | 'holder' | 'fence' | 'acquiredAt' | 'execution' | 'remainingMs' | 'ending' | 'waiting'> &
  Partial<Pick<Key, 'bound'>>;

/** The field that a call needs if it is about a run of `once`. */
export const kindField = (noun: string) => noun === 'run' && { kind: 'once' as const };

/** The list of the page that shows a lease, a permit or a run. */
export const listOf = (noun: string) => (noun === 'run' ? 'once' : 'keys');

interface BreakProps {
  noun: 'lease' | 'permit' | 'run';
  held: Held;
  /** When the service answered, on the clock of `performance.now()`. */
  answeredAt: number;
  onClose(): void;
  onDone(): void;
}

/**
 * Asks before it breaks a lease, a permit or a run, and says who holds it and until when that holder may work. The call carries the fence, so it
 * cannot break the grant of a later holder.
 */
export function BreakDialog({ noun, held, answeredAt, onClose, onDone }: BreakProps) {
  const { key, holder, fence, acquiredAt, waiting, ending } = held;
  const { noticedChanges, announce } = useContext(Page);
  const [isNow, setNow] = useState(ending);
  const who = holder ?? 'a client without a name';
  const act = async () => {
    const wait = !isNow && { wait: true };
    const request = { key, fence: fence ?? 0, ...wait, ...kindField(noun) };
    const { ended, holderUntil } = await call('breakLease', request).catch((error) => {
      throw whyNotBroken(error, noun);
    });
    const what = ended ? `this page broke the ${noun} of ${who}` : `this page asked ${who} to stop`;
    noticedChanges.did(listOf(noun), { subject: key, what: `${what}, fence ${fence}` }, Date.now());
    const until = holderUntil === null ? '' : `, at the latest at ${clockTime(holderUntil)}`;
    announce(`The ${noun} ${key} of ${who} ${ended ? 'is broken' : `ends when the holder stops${until}`}.`);
    onDone();
  };
  const gets = noun === 'permit' ? 'gets a permit, if there is room' : 'gets the lease';
  const stop = held.bound && held.execution ? stopCommand(held.execution) : undefined;
  const next =
    waiting > 0
      ? `${counted(waiting, 'waiter')} in line: the next ${gets}`
      : `The ${noun === 'run' ? 'slot' : 'key'} is free`;
  return html`<${Confirm} title=${`Break this ${noun}?`} act=${isNow ? 'Break it now' : 'End it when the holder stops'} onAct=${act} onClose=${onClose}>
    <dl class="facts">
      <dt>Key</dt><dd class="mono"><${Cut} text=${key} /></dd>
      <dt>Holder</dt><dd class="mono">${who}</dd>
      <dt>Fence</dt><dd class="mono">${fence}</dd>
      ${acquiredAt && html`<dt>Held since</dt><dd><${At} instant=${acquiredAt} /></dd>`}
    </dl>
    <fieldset><legend>When</legend>
      <label><input type="radio" name="when" checked=${!isNow} disabled=${ending} onChange=${() => setNow(false)} /> When the holder stops</label>
      <label><input type="radio" name="when" checked=${isNow} onChange=${() => setNow(true)} /> Now</label>
    </fieldset>
    ${
      isNow
        ? html`<p>The holder may work on ${remainingText(held, answeredAt)}, beside the next holder: only a store that checks the fence refuses what the former holder still writes. ${next} at once.</p>`
        : html`<p>The holder stops at its next heartbeat, and releases the ${noun}. If no heartbeat comes, the holder may work on ${remainingText(held, answeredAt)}. ${next} then.</p>`
    }
    ${stop && html`<p>To stop its execution: <code>${stop}</code></p>`}
  <//>`;
}

/** How long the holder may work at most. No heartbeat extends a lease that is broken. */
function remainingText({ bound, remainingMs }: Held, answeredAt: number): string {
  if (bound) return 'as long as its execution runs';
  return remainingMs === null
    ? 'for an unknown time'
    : `for up to ${duration(remainingMs - (performance.now() - answeredAt))}`;
}

function whyNotBroken(error: unknown, noun: string): unknown {
  const code = error instanceof Problem ? error.code : undefined;
  if (code === 'Conflict')
    return new Problem(
      `The ${noun} has changed hands since you opened this, so nothing was broken. Close this dialog to see the current holder.`,
      {},
    );
  if (code === 'NotFound') return new Problem(`The ${noun} is no longer held, so there is nothing to break.`, {});
  return error;
}

interface WaiterProps {
  leaseKey: string;
  waiter: Waiter;
  onClose(): void;
  onDone(): void;
}

/** The reason why an act on a waiter had no effect. */
const NOT_IN_LINE = {
  granted: 'The waiter already has its grant.',
  gone: 'The waiter had left the line already.',
  unknown: 'No waiter has that ticket.',
};

/** What happens to a waiter that is cancelled. */
const CANCELLED = {
  task: 'The task fails with LeaseLost, and its execution continues from there.',
  callback: 'The callback fails with LeaseLost, and its durable function continues from there.',
  caller: 'The call that waits is answered with LeaseLost.',
};

const About = ({ leaseKey, waiter: { ticket, holder, parkedAt } }: Pick<WaiterProps, 'leaseKey' | 'waiter'>) =>
  html`<dl class="facts">
    <dt>Key</dt><dd class="mono"><${Cut} text=${leaseKey} /></dd>
    <dt>Who waits</dt><dd class="mono">${holder}</dd>
    <dt>Since</dt><dd><${At} instant=${parkedAt} /></dd>
    <dt>Ticket</dt><dd class="mono">${ticket}</dd>
  </dl>`;

/** Asks before it takes a waiter out of the line. */
export function CancelDialog({ leaseKey, waiter, onClose, onDone }: WaiterProps) {
  const { kind, ticket, holder } = waiter;
  const { noticedChanges, announce } = useContext(Page);
  const act = async () => {
    const answer = await call('cancelWaiter', { key: leaseKey, ticket });
    const outcome = answer.cancelled ? `${holder} is out of the line of ${leaseKey}.` : NOT_IN_LINE[answer.reason];
    if (answer.cancelled)
      noticedChanges.did('keys', { subject: leaseKey, what: `this page took ${holder} out of the line` }, Date.now());
    announce(outcome);
    onDone();
  };
  return html`<${Confirm} title=${`Take this ${kind} out of the line?`} act="Take it out" onAct=${act} onClose=${onClose}>
    <${About} leaseKey=${leaseKey} waiter=${waiter} />
    <p>${CANCELLED[kind]} The others keep their positions.</p>
  <//>`;
}

/** Asks before it makes a waiter next. */
export function RunNextDialog({ leaseKey, waiter, onClose, onDone }: WaiterProps) {
  const { ticket, holder, dueAt } = waiter;
  const { noticedChanges, announce } = useContext(Page);
  const act = async () => {
    const answer = await call('runNext', { key: leaseKey, ticket });
    if (answer.moved)
      noticedChanges.did('keys', { subject: leaseKey, what: `this page made ${holder} next` }, Date.now());
    announce(answer.moved ? `${holder} is next in the line of ${leaseKey}.` : NOT_IN_LINE[answer.reason]);
    onDone();
  };
  return html`<${Confirm} title="Run this waiter next?" act="Run it next" onAct=${act} onClose=${onClose}>
    <${About} leaseKey=${leaseKey} waiter=${waiter} />
    <p>The next grant is for this waiter. Holders keep their grants, and the others keep their order behind it. A waiter that was moved before goes back to its position.</p>
    ${dueAt && html`<p>The waiter sleeps until ${clockTime(dueAt)} at the latest. No other waiter is served before.</p>`}
  <//>`;
}
