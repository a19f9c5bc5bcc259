/**
 * A handler that is made at its first call. To make one takes as long as some requests, and most worlds never call most of
 * theirs.
 */
export function madeAtFirstCall<Handler extends (...args: never[]) => unknown>(make: () => Handler): Handler {
  let made: Handler | undefined;
  return ((...args: Parameters<Handler>) => {
    made ??= make();
    return made(...args);
  }) as Handler;
}
