/** Lets a signal ask, each time it is read, whether it ought to have aborted. */
export function watch(signal: AbortSignal, check: () => void): void {
  const own = (name: 'aborted' | 'reason') => ({
    get: () => {
      check();
      return Reflect.get(AbortSignal.prototype, name, signal);
    },
  });
  Object.defineProperties(signal, {
    aborted: own('aborted'),
    reason: own('reason'),
    throwIfAborted: {
      value: () => {
        if (signal.aborted) throw signal.reason;
      },
    },
  });
}
