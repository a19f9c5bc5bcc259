import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** An npm package that has code in a bundle. */
export interface BundledPackage {
  name: string;
  version: string;
  /** An SPDX expression. */
  license: string;
  /** The texts of the licence, as the package contains them. Empty if it contains none. */
  texts: string[];
}

/** @param inputs the files that have code in a bundle */
export async function packagesOf(inputs: Iterable<string>): Promise<BundledPackage[]> {
  const folders = new Set([...inputs].flatMap((file) => packageFolder(file) ?? []));
  const packages = await Promise.all([...folders].map(read));
  const byId = new Map(packages.map((one) => [`${one.name}@${one.version}`, one]));
  return [...byId.values()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

const idOf = ({ name, version }: BundledPackage): string => `${name}@${version}`;

/** The licences of Holdfast and of each package. A distributor of their code must pass the licences on. */
export async function licencesText(packages: BundledPackage[]): Promise<string> {
  const own = await readFile(join(import.meta.dirname, '..', 'LICENSE'), 'utf8');
  const parts = packages.map((one) => [`${idOf(one)} (${one.license})`, ...one.texts].join('\n\n'));
  return `${[`holdfast (Apache-2.0)\n\n${own}`, ...parts].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

function packageFolder(file: string): string | undefined {
  return file.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1];
}

async function read(folder: string): Promise<BundledPackage> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  if (!name || !version || typeof license !== 'string') throw new Error(`${folder} does not say what licence it has`);
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  const texts = await Promise.all(files.map(async (file) => (await readFile(join(folder, file), 'utf8')).trim()));
  return { name, version, license, texts };
}
