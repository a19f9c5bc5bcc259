/** Makes a signal check, each time it is read, whether it is due to abort. */
export function watch(signal: AbortSignal, check: () => void): void {
  for (const name of ['aborted', 'reason', 'throwIfAborted'])
    Object.defineProperty(signal, name, {
      get: () => {
        check();
        return Reflect.get(AbortSignal.prototype, name, signal);
      },
    });
}
