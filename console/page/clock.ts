import { useLayoutEffect, useRef } from 'preact/hooks';

/** What shows time, and how it is brought up to date. Most rows of a long list change nothing but their time. */
const shown = new Map<Element, () => void>();

let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  for (const update of shown.values()) update();
}

/** One timer for all, and none while nobody looks. */
function keepTime(): void {
  const needed = shown.size > 0 && document.visibilityState === 'visible';
  if (needed && timer === undefined) timer = setInterval(tick, 1000);
  if (!needed && timer !== undefined) {
    clearInterval(timer);
    timer = undefined;
  }
}

document.addEventListener('visibilitychange', () => {
  keepTime();
  if (document.visibilityState === 'visible') tick();
});

/**
 * Writes to an element by itself, at once and each second, without drawing the page again.
 * @returns the ref of the element
 */
export function useTicking<E extends Element>(update: (element: E) => void) {
  const ref = useRef<E>(null);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    update(element);
    shown.set(element, () => update(element));
    keepTime();
    return () => {
      shown.delete(element);
      keepTime();
    };
  });
  return ref;
}
