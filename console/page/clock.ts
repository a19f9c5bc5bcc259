import { useLayoutEffect, useRef } from 'preact/hooks';

/** The elements that show time, each with the function that updates it. Without them, a long list would be drawn again each second. */
const shown = new Map<Element, () => void>();

let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  for (const update of shown.values()) update();
}

/** One timer updates all elements, and stops while the page is hidden. */
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
 * Updates an element now and each second, without drawing the page again.
 * @returns the ref for the element
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
