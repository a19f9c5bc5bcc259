import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import { useTicking } from './clock.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import { type Polled, shown } from './polling.ts';
import { type Key, type Problem, permissionFor } from './service.ts';
import { clockTime, consoleLink, duration, nameOf, stateText } from './texts.ts';

interface DrainingProps {
  /** How much was left when the service answered, in milliseconds. */
  remainingMs: number;
  /** When the service answered, on the clock of `performance.now()`. */
  answeredAt: number;
  /** The whole time, in milliseconds. */
  wholeMs: number;
  /** The text when nothing is left. */
  over?: string;
}

/** Below this share of the whole time, the bar has the colour of a warning. */
const LOW = 0.25;

/** The time that is left, as a bar that drains and in words. */
export function Draining({ remainingMs, answeredAt, wholeMs, over = 'over' }: DrainingProps) {
  const ref = useTicking<HTMLSpanElement>((element) => {
    const left = Math.max(0, remainingMs - (performance.now() - answeredAt));
    const share = Math.min(1, left / Math.max(1, wholeMs));
    const [bar, words] = element.children as unknown as [HTMLElement, HTMLElement];
    (bar.firstElementChild as HTMLElement).style.transform = `scaleX(${share.toFixed(4)})`;
    const level = left === 0 ? 'over' : share < LOW ? 'low' : 'good';
    if (element.dataset.level !== level) element.dataset.level = level;
    // During an outage, a heartbeat may have extended the time without this page noticing.
    const text = left > 0 ? duration(left) : document.body.classList.contains('stale') ? 'not known' : over;
    if (words.textContent !== text) words.textContent = text;
  });
  return html`<span class="draining" ref=${ref}><span class="bar" aria-hidden="true"><span></span></span><span class="words"></span></span>`;
}

/** The time that is left of a lease. The whole bar is its ttl. */
export function TimeLeft({
  lease,
  answeredAt,
}: {
  lease: Pick<Key, 'state' | 'remainingMs' | 'ttlSeconds' | 'expiresAt'> & { bound?: boolean };
  answeredAt: number;
}) {
  const { state, bound, remainingMs, ttlSeconds, expiresAt } = lease;
  if (state === 'expired' && expiresAt) return html`<span class="quiet">ended <${Since} instant=${expiresAt} /></span>`;
  if (bound && state === 'held') return html`<span class="quiet">until its execution ends</span>`;
  if (remainingMs === null) return state === 'held' ? None('without end') : null;
  return html`<${Draining} remainingMs=${remainingMs} answeredAt=${answeredAt} wholeMs=${ttlSeconds === null ? remainingMs : ttlSeconds * 1000} over="expired" />`;
}

/** A text about a time that changes each second. @param words the text for the milliseconds since that time, which may be negative */
export function Counting({ instant, words }: { instant: string; words(ms: number): string }) {
  const ref = useTicking<HTMLTimeElement>((element) => {
    element.textContent = words(Date.now() - Date.parse(instant));
  });
  return html`<time ref=${ref} datetime=${instant} title=${clockTime(instant, { showsZone: true })}></time>`;
}

const ago = (ms: number): string => `${duration(ms)} ago`;

/** How long ago something was. @param instant ISO 8601 */
export const Since = ({ instant }: { instant: string }) => html`<${Counting} instant=${instant} words=${ago} />`;

/** A time. @param instant ISO 8601 @param showsZone true to show the time zone */
export const At = ({ instant, showsZone = false }: { instant: string; showsZone?: boolean }) =>
  html`<time datetime=${instant} title=${instant}>${clockTime(instant, { showsZone })}</time>`;

/** The page always shows this many characters at the end of a long text, because two keys often differ only there. */
const TAIL = 12;

/** A key in one line. If the line is too short, the middle is left out. The tooltip shows the whole key. */
export function Ends({ text }: { text: string }) {
  const letters = [...text];
  if (letters.length <= 2 * TAIL) return html`<span class="ends" title=${text}><span>${text}</span></span>`;
  const tail = letters.splice(-TAIL);
  return html`<span class="unseen">${text}</span><span class="ends" aria-hidden="true" title=${text}><span>${letters.join('')}</span><span>${tail.join('')}</span></span>`;
}

/** How full a key is, as a bar and in words. */
export function Fullness({ row: { used, limit }, words }: { row: Pick<Key, 'used' | 'limit'>; words: string }) {
  const bar = limit !== null && { transform: `scaleX(${Math.min(1, used / limit)})` };
  return html`<span class="draining">${bar && html`<span class="bar used" aria-hidden="true"><span style=${bar}></span></span>`}<span>${words}</span></span>`;
}

