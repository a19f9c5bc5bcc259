import { useContext } from 'preact/hooks';
import { Page } from './context.ts';
import { Confirm } from './dialog.ts';
import { html } from './html.ts';
import { At } from './parts.ts';
import { call, type LeaseWithQueue, Problem, type Waiter } from './service.ts';
import { counted } from './words.ts';

interface BreakProps {
  noun: 'lease' | 'permit';
  held: Pick<LeaseWithQueue, 'key' | 'holder' | 'fence' | 'acquiredAt' | 'waiting'>;
  onClose(): void;
  onDone(): void;
}

/** Asks before it ends a lease or a permit, and names whom it hits. The fence in the call keeps it from hitting anyone else. */
export function BreakDialog({ noun, held, onClose, onDone }: BreakProps) {
  const { key, holder, fence, acquiredAt, waiting } = held;
  const { history, announce } = useContext(Page);
  const isPermit = noun === 'permit';
  const who = holder ?? 'a client that leaves no name';
  const act = async () => {
    try {
      await call('breakLease', { key, fence: fence ?? 0, ...(isPermit && { pool: true }) });
    } catch (error) {
      if (error instanceof Problem && error.code === 'Conflict')
        throw new Problem(
          'The lease has changed hands since you looked, so nothing was broken. Close this and look again.',
          {},
        );
      if (error instanceof Problem && error.code === 'NotFound')
        throw new Problem(`Nobody holds the ${noun} any more, so there is nothing to break.`, {});
      throw error;
    }
    history.did('leases', { subject: key, what: `this page broke the ${noun} of ${who}, fence ${fence}` }, Date.now());
    announce(`The ${noun} ${key} of ${who} is broken.`);
    onDone();
  };
  return html`<${Confirm} title=${`Break this ${noun}?`} act=${`Break the ${noun}`} onAct=${act} onClose=${onClose}>
    <dl class="facts">
      <dt>${isPermit ? 'Pool' : 'Lease'}</dt><dd class="mono">${key}</dd>
      <dt>Holder</dt><dd class="mono">${who}</dd>
      <dt>Fence</dt><dd class="mono">${fence}</dd>
      ${acquiredAt && html`<dt>Held since</dt><dd><${At} instant=${acquiredAt} /></dd>`}
    </dl>
    <p>The holder loses the ${noun} at once, and learns of it at its next heartbeat. Until then it may go on working: only a store that checks the fence refuses what it still writes.</p>
    <p>${waiting > 0 ? `${counted(waiting, 'waiter')} in line: the first gets ${isPermit ? 'in, if there is room for it' : 'the lease'}.` : `Nobody waits. The ${noun} is free for the next caller.`}</p>
  <//>`;
}

interface CancelProps {
  leaseKey: string;
  waiter: Waiter;
  onClose(): void;
  onDone(): void;
}

/** Why a ticket was not cancelled. */
const NOT_CANCELLED = {
  granted: 'It has the lease by now, so it was not cancelled.',
  gone: 'It waits no more. The ticket is out of the queue.',
  unknown: 'There is no such ticket any more.',
};

/** What becomes of the one who waits. */
const CANCELLED = {
  task: 'The task fails with LeaseLost, and its execution goes on from there.',
  caller: 'The call that waits is answered with LeaseLost.',
};

/** Asks before it takes a task or a caller out of a queue. */
export function CancelDialog({ leaseKey, waiter: { kind, ticket, holder, parkedAt }, onClose, onDone }: CancelProps) {
  const { history, announce } = useContext(Page);
  const act = async () => {
    const answer = await call('cancelWaiter', { key: leaseKey, ticket });
    const outcome = answer.cancelled ? `${holder} is out of the queue of ${leaseKey}.` : NOT_CANCELLED[answer.reason];
    if (answer.cancelled)
      history.did('leases', { subject: leaseKey, what: `this page took ${holder} out of the queue` }, Date.now());
    announce(outcome);
    onDone();
  };
  return html`<${Confirm} title=${`Take this ${kind} out of the queue?`} act="Take it out" onAct=${act} onClose=${onClose}>
    <dl class="facts">
      <dt>Lease</dt><dd class="mono">${leaseKey}</dd>
      <dt>Who waits</dt><dd class="mono">${holder}</dd>
      <dt>Since</dt><dd><${At} instant=${parkedAt} /></dd>
      <dt>Ticket</dt><dd class="mono">${ticket}</dd>
    </dl>
    <p>${CANCELLED[kind]} The others keep their places.</p>
  <//>`;
}
