import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A way to break the product on purpose, and the history that must show it. */
export interface Mutation {
  name: string;
  changes: Change[];
  /** In the words of the checker. */
  promise: string;
  /** The capability whose histories show it. */
  only:
    | 'leases'
    | 'permits'
    | 'commits'
    | 'nameservice'
    | 'queue'
    | 'expiry'
    | 'patience'
    | 'once'
    | 'redrives'
    | 'rates';
}

export interface Change {
  /** Must be there exactly once: in the product, or in `file`. */
  search: string;
  replace: string;
  /** Only for a text that other files have too. */
  file?: string | undefined;
}

export const change = (search: string, replace: string, file?: string): Change => ({ search, replace, file });

const PRODUCT = ['clients/typescript/src', 'contract', 'deployment', 'functions', 'infrastructure', 'local', 'shared'];

/** The source of the product, by path. @param root the folder of the repository, or of a copy */
export function readProduct(root: string): Map<string, string> {
  const files = PRODUCT.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  ).filter((file) => /\.(ts|js|yml|asl\.json)$/.test(file) && !file.includes('node_modules'));
  return new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

/**
 * The one file in which a change finds its text.
 * @throws Error if the text is missing or occurs more than once
 */
export function placeOfChange({ search, file }: Change, product: ReadonlyMap<string, string>): string {
  const found = [...product].flatMap(([path, text]) =>
    file === undefined || path === file ? Array.from({ length: text.split(search).length - 1 }, () => path) : [],
  );
  const [path] = found;
  if (path === undefined || found.length > 1)
    throw new Error(`${found.join(', ') || 'No file'} has the text: ${search}`);
  return path;
}
