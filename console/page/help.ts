import { useState } from 'preact/hooks';
import { Dialog } from './dialog.ts';
import { html } from './html.ts';
import { areShortcutsOn, SHORTCUTS, turnShortcuts } from './shortcuts.ts';

/** The dialog that lists the keyboard shortcuts, and turns them on or off. */
export function Help({ onClose }: { onClose(): void }) {
  const [on, setOn] = useState(areShortcutsOn());
  const toggle = () => {
    turnShortcuts(!on);
    setOn(!on);
  };
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}>
    <dl class="facts">${SHORTCUTS.map(([typed, does]) => html`<dt><kbd>${typed}</kbd></dt><dd>${does}</dd>`)}</dl>
    <label class="field"><input type="checkbox" checked=${on} onChange=${toggle} /> Use these shortcuts</label>
    <div class="buttons"><button type="button" autofocus onClick=${onClose}>Close</button></div>
  <//>`;
}
