import type { ComponentChildren } from 'preact';
import { useContext, useEffect, useMemo } from 'preact/hooks';
import { Page } from './context.ts';
import { html } from './html.ts';
import { Cut, Ends, Loaded, Trouble } from './parts.ts';
import { type Polled, usePolled } from './polling.ts';
import { linkTo, type Route } from './route.ts';
import { clockTime } from './texts.ts';

/** A link that opens a key beside the list. */
export function KeyLink({ name, route }: { name: string; route: Route }) {
  const isOpen = route.key === name;
  return html`<a class="mono" data-row href=${linkTo({ ...route, key: name })} aria-current=${isOpen ? 'true' : undefined}><${Ends} text=${name} /></a>`;
}

interface SplitProps<T> {
  label: string;
  polled: Polled<T>;
  /** The key that is open, if any. */
  detail: ComponentChildren;
  children: (data: T, answeredAt: number) => ComponentChildren;
}

/** A list of keys, with the open key beside it. */
export const Split = <T>({ label, polled, detail, children }: SplitProps<T>) => html`<${Trouble} polled=${polled} />
  <div class="split ${detail ? 'open' : ''}">
    <section class="list" aria-label=${label}><${Loaded} polled=${polled} isProblemShown>${children}<//></section>
    ${detail}
  </div>`;

/** In characters: a longer key may not fit into the two lines of the heading. */
const LONG_KEY = 60;

export interface DetailProps {
  /** The key. */
  subject: string;
  route: Route;
  /** The list beside it. */
  list: Pick<Polled<unknown>, 'problem' | 'refresh'>;
}

interface DrawerProps<T> extends DetailProps {
  /** Reads the key. */
  ask(key: string, signal: AbortSignal): Promise<T>;
  everyMs: number;
  children: (read: T, answeredAt: number, onChange: () => void) => ComponentChildren;
}

/** A text that changes with a key, but not with the time that is left, which changes in each answer. */
export const fingerprint = (key: unknown): string =>
  JSON.stringify(key, (name, value) => (name === 'remainingMs' ? undefined : value));

/** The key that is open beside the list, with the changes of it that the page has noticed. One call reads all of it. */
export function Drawer<T>({ subject, route, list, ask, everyMs, children }: DrawerProps<T>) {
  const read = useMemo(() => (signal: AbortSignal) => ask(subject, signal), [subject]);
  const polled = usePolled(read, { everyMs, fingerprint });
  const changed = () => {
    polled.refresh();
    list.refresh();
  };
  // The list and the key are polled separately. When one of them is answered after an outage, the other is asked at once.
  const [isOut, isListOut] = [polled.problem !== undefined, list.problem !== undefined];
  useEffect(() => {
    if (isOut && !isListOut) polled.refresh();
    if (isListOut && !isOut) list.refresh();
  }, [isOut, isListOut]);
  return html`<section class="detail" aria-labelledby="detail-title">
    <header>
      <h2 id="detail-title" class="mono" tabindex="-1"><${Cut} text=${subject} /></h2>
      <a class="button close" href=${linkTo({ ...route, key: undefined })} data-close aria-label="Close this key">Close</a>
    </header>
    ${subject.length > LONG_KEY && html`<details><summary>The whole key</summary><p class="mono">${subject}</p></details>`}
    <${Loaded} polled=${polled} isProblemShown=${isListOut}>${(read: T, answeredAt: number) => children(read, answeredAt, changed)}<//>
    <${Seen} list=${route.view} subject=${subject} />
  </section>`;
}

function Seen({ list, subject }: { list: string; subject: string }) {
  const { noticedChanges } = useContext(Page);
  const seen = noticedChanges.changes
    .filter((change) => change.list === list && change.subject === subject)
    .slice(0, 20);
  if (seen.length === 0) return null;
  return html`<h3>Seen here</h3>
    <ul class="seen">${seen.map(({ at, what }) => html`<li><time>${clockTime(at)}</time> ${what}</li>`)}</ul>`;
}
