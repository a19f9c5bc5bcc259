import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inject } from 'vitest';
import type { CloudFormationTemplate } from '../../../infrastructure/cloudformation.ts';
import { evaluate } from '../../../infrastructure/evaluate.ts';
import { packagingOptions, parameterized, zipName } from '../../../infrastructure/parameterized.ts';
import manifest from '../../../package.json' with { type: 'json' };
import { sharedInRun } from './shared-in-run.ts';

/** A resource of the CloudFormation template, with the properties of its type. */
export interface Resource {
  Type: string;
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
  DependsOn?: string | string[];
  // biome-ignore lint/suspicious/noExplicitAny: CloudFormation's types are a schema of their own, and tests compare values
  Properties: any;
}

/** The template as one deployment gets it. */
export interface Template {
  Resources: Record<string, Resource>;
  Outputs: Record<string, { Value: unknown }>;
}

export interface Packaged {
  exitCode: number;
  /** The output of the command. */
  output: string;
  /** The attempts to connect to anything, each with its stack trace. */
  connections: string;
}

/** Runs `npm run release` of this repository, once in a run. */
export const npmRunRelease = (): Promise<Packaged> =>
  sharedInRun('npm-run-release', async () => {
    const packaged = await offline('npm', ['run', 'release']);
    if (packaged.exitCode !== 0) throw new Error(`npm run release failed:\n${packaged.output}`);
    return packaged;
  });

/** The folder that the release has written. */
export const releaseFolder = (): string => join('release', `holdfast-${manifest.version}`);

export const readReleased = (): CloudFormationTemplate =>
  JSON.parse(readFileSync(join(releaseFolder(), 'template.json'), 'utf8'));

/** The template of the release, made once in a run, without the half minute of bundling: its functions have no code. */
export const templateWithoutCode = (): Promise<CloudFormationTemplate> =>
  sharedInRun('template', async () => {
    const zips = inject('service').functions.map(({ name }) => [name, zipName(name, Buffer.of())] as const);
    return parameterized(await packageWithoutCode(packagingOptions()), Object.fromEntries(zips), manifest.version);
  });

/** The template that the framework makes of serverless.yml for one stage with these options. */
export async function packageLiterally(stage: string, options: string[]): Promise<Template> {
  const template = await packageWithoutCode([`--stage=${stage}`, ...options]);
  return evaluate({ ...template, Parameters: {} }, {}) as Template;
}

async function packageWithoutCode(options: string[]): Promise<CloudFormationTemplate> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-package-'));
  try {
    for (const file of ['serverless.yml', 'package.json']) await copyFile(file, join(folder, file));
    for (const linked of ['node_modules', 'infrastructure', 'functions'])
      await symlink(resolve(linked), join(folder, linked));
    for (const { bundle } of inject('service').functions) {
      await mkdir(join(folder, bundle), { recursive: true });
      await writeFile(join(folder, bundle, 'index.mjs'), '');
    }
    const { exitCode, output } = await offline('osls', ['package', '--package=packaged', ...options], folder);
    if (exitCode !== 0) throw new Error(output);
    return JSON.parse(await readFile(join(folder, 'packaged/cloudformation-template-update-stack.json'), 'utf8'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A module for every Node process that starts. It notes each address to which the process connects, and refuses. */
const REFUSE_NETWORK = `data:text/javascript,${encodeURIComponent(`
  import { appendFileSync } from 'node:fs';
  import { Socket } from 'node:net';
  Socket.prototype.connect = (...target) => {
    const { stack } = new Error('connect ' + JSON.stringify(target));
    appendFileSync(process.env.CONNECTIONS, stack + '\\n');
    throw new Error('there is no network');
  };
`)}`;

/** Runs a command without network and without anything of AWS in its environment or home. */
async function offline(command: string, args: string[], cwd = '.'): Promise<Packaged> {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-home-'));
  const connectionsFile = join(home, 'connections');
  const env = {
    PATH: `${resolve('node_modules/.bin')}:${process.env.PATH}`,
    HOME: home,
    NODE_OPTIONS: `--import=${REFUSE_NETWORK}`,
    CONNECTIONS: connectionsFile,
    npm_config_update_notifier: 'false',
  };
  try {
    const { exitCode, output } = await run(command, args, { env, cwd });
    const connections = await readFile(connectionsFile, 'utf8').catch(() => '');
    return { exitCode, output, connections };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

function run(
  command: string,
  args: string[],
  options: { env: NodeJS.ProcessEnv; cwd: string },
): Promise<{ exitCode: number; output: string }> {
  return new Promise((done, reject) => {
    const child = execFile(command, args, { ...options, timeout: 300_000 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') reject(error);
      else done({ exitCode: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

/** The names in a zip file, from its central directory (APPNOTE.TXT 4.3.12). */
export function namesInZip(path: string): string[] {
  const zip = readFileSync(path);
  const endOfDirectory = zip.lastIndexOf(Buffer.from('PK\x05\x06'));
  const names: string[] = [];
  let at = zip.readUInt32LE(endOfDirectory + 16);
  for (let left = zip.readUInt16LE(endOfDirectory + 10); left > 0; left--) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset));
    names.push(zip.toString('utf8', at + 46, at + 46 + Number(nameLength)));
    at += 46 + Number(nameLength) + Number(extraLength) + Number(commentLength);
  }
  return names;
}
