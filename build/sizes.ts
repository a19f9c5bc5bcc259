import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** The size of a function, in bytes of minified JavaScript. */
export interface Size {
  /** What every cold start loads: index.mjs and its static imports. */
  loaded: number;
  loadedGzip: number;
  /** The whole zip, with the files that are loaded later or never. */
  all: number;
}

/** The size of a function that `bundle` has written. */
export async function sizeOf(folder: string): Promise<Size> {
  const scripts = (await readdir(folder)).filter((file) => file.endsWith('.mjs'));
  const code = new Map<string, Buffer>();
  for (const script of scripts) code.set(script, await readFile(join(folder, script)));
  const loaded = [...loadedFrom(code, 'index.mjs')].map((file) => code.get(file) ?? Buffer.alloc(0));
  const bytes = (parts: Iterable<Buffer>) => [...parts].reduce((sum, { length }) => sum + length, 0);
  return { loaded: bytes(loaded), loadedGzip: bytes(loaded.map((part) => gzipSync(part))), all: bytes(code.values()) };
}

/** The files that a file imports at once, even through other files. Files behind an import() are loaded later or never. */
function loadedFrom(code: Map<string, Buffer>, file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, next = ''] of String(code.get(file)).matchAll(/(?:\bfrom|\bimport)\s*"\.\/([^"]+\.mjs)"/g))
    loadedFrom(code, next, found);
  return found;
}
