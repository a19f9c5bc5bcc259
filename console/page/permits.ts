import { useContext, useState } from 'preact/hooks';
import { BreakDialog } from './act-dialogs.ts';
import { Acts } from './cap.ts';
import { Page, refusalOf } from './context.ts';
import { html } from './html.ts';
import { At, BrokenBy, Fullness, None, Since, State, TimeLeft, Who } from './parts.ts';
import type { Key } from './service.ts';
import { usedText } from './texts.ts';

interface PermitsProps {
  read: Key;
  answeredAt: number;
  /** Called after the reader has changed something. */
  onChange(): void;
}

/** How much of a key is in use, and its holders, each with a button to break the permit. */
export function Permits({ read, answeredAt, onChange }: PermitsProps) {
  const context = useContext(Page);
  const [breaking, setBreaking] = useState<Key['holders'][number]>();
  const { key, holders, limitBy, waiting, cap } = read;
  const refusal = refusalOf(context, 'breakLease');
  const now = holders.find(({ fence }) => fence === breaking?.fence);
  return html`
    <div class="standing"><${State} row=${{ ...read, ending: false }} /><${Fullness} row=${read} words=${`${usedText(read)} in use${cap?.limit ? `, cap ${cap.limit}` : ''}.`} /></div>
    <dl class="facts"><dt>Limit named by</dt><dd class="mono">${limitBy === null ? None('no name') : html`<${Who} holder=${limitBy} />`}</dd></dl>
    <${Acts} ...${{ read, refusal, onChange }} />
    <h3>Permits</h3>
    <ol class="permits">${holders.map((permit) => {
      const { holder, mode, weight, fence, acquiredAt, ending, brokenAt, brokenBy } = permit;
      return html`<li key=${fence}>
        <div>
          <span class="mono"><${Who} holder=${holder} /></span>
          ${ending && html`<span><${State} row=${permit} />${brokenAt && html` <span class="quiet">broken <${BrokenBy} at=${brokenAt} by=${brokenBy} /></span>`}</span>`}
          <span class="quiet">${mode === 'shared' ? `shared, weight ${weight}` : mode}, fence ${fence}</span>
          <span class="quiet">since <${At} instant=${acquiredAt} />, <${Since} instant=${acquiredAt} /></span>
          <${TimeLeft} lease=${permit} answeredAt=${answeredAt} />
        </div>
        <button type="button" class="danger" disabled=${refusal !== undefined} onClick=${() => setBreaking(permit)}>Break…<span class="unseen"> the permit of ${holder}</span></button>
      </li>`;
    })}</ol>
    ${
      breaking &&
      html`<${BreakDialog} noun="permit" held=${{ ...breaking, ...now, key, waiting }} answeredAt=${answeredAt} onClose=${() => setBreaking(undefined)} onDone=${() => {
        setBreaking(undefined);
        onChange();
      }} />`
    }
  `;
}
