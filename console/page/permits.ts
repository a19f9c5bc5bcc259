import { useMemo } from 'preact/hooks';
import { html } from './html.ts';
import { At, Draining } from './parts.ts';
import { usePolled } from './polling.ts';
import { call, type Pool } from './service.ts';

const EVERY_MS = 2000;

/** Who is in the pool of that name, where there is one: from its name nobody can tell what a key is used for. */
export function Permits({ leaseKey }: { leaseKey: string }) {
  const ask = useMemo(
    () => (signal: AbortSignal) => call('readLeases', { key: leaseKey, pool: true }, signal) as Promise<Pool>,
    [leaseKey],
  );
  const { data, at } = usePolled(ask, { everyMs: EVERY_MS });
  if (!data?.holders.length) return null;
  return html`<h3>Permits</h3>
    <p>${data.used} of ${data.limit ?? 'any number'} in use.</p>
    <ol class="queue">${data.holders.map(
      ({ holder, mode, weight, fence, acquiredAt, remainingMs, ttlSeconds }) => html`<li key=${fence}>
        <span class="place">${mode === 'shared' && weight}</span>
        <div>
          <span class="mono who">${holder}</span>
          <span class="quiet">${mode}, fence ${fence}, since <${At} instant=${acquiredAt} /></span>
          <${Draining} remainingMs=${remainingMs} at=${at} wholeMs=${ttlSeconds * 1000} over="expired" />
        </div>
      </li>`,
    )}</ol>`;
}
