import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CloudFormationTemplate } from '../../infrastructure/cloudformation.ts';
import { evaluate } from '../../infrastructure/evaluate.ts';
import manifest from '../../package.json' with { type: 'json' };
import { onceInRun } from './once.ts';

/** A resource of the CloudFormation template; its properties are whatever its type has. */
export interface Resource {
  Type: string;
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
  DependsOn?: string | string[];
  // biome-ignore lint/suspicious/noExplicitAny: CloudFormation's types are a schema of their own; tests compare values
  Properties: any;
}

/** As one deployment gets it. */
export interface Template {
  Resources: Record<string, Resource>;
  Outputs: Record<string, { Value: unknown }>;
}

export interface Packaged {
  exitCode: number;
  /** What it wrote to the terminal. */
  output: string;
  /** Each attempt to connect to anything, with the stack that made it. */
  connections: string;
}

/** `npm run release` of this very repository, once in a run. */
export const npmRunRelease = (): Promise<Packaged> =>
  onceInRun('npm-run-release', async () => {
    const packaged = await offline('npm', ['run', 'release']);
    if (packaged.exitCode !== 0) throw new Error(`npm run release failed:\n${packaged.output}`);
    return packaged;
  });

/** What it wrote: the folder of the release. */
export const releaseFolder = (): string => join('release', `holdfast-${manifest.version}`);

export const readReleased = (): CloudFormationTemplate =>
  JSON.parse(readFileSync(join(releaseFolder(), 'template.json'), 'utf8'));

/** What the framework makes of the built functions for one stage and these options alone. */
export async function packageLiterally(stage: string, options: string[]): Promise<Template> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-package-'));
  try {
    const { exitCode, output } = await offline('osls', [
      'package',
      `--package=${folder}`,
      `--stage=${stage}`,
      ...options,
    ]);
    if (exitCode !== 0) throw new Error(output);
    const template = JSON.parse(await readFile(join(folder, 'cloudformation-template-update-stack.json'), 'utf8'));
    return evaluate({ ...template, Parameters: {} }, {}) as Template;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Every Node process that is started notes what it connects to, and is refused. */
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
async function offline(command: string, args: string[]): Promise<Packaged> {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-home-'));
  const connectionsFile = join(home, 'connections');
  const env = {
    PATH: `node_modules/.bin:${process.env.PATH}`,
    HOME: home,
    NODE_OPTIONS: `--import=${REFUSE_NETWORK}`,
    CONNECTIONS: connectionsFile,
    npm_config_update_notifier: 'false',
    ...(process.env.HOLDFAST_MINIFIED && { HOLDFAST_MINIFIED: process.env.HOLDFAST_MINIFIED }),
  };
  try {
    const { exitCode, output } = await run(command, args, env);
    const connections = await readFile(connectionsFile, 'utf8').catch(() => '');
    return { exitCode, output, connections };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

function run(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { env, timeout: 300_000 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') reject(error);
      else resolve({ exitCode: child.exitCode ?? -1, output: stdout + stderr });
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
