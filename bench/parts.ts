/** What of esbuild's metafile is used: the bytes of each input in each output. */
interface Metafile {
  outputs: Record<string, { inputs: Record<string, { bytesInOutput: number }> }>;
}

/** An npm package by its name, and own code by its folder, such as shared/locks. */
function partOf(input: string): string {
  const [, inPackage] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input) ?? [];
  return inPackage ?? input.split('/').slice(0, -1).slice(0, 2).join('/');
}

/** The parts that take most bytes of a bundle. @param count how many */
export function largestParts({ outputs }: Metafile, count: number): { part: string; bytes: number }[] {
  const bytes = new Map<string, number>();
  for (const { inputs } of Object.values(outputs))
    for (const [input, { bytesInOutput }] of Object.entries(inputs))
      bytes.set(partOf(input), (bytes.get(partOf(input)) ?? 0) + bytesInOutput);
  const all = [...bytes].map(([part, size]) => ({ part, bytes: size }));
  return all.toSorted((left, right) => right.bytes - left.bytes).slice(0, count);
}
