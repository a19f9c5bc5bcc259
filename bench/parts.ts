import { isAbsolute, relative } from 'node:path';
import type { Inputs } from '../build/bundle.ts';

/** The part that a file belongs to: the name of an npm package, or a folder of our own code, such as shared/locks. */
function partOf(input: string): string {
  const [, inPackage] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input) ?? [];
  const file = isAbsolute(input) ? relative(process.cwd(), input) : input;
  return inPackage ?? file.split('/').slice(0, -1).slice(0, 2).join('/');
}

/** The largest parts of a bundle. @param count how many */
export function largestParts(inputs: Inputs, count: number): { part: string; bytes: number }[] {
  const bytes = new Map<string, number>();
  for (const [input, size] of inputs) bytes.set(partOf(input), (bytes.get(partOf(input)) ?? 0) + size);
  const all = [...bytes].map(([part, size]) => ({ part, bytes: size }));
  return all.toSorted((left, right) => right.bytes - left.bytes).slice(0, count);
}
