import budgets from './size-budget.json' with { type: 'json' };
import { sizeOf } from './sizes.ts';

/** The limits of each function, in kilobytes of 1000 bytes: what a cold start loads, and the whole zip before compression. */
type Budgets = Record<string, { loaded: number; all: number } | undefined>;

/**
 * Checks the sizes of the functions, because each byte that is loaded makes every cold start slower.
 * @returns a line for each function that exceeds its budget, or has none
 */
export async function overBudget(
  functions: { name: string; bundle: string }[],
  of: Budgets = budgets,
): Promise<string[]> {
  const complaints = functions.map(async ({ name, bundle }) => {
    const size = await sizeOf(bundle);
    const budget = of[name];
    if (!budget)
      return [
        `${name} has no budget: add "${name}": { "loaded": ${roomy(size.loaded)}, "all": ${roomy(size.all)} } to build/size-budget.json`,
      ];
    return (['loaded', 'all'] as const)
      .filter((part) => size[part] > budget[part] * 1000)
      .map((part) => `${name}: ${part} is ${(size[part] / 1000).toFixed(1)} kB, over its budget of ${budget[part]} kB`);
  });
  return (await Promise.all(complaints)).flat();
}

/** The current size plus 3 %, so that a patch release of the SDK still fits. */
const roomy = (bytes: number) => Math.ceil((bytes * 1.03) / 1000);
