import { useContext, useMemo, useState } from 'preact/hooks';
import { BreakDialog } from './acts.ts';
import { Page, refusalOf } from './context.ts';
import { html } from './html.ts';
import { At, Draining, State } from './parts.ts';
import { usePolled } from './polling.ts';
import { call, type Pool } from './service.ts';

const EVERY_MS = 2000;

interface PermitsProps {
  leaseKey: string;
  /** Called after something was changed here. */
  onChange(): void;
}

/** Who is in the pool of that name, where there is one: from its name nobody can tell what a key is used for. */
export function Permits({ leaseKey, onChange }: PermitsProps) {
  const context = useContext(Page);
  const [breaking, setBreaking] = useState<Pool['holders'][number]>();
  const ask = useMemo(
    () => (signal: AbortSignal) => call('readLeases', { key: leaseKey, pool: true }, signal) as Promise<Pool>,
    [leaseKey],
  );
  const { data, at, refresh } = usePolled(ask, { everyMs: EVERY_MS });
  const refusal = refusalOf(context, 'breakLease');
  const now = data?.holders.find(({ fence }) => fence === breaking?.fence);
  return html`
    ${
      !!data?.holders.length &&
      html`<h3>Permits</h3>
        <p>${data.used} of ${data.limit ?? 'any number'} in use.</p>
        <ol class="queue">${data.holders.map((permit) => {
          const { holder, mode, weight, fence, acquiredAt, remainingMs, ttlSeconds, ending } = permit;
          return html`<li key=${fence}>
            <span class="place">${mode === 'shared' && weight}</span>
            <div>
              <span class="mono who">${holder}</span>
              ${ending && html`<${State} of=${permit} />`}
              <span class="quiet">${mode}, fence ${fence}, since <${At} instant=${acquiredAt} /></span>
              <${Draining} remainingMs=${remainingMs} at=${at} wholeMs=${ttlSeconds * 1000} over="expired" />
            </div>
            <button type="button" disabled=${refusal !== undefined} onClick=${() => setBreaking(permit)}>Break…<span class="unseen"> the permit of ${holder}</span></button>
          </li>`;
        })}</ol>
        ${refusal && html`<p class="why">${refusal}</p>`}`
    }
    ${
      breaking &&
      html`<${BreakDialog} noun="permit" held=${{ ...breaking, ...now, key: leaseKey, waiting: data?.waiting ?? 0 }} at=${at} onClose=${() => setBreaking(undefined)} onDone=${() => {
        setBreaking(undefined);
        refresh();
        onChange();
      }} />`
    }
  `;
}
