import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { glob, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** The commit that the changelog calls 0.1.0. */
const COMMIT = 'd681558';
const run = promisify(execFile);

export interface FirstRelease {
  /** Of CloudFormation, for one stage alone. */
  template: string;
  /** By the key under which the template looks for it. */
  zips: Map<string, Buffer>;
  /** Paths of the modules of its functions. */
  modules: string[];
}

/** @returns nothing where the clone has no history to build it from */
export async function firstRelease(stage: string): Promise<FirstRelease | undefined> {
  const folder = await sources();
  if (!folder) return undefined;
  const packaged = join(folder, `.packaged-${stage}`);
  await rm(packaged, { recursive: true, force: true });
  const osls = resolve('node_modules/osls/bin/serverless.js');
  await run(process.execPath, [osls, 'package', `--stage=${stage}`, `--package=${packaged}`, '--region=eu-west-1'], {
    cwd: folder,
  });
  const template = await readFile(join(packaged, 'cloudformation-template-update-stack.json'), 'utf8');
  const keys = [...template.matchAll(/"S3Key": "([^"]+)"/g)].map(([, key]) => String(key));
  const names = (await readdir(packaged)).filter((name) => name.endsWith('.zip'));
  const zips = names.map(async (name) => {
    const key = keys.find((one) => one.endsWith(`/${name}`));
    return [String(key), await readFile(join(packaged, name))] as const;
  });
  const modules: string[] = [];
  for await (const path of glob('dist/*/*/index.mjs', { cwd: folder })) modules.push(join(folder, path));
  return { template, zips: new Map(await Promise.all(zips)), modules };
}

/** Its files, with its own dependencies; what only builds it is that of this version. Made once. */
async function sources(): Promise<string | undefined> {
  const folder = resolve('.cache', `holdfast-${COMMIT}`);
  if (existsSync(join(folder, '.built'))) return folder;
  const archive = await run('git', ['archive', '--format=tar', COMMIT], {
    encoding: 'buffer',
    maxBuffer: 2 ** 28,
  }).catch(() => undefined);
  if (!archive) return undefined;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'sources.tar'), archive.stdout);
  await run('tar', ['-xf', 'sources.tar'], { cwd: folder });
  await run('npm', ['install', '--omit=dev', '--omit=optional', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: folder,
  });
  await run(process.execPath, ['build/functions.ts'], { cwd: folder });
  await writeFile(join(folder, '.built'), '');
  return folder;
}