/** A text that may be long: at most two lines of it, with the whole text as a tooltip. */
export const Cut = ({ text }: { text: string }) => html`<span class="cut" title=${text}>${text}</span>`;

/** The name of a holder or a waiter. The tooltip shows the whole name. */
export const Who = ({ holder }: { holder: string }) => html`<span class="who" title=${holder}>${nameOf(holder)}</span>`;

/** When a grant was broken, and by whom. */
export const BrokenBy = ({ at, by }: { at: string; by: string | null | undefined }) =>
  html`<${At} instant=${at} showsZone />${' by '}<${Operator} by=${by} />`;

export const Operator = ({ by }: { by: string | null | undefined }) =>
  by ? html`<span class="mono">${by}</span>` : None('an unknown operator');

export function State({ row }: { row: { state: string; ending: boolean } }) {
  const shown = stateText(row);
  return html`<span class="state ${shown}">${shown}</span>`;
}

/** An execution, with a link to its page in the AWS console, if there is one. */
export function Execution({ arn }: { arn: string | null }) {
  const { settings } = useContext(Page);
  if (arn === null) return None('none');
  const name = arn.split(':').slice(6).join(' / ') || arn;
  const link = settings?.local ? undefined : consoleLink(arn);
  if (!link) return html`<span class="mono" title=${arn}>${name}</span>`;
  return html`<a class="mono" href=${link} title=${arn} target="_blank" rel="noopener noreferrer">${name}<span class="out" aria-hidden="true"> ↗</span><span class="unseen"> (opens the AWS console)</span></a>`;
}

/** Shows how old the last answer is. During an outage the page turns grey, because what it shows may have changed. */
export function Age() {
  const ref = useTicking<HTMLSpanElement>((element) => {
    const { data, answeredAt, problem } = shown.polled ?? {};
    document.body.classList.toggle('stale', problem !== undefined);
    element.textContent = data === undefined ? '' : `updated ${ago(performance.now() - (answeredAt ?? 0))}`;
  });
  return html`<span class="age" ref=${ref}></span>`;
}

/** Says why a list is missing or not up to date. */
export function Trouble({ polled }: { polled: Polled<unknown> }) {
  const { data, problem, nextAt } = polled;
  shown.polled = polled;
  const ref = useTicking<HTMLSpanElement>((element) => {
    element.textContent = duration(nextAt - performance.now());
  });
  if (!problem) return null;
  return html`<div class="notice trouble">
    <div role="alert"><strong><${ProblemTitle} problem=${problem} /></strong> <${ProblemDetail} problem=${problem} />${data !== undefined && ' The page shows the last answer.'}</div>
    <p>Next try in <span ref=${ref}></span>.</p>
  </div>`;
}

function ProblemTitle({ problem: { status, code } }: { problem: Problem }) {
  if (status === 401) return html`No valid token`;
  if (status === 403) return html`This is not allowed`;
  if (status === 0) return html`No answer`;
  return html`${code ?? `Status ${status}`}`;
}

/** Says what went wrong, and which permission is missing, if one is. */
export function ProblemDetail({ problem }: { problem: Problem }) {
  const known = useContext(Page);
  const { status, operation, message } = problem;
  if (status === 401) return html`${message}${' '}Open the address that <code>holdfast console</code> printed.`;
  if (status === 403 && operation)
    return html`The answer was: ${message}. The call needs <code>${permissionFor(operation, known)}</code>.`;
  return html`${message}`;
}

interface LoadedProps<T> {
  polled: Polled<T>;
  /** True if the page already says why there is no answer. */
  isProblemShown?: boolean;
  children: (data: T, answeredAt: number) => ComponentChildren;
}

/** Shows the data of a poll, or why there is none yet. */
export function Loaded<T>({ polled, isProblemShown = false, children }: LoadedProps<T>) {
  const { data, answeredAt, problem } = polled;
  return html`
    ${!isProblemShown && html`<${Trouble} polled=${polled} />`}
    ${data === undefined ? !problem && html`<p class="quiet" role="status">Reading…</p>` : children(data, answeredAt)}
  `;
}

/** A quiet text in place of a missing value. */
export const None = (words: string) => html`<span class="none">${words}</span>`;

export const Nothing = ({ children }: { children: ComponentChildren }) => html`<p class="nothing">${children}</p>`;

/** For an empty list: a command that adds its first row. @param words the arguments of `holdfast` @param work the command that it runs */
export function First({ words, work }: { words: string; work?: string }) {
  const { settings } = useContext(Page);
  if (!settings) return null;
  const { endpoint, namespace } = settings;
  return html`<br /><code>npx holdfast ${words} --endpoint ${endpoint}${namespace && ` --namespace ${namespace}`}${work && ` -- ${work}`}</code>`;
}
