import type { ComponentChildren } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { kindField, listOf } from './act-dialogs.ts';
import { Page, refusalOf } from './context.ts';
import { Confirm } from './dialog.ts';
import { html } from './html.ts';
import { At, Cut, Operator, Since } from './parts.ts';
import { type Cap, call, type Granted } from './service.ts';
import { capText, counted } from './texts.ts';

/** Shows that an operator has capped or paused something. The tooltip says who, why, and until when. */
export function CapBadge({ cap }: { cap: Cap | undefined }) {
  if (!cap) return null;
  const word = cap.limit === 0 ? 'paused' : 'capped';
  return html`<span class="state ${word}" title=${`${cap.reason}, ${capText(cap)}`}>${word}</span>`;
}

/** Shows what the cap of a key does, who set it, why, and until when. */
export function CapNotice({ cap }: { cap: Cap }) {
  const { limit, reason, by, since, until } = cap;
  return html`<div class="notice">
    <p><${CapBadge} cap=${cap} /> <strong>${limit === 0 ? 'No caller gets a grant.' : `At most ${limit} in use, whatever limit callers name.`}</strong></p>
    <dl class="facts">
      <dt>Reason</dt><dd><${Cut} text=${reason} /></dd>
      <dt>By</dt><dd><${Operator} by=${by} /></dd>
      <dt>Since</dt><dd><${At} instant=${since} showsZone />, <${Since} instant=${since} /></dd>
      <dt>Until</dt><dd>${until ? html`<${At} instant=${until} showsZone />` : 'an operator lifts it'}</dd>
    </dl>
  </div>`;
}

interface ActsProps {
  read: Granted;
  noun?: 'lease' | 'run';
  /** The reason why the reader may not do the other acts. */
  refusal?: string | undefined;
  /** The other acts. */
  children?: ComponentChildren;
  onChange(): void;
}

/** The buttons of a key: acts on its holder, and the cap. */
export function Acts({ read, noun = 'lease', refusal, children, onChange }: ActsProps) {
  const context = useContext(Page);
  const [asking, setAsking] = useState<'cap' | 'lift'>();
  const why = refusal ?? refusalOf(context, 'capKey');
  const button = (act: 'cap' | 'lift', words: string) =>
    html`<button type="button" disabled=${why !== undefined} aria-describedby=${why && 'refusal'} onClick=${() => setAsking(act)}>${words}</button>`;
  return html`<div class="acts">
    ${children}${button('cap', noun === 'run' ? 'Pause…' : 'Cap…')}${read.cap && button('lift', 'Lift…')}
    ${why && html`<span id="refusal" class="why">${why}</span>`}
    ${
      asking &&
      html`<${CapDialog} ...${{ read, noun }} lifts=${asking === 'lift'} onClose=${() => setAsking(undefined)} onDone=${() => {
        setAsking(undefined);
        onChange();
      }} />`
    }
  </div>`;
}

interface CapProps {
  read: Granted;
  noun: 'lease' | 'run';
  lifts: boolean;
  onClose(): void;
  onDone(): void;
}

/** How long a cap can last, in seconds. The service allows at most 31 days. */
const TIMES: [number, string][] = [
  [0, 'until it is lifted'],
  [900, '15 minutes'],
  [3600, 'an hour'],
  [14_400, '4 hours'],
  [86_400, 'a day'],
  [604_800, 'a week'],
  [2_678_400, '31 days'],
];

/** Asks how much may be in use, why and for how long. With `lifts`, asks whether to lift the cap. */
function CapDialog({ read: { key, cap, waiting }, noun: subject, lifts, onClose, onDone }: CapProps) {
  const { noticedChanges, announce } = useContext(Page);
  const [limit, setLimit] = useState(String(cap?.limit ?? 0));
  const [reason, setReason] = useState(cap?.reason ?? '');
  const [seconds, setSeconds] = useState(0);
  const isPause = Number(limit) === 0;
  const noun = isPause ? 'pause' : 'cap';
  const act = async () => {
    const terms = { limit: Number(limit), reason, ...(seconds > 0 && { forSeconds: seconds }) };
    await call('capKey', { key, ...(lifts ? { limit: null } : terms), ...kindField(subject) });
    const did = lifts ? `lifted the ${noun}` : isPause ? 'paused it' : `capped it at ${limit}`;
    noticedChanges.did(listOf(subject), { subject: key, what: `this page ${did}` }, Date.now());
    announce(lifts ? `The ${noun} of ${key} is lifted.` : `${key} is ${isPause ? 'paused' : `capped at ${limit}`}.`);
    onDone();
  };
  const inLine = waiting > 0 && html`<dt>In line</dt><dd>${counted(waiting, 'waiter')}</dd>`;
  const about = html`<dl class="facts"><dt>Key</dt><dd class="mono"><${Cut} text=${key} /></dd>${inLine}</dl>`;
  if (lifts)
    return html`<${Confirm} title=${`Lift the ${noun}?`} act=${`Lift the ${noun}`} onAct=${act} onClose=${onClose}>
      ${about}<p>Waiters that now fit are served at once.</p>
    <//>`;
  const textOf = (event: Event) => (event.currentTarget as HTMLInputElement).value;
  return html`<${Confirm} title=${subject === 'run' ? 'Pause the slots of this key?' : 'Cap or pause this key?'} act=${isPause ? 'Pause the key' : 'Cap the key'} onAct=${act} onClose=${onClose}>
    ${about}
    ${
      subject === 'lease' &&
      html`<label class="field">At most in use
      <input type="number" min="0" max="200" required autofocus aria-describedby="cap-means" value=${limit} onInput=${(event: Event) => setLimit(textOf(event))} />
    </label>
    <p id="cap-means" class="why">${isPause ? '0 pauses the key: no caller gets a grant, or a start at its rates.' : 'A request that weighs more than the cap is granted alone. 0 pauses the key.'}</p>`
    }
    <p class="why">Holders keep their grants, and the line keeps its order.</p>
    <label class="field">Reason, for callers that the cap keeps out
      <input type="text" maxlength="256" required autocomplete="off" value=${reason} onInput=${(event: Event) => setReason(textOf(event))} />
    </label>
    <label class="field">How long
      <select onChange=${(event: Event) => setSeconds(Number(textOf(event)))}>
        ${TIMES.map(([value, words]) => html`<option value=${value} selected=${value === seconds}>${words}</option>`)}
      </select>
    </label>
  <//>`;
}
