import { useState } from 'preact/hooks';
import { Dialog } from './dialog.ts';
import { html } from './html.ts';
import { KEYS, keysAreOn, turnKeys } from './keys.ts';

export function Help({ onClose }: { onClose(): void }) {
  const [on, setOn] = useState(keysAreOn());
  const toggle = () => {
    turnKeys(!on);
    setOn(!on);
  };
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="facts">${KEYS.map(([keys, does]) => html`<dt><kbd>${keys}</kbd></dt><dd>${does}</dd>`)}</dl>
    <label class="field"><input type="checkbox" checked=${on} onChange=${toggle} /> Single keys do these things</label>
    <div class="buttons"><button type="button" autofocus onClick=${onClose}>Close</button></div>
  <//>`;
}
