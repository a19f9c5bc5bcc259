import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { html } from './html.ts';
import { ProblemDetail } from './parts.ts';
import { type Problem, problemOf } from './service.ts';

interface DialogProps {
  title: ComponentChildren;
  children: ComponentChildren;
  onClose(): void;
  /** True for a dialog with a table, which needs more width. */
  wide?: boolean;
}

/** A modal dialog. The browser keeps the focus in it, and afterwards puts the focus back. */
export function Dialog({ title, children, onClose, wide }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return html`<dialog ref=${ref} class=${wide ? 'wide' : ''} aria-labelledby=${id} onClose=${onClose} onCancel=${onClose}>
    <h2 id=${id}>${title}</h2>
    ${children}
  </dialog>`;
}

interface ConfirmProps {
  title: ComponentChildren;
  children: ComponentChildren;
  /** The text of the button, which names the act, and never just OK. */
  act: string;
  onAct(): Promise<void>;
  onClose(): void;
}

/** Asks before an act that cannot be undone. The focus is on the button that leaves it, or on the first field of a form. */
export function Confirm({ title, children, act, onAct, onClose }: ConfirmProps) {
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const run = async (event: Event) => {
    const button = event.currentTarget as HTMLElement;
    // The browser shows at the first wrong field what is wrong.
    if (button.closest('dialog')?.querySelector<HTMLInputElement>('input:invalid')?.reportValidity() === false) return;
    setRunning(true);
    setProblem(undefined);
    try {
      await onAct();
    } catch (error) {
      setProblem(problemOf(error));
      setRunning(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${children}
    ${problem && html`<div class="notice trouble" role="alert"><p><${ProblemDetail} problem=${problem} /></p></div>`}
    <div class="buttons">
      <button type="button" autofocus onClick=${onClose}>Leave it</button>
      <button type="button" class="danger" disabled=${isRunning} onClick=${run}>${isRunning ? 'Working…' : act}</button>
    </div>
  <//>`;
}
