import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { seededRandom } from '../../test/support/chance/seed.ts';

/** From this release on, the formats of records only grow, so that functions of two releases can run side by side. */
const FIRST = '0.3.0';

const run = promisify(execFile);

export interface Release {
  version: string;
  /** Of its sources. Their dependencies are those of this version. */
  folder: string;
}

/**
 * The release before this version: the newest tag before HEAD. Its sources are extracted once.
 * @returns undefined if there is none since 0.3.0, or if the clone has no tags
 */
export async function earlierRelease(root = '.'): Promise<Release | undefined> {
  const git = async (...args: string[]) => (await run('git', args, { cwd: root })).stdout.split('\n').filter(Boolean);
  const tags = ['tag', '--list', 'v*', '--sort=-v:refname'];
  const [all = [], here = []] = await Promise.all([
    git(...tags, '--merged', 'HEAD'),
    git(...tags, '--points-at', 'HEAD'),
  ]).catch((): string[][] => [[], []]);
  const tag = all.find((one) => !here.includes(one));
  const version = tag?.slice(1) ?? '';
  if (!tag || version.localeCompare(FIRST, undefined, { numeric: true }) < 0) return undefined;
  const folder = resolve(root, '.cache', `holdfast-${tag}`);
  if (!existsSync(join(folder, '.complete'))) await extract(tag, { root, folder });
  return { version, folder };
}

async function extract(tag: string, { root, folder }: { root: string; folder: string }): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const archive = join(folder, 'sources.tar');
  await run('git', ['archive', '--format=tar', `--output=${archive}`, tag], { cwd: root });
  await run('tar', ['-xf', archive], { cwd: folder });
  await writeFile(join(folder, '.complete'), '');
}

/** The half of the functions that a history takes from the release before. */
export function halfOf(names: readonly string[], seed: number): Set<string> {
  const random = seededRandom(seed ^ 0x6a09e667);
  const lots = names.map((name) => ({ name, lot: random() })).toSorted((one, other) => one.lot - other.lot);
  return new Set(lots.slice(0, Math.floor(names.length / 2)).map(({ name }) => name));
}

/** Which release the histories use, as a person reads it. */
export const toldOf = (release: Release | undefined): string =>
  release
    ? `Each history takes half of its functions from the release ${release.version}`
    : `All functions are those of this version: there is no earlier release since ${FIRST}`;
