import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import { useTicking } from './clock.ts';
import { Page } from './context.ts';
import { html } from './html.ts';
import type { Polled } from './polling.ts';
import { type Key, type Problem, permissionFor } from './service.ts';
import { clockTime, consoleLink, duration, nameOf, stateText } from './words.ts';

/** What is left of a time, as a bar that drains and in words. */
interface DrainingProps {
  /** What was left when the service answered, in milliseconds. */
  remainingMs: number;
  /** When it answered, on the clock of `performance.now()`. */
  at: number;
  /** The whole time, in milliseconds. */
  wholeMs: number;
  /** What is written when nothing is left. */
  over?: string;
}

/** Below this share of the whole, the bar warns. */
const LOW = 0.25;

export function Draining({ remainingMs, at, wholeMs, over = 'over' }: DrainingProps) {
  const ref = useTicking<HTMLSpanElement>((element) => {
    const left = Math.max(0, remainingMs - (performance.now() - at));
    const share = Math.min(1, left / Math.max(1, wholeMs));
    const [bar, words] = element.children as unknown as [HTMLElement, HTMLElement];
    (bar.firstElementChild as HTMLElement).style.transform = `scaleX(${share.toFixed(4)})`;
    const level = left === 0 ? 'over' : share < LOW ? 'low' : 'good';
    if (element.dataset.level !== level) element.dataset.level = level;
    const text = left === 0 ? over : duration(left);
    if (words.textContent !== text) words.textContent = text;
  });
  return html`<span class="draining" ref=${ref}><span class="bar" aria-hidden="true"><span></span></span><span class="words"></span></span>`;
}

/** What is left of a lease of the whole that a heartbeat gives. */
export function TimeLeft({
  lease,
  at,
}: {
  lease: Pick<Key, 'state' | 'bound' | 'remainingMs' | 'ttlSeconds'>;
  at: number;
}) {
  const { state, bound, remainingMs, ttlSeconds } = lease;
  if (bound && state === 'held') return html`<span class="quiet">until its execution ends</span>`;
  if (remainingMs === null) return state === 'held' ? None('without end') : null;
  return html`<${Draining} remainingMs=${remainingMs} at=${at} wholeMs=${ttlSeconds === null ? remainingMs : ttlSeconds * 1000} over="expired" />`;
}

/** How long ago something was, counting on. @param instant ISO 8601 */
export function Since({ instant }: { instant: string }) {
  const ref = useTicking<HTMLTimeElement>((element) => {
    element.textContent = `${duration(Date.now() - Date.parse(instant))} ago`;
  });
  return html`<time ref=${ref} datetime=${instant} title=${clockTime(instant, { names: true })}></time>`;
}

/** How long a wait has taken, counting on. @param instant when it began, ISO 8601 */
export function Waited({ instant }: { instant: string }) {
  const ref = useTicking<HTMLTimeElement>((element) => {
    element.textContent = `has waited ${duration(Date.now() - Date.parse(instant))}`;
  });
  return html`<time ref=${ref} datetime=${instant} title=${clockTime(instant, { names: true })}></time>`;
}

/** That a caller sleeps between two calls, and when it is due. @param dueAt ISO 8601 */
export function Asleep({ dueAt }: { dueAt: string }) {
  const ref = useTicking<HTMLTimeElement>((element) => {
    const ms = Date.parse(dueAt) - Date.now();
    element.textContent = `asleep, due ${ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`}`;
  });
  return html`<time ref=${ref} datetime=${dueAt} title=${clockTime(dueAt, { names: true })}></time>`;
}

/** An instant. @param instant ISO 8601 @param names whether to name the zone */
export const At = ({ instant, names = false }: { instant: string; names?: boolean }) =>
  html`<time datetime=${instant} title=${instant}>${clockTime(instant, { names })}</time>`;

/** A text of a caller that may be long: at most two lines of it, and all of it as a tooltip. */
export const Cut = ({ text }: { text: string }) => html`<span class="cut" title=${text}>${text}</span>`;

/** Who holds or waits. The tooltip has the whole name. */
export const Who = ({ holder }: { holder: string }) => html`<span class="who" title=${holder}>${nameOf(holder)}</span>`;

/** When a grant was broken, and by whom if the record says so. */
export const BrokenBy = ({ at, by }: { at: string; by: string | null | undefined }) =>
  html`<${At} instant=${at} names />${' by '}<${Operator} by=${by} />`;

export const Operator = ({ by }: { by: string | null | undefined }) =>
  by ? html`<span class="mono">${by}</span>` : None('an unknown operator');

export function State({ of }: { of: { state: string; ending: boolean } }) {
  const shown = stateText(of);
  return html`<span class="state ${shown}">${shown}</span>`;
}

/** An execution, linked to its page in the console of AWS if there is one. */
export function Execution({ arn }: { arn: string | null }) {
  const { settings } = useContext(Page);
  if (arn === null) return None('none');
  const name = arn.split(':').slice(6).join(' / ') || arn;
  const link = settings?.local ? undefined : consoleLink(arn);
  if (!link) return html`<span class="mono" title=${arn}>${name}</span>`;
  return html`<a class="mono" href=${link} title=${arn} target="_blank" rel="noopener noreferrer">${name}<span class="out" aria-hidden="true"> ↗</span><span class="unseen"> (opens the AWS console)</span></a>`;
}

/** Why a list is not there, or not up to date. */
export function Trouble({ polled: { data, problem, nextAt } }: { polled: Polled<unknown> }) {
  const ref = useTicking<HTMLSpanElement>((element) => {
    element.textContent = duration(nextAt - performance.now());
  });
  if (!problem) return null;
  return html`<div class="notice trouble" role="alert">
    <strong><${ProblemTitle} problem=${problem} /></strong>
    <p><${ProblemDetail} problem=${problem} /> Next try in <span ref=${ref}></span>.${data !== undefined && ' What is shown is the last answer.'}</p>
  </div>`;
}

function ProblemTitle({ problem: { status, code } }: { problem: Problem }) {
  if (status === 401) return html`No valid token`;
  if (status === 403) return html`This is not allowed`;
  if (status === 0) return html`No answer`;
  return html`${code ?? `Status ${status}`}`;
}

/** What went wrong, and what is missing if it is a permission. */
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
  /** Whether the page says already why there is no answer. */
  isSaid?: boolean;
  children: (data: T, at: number) => ComponentChildren;
}

/** A list with what must be said of it before it is there. */
export function Loaded<T>({ polled, isSaid = false, children }: LoadedProps<T>) {
  const { data, at, problem } = polled;
  return html`
    ${!isSaid && html`<${Trouble} polled=${polled} />`}
    ${data === undefined ? !problem && html`<p class="quiet" role="status">Reading…</p>` : children(data, at)}
  `;
}

/** Stands for what is not there. */
export const None = (words: string) => html`<span class="none">${words}</span>`;

export const Nothing = ({ children }: { children: ComponentChildren }) => html`<p class="nothing">${children}</p>`;
