/** Lets a signal ask, each time it is read, whether it ought to have aborted. */
export function watch(signal: AbortSignal, check: () => void): void {
  for (const name of ['aborted', 'reason', 'throwIfAborted'])
    Object.defineProperty(signal, name, {
      get: () => {
        check();
        return Reflect.get(AbortSignal.prototype, name, signal);
      },
    });
}
