import { useEffect } from 'preact/hooks';
import { linkTo, VIEWS } from './route.ts';

/** The shortcuts, as the help lists them. */
export const SHORTCUTS: [typed: string, does: string][] = [
  ['/', 'search'],
  [`1 to ${VIEWS.length}`, `go to ${VIEWS.join(', ')}`],
  ['j and k', 'go down and up the list'],
  ['Enter', 'open the key that has the focus'],
  ['Esc', 'leave the search, or close the key'],
  ['?', 'show this help'],
];

/** Set in the storage of the browser if the shortcuts are off. */
const OFF = 'holdfast-shortcuts-off';

/** False if the reader has turned the shortcuts off, because speech recognition or a cat types single letters. */
export const areShortcutsOn = (): boolean => localStorage.getItem(OFF) === null;

export function turnShortcuts(on: boolean): void {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, '1');
}

/** Listens to the shortcuts. @param onHelp called for `?` */
export function useShortcuts(onHelp: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      const target = event.target as HTMLElement;
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
      if (event.key === 'Escape') leave(isTyping ? target : undefined);
      else if (!isTyping && areShortcutsOn() && act(event.key, onHelp)) event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [onHelp]);
}

/** Leaves a field, or closes the key that is open. */
function leave(field: HTMLElement | undefined): void {
  if (field) field.blur();
  else document.querySelector<HTMLElement>('[data-close]')?.click();
}

/** Does what a letter stands for. @returns false if it stands for nothing */
function act(key: string, onHelp: () => void): boolean {
  const view = VIEWS[Number(key) - 1];
  if (view) location.hash = linkTo({ view });
  else if (key === '/') document.getElementById('search')?.focus();
  else if (key === 'j') move(1);
  else if (key === 'k') move(-1);
  else if (key === '?') onHelp();
  else return false;
  return true;
}

/** Moves the focus down or up the list. */
function move(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const open = rows.findIndex((row) => row.getAttribute('aria-current'));
  const from = at >= 0 ? at : open;
  const next = rows[from < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, from + by))];
  next?.focus();
}
