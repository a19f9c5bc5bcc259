import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { bundle as bundleCommand, bundleSearch } from '../cli/bundle.ts';
import { SEARCH_FILE } from '../cli/src/aws/file.ts';
import { packagingOptions, parameterized, zipName } from '../infrastructure/parameterized.ts';
import { readService } from '../infrastructure/read.ts';
import manifest from '../package.json' with { type: 'json' };
import { bundleProgram } from './bundle.ts';
import { type BundledPackage, licencesText } from './licences.ts';
import { sbom } from './sbom.ts';

/**
 * Writes release/holdfast-<version>, with everything that a deployment needs, for every stage and configuration. Build the functions first.
 */
const { version } = manifest;
const folder = join('release', `holdfast-${version}`);
const packaged = await mkdtemp(join(tmpdir(), 'holdfast-release-'));
try {
  const osls = join('node_modules', 'osls', 'bin', 'serverless.js');
  const { stderr } = await promisify(execFile)(process.execPath, [
    osls,
    'package',
    `--package=${packaged}`,
    ...packagingOptions(),
  ]);
  console.error(stderr.replaceAll(/^Warning: .*$|^$\n/gm, '').trim());
  await write();
} finally {
  await rm(packaged, { recursive: true, force: true });
}

async function write(): Promise<void> {
  const { functions } = await readService();
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, 'functions'), { recursive: true });
  const zips: Record<string, string> = {};
  const ofFunctions: Record<string, BundledPackage[]> = {};
  for (const { name, bundle } of functions) {
    const zip = join(packaged, `${name}.zip`);
    const named = zipName(name, await readFile(zip));
    zips[name] = named;
    ofFunctions[name] = JSON.parse(await readFile(`${bundle}.packages.json`, 'utf8'));
    await copyFile(zip, join(folder, 'functions', named));
  }
  const template = JSON.parse(await readFile(join(packaged, 'cloudformation-template-update-stack.json'), 'utf8'));
  await writeFile(
    join(folder, 'template.json'),
    `${JSON.stringify(parameterized(template, zips, version), null, 1)}\n`,
  );
  const ofFiles = {
    'holdfast.mjs': await bundleCommand(resolve(folder, 'holdfast.mjs')),
    [SEARCH_FILE]: await bundleSearch(resolve(folder)),
    'deploy.mjs': await bundleProgram('deployment/commands.ts', join(folder, 'deploy.mjs')),
  };
  await writeConstruct();
  await writeModule();
  for (const file of ['bounded-deployer.json', 'deployer-policy.json'])
    await copyFile(join('deployment', file), join(folder, file));
  await writeFile(join(folder, 'sbom.cdx.json'), sbom(version, { function: ofFunctions, file: ofFiles }));
  await copyFile('LICENSE', join(folder, 'LICENSE'));
  await writeFile(join(folder, 'LICENSES.txt'), await licencesText(unique(Object.values(ofFiles).flat())));
  await writeFile(join(folder, 'SHA256SUMS'), await checksums());
  console.log(`Wrote ${folder}`);
}

async function writeModule(): Promise<void> {
  const module = join('deployment', 'terraform');
  await mkdir(join(folder, 'terraform'));
  for (const file of await readdir(module)) await copyFile(join(module, file), join(folder, 'terraform', file));
}

/** Writes the construct for CDK as JavaScript with types. verification/deployment/cdk checks the types, because CDK is installed only there. */
async function writeConstruct(): Promise<void> {
  const tsc = join('node_modules', 'typescript', 'bin', 'tsc');
  const args = ['--project', 'deployment/cdk', '--noCheck', '--outDir', join(folder, 'cdk')];
  await promisify(execFile)(process.execPath, [tsc, ...args]);
  const construct = {
    name: 'holdfast-cdk',
    version,
    type: 'commonjs',
    main: 'index.js',
    types: 'index.d.ts',
    private: true,
  };
  await writeFile(join(folder, 'cdk', 'package.json'), `${JSON.stringify(construct, null, 1)}\n`);
}

/** Removes duplicates, because several files may contain code of one package. */
function unique(packages: BundledPackage[]): BundledPackage[] {
  return [...new Map(packages.map((one) => [`${one.name}@${one.version}`, one])).values()];
}

/** The text that `sha256sum --check SHA256SUMS` reads. */
async function checksums(): Promise<string> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .sort();
  const lines = files.map(
    async (file) =>
      `${createHash('sha256')
        .update(await readFile(join(folder, file)))
        .digest('hex')}  ${file}\n`,
  );
  return (await Promise.all(lines)).join('');
}
