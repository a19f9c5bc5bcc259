/**
 * The smallest part of `items` that still fails, as far as leaving out parts of it finds one: delta debugging, after
 * A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input (IEEE TSE 28, 2002), without its
 * tests of single parts alone, because a history rarely fails by itself.
 */
export async function shrink<T>(items: readonly T[], fails: (fewer: T[]) => Promise<boolean>): Promise<T[]> {
  let left = [...items];
  for (let parts = 2; left.length > 1; ) {
    const size = Math.ceil(left.length / parts);
    const fewer = await firstThat(left, size, fails);
    if (fewer) {
      left = fewer;
      parts = Math.max(parts - 1, 2);
    } else if (size === 1) break;
    else parts = Math.min(parts * 2, left.length);
  }
  return left.length === 1 && (await fails([])) ? [] : left;
}

async function firstThat<T>(
  items: T[],
  size: number,
  fails: (fewer: T[]) => Promise<boolean>,
): Promise<T[] | undefined> {
  for (let from = 0; from < items.length; from += size) {
    const fewer = items.toSpliced(from, size);
    if (await fails(fewer)) return fewer;
  }
  return undefined;
}
