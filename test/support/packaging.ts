import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onceInRun } from './once.ts';

/** A resource of the CloudFormation template; its properties are whatever its type has. */
export interface Resource {
  Type: string;
  Condition?: string;
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
  DependsOn?: string | string[];
  // biome-ignore lint/suspicious/noExplicitAny: CloudFormation's types are a schema of their own; tests compare values
  Properties: any;
}

export interface Template {
  Resources: Record<string, Resource>;
  Conditions: Record<string, unknown>;
  Outputs: Record<string, { Value: unknown }>;
}

export interface Packaged {
  exitCode: number;
  /** What it wrote to the terminal. */
  output: string;
  /** Each attempt to connect to anything, with the stack that made it. */
  connections: string;
}

/**
 * `npm run package` of this very repository, into dist and .serverless, once in a run, with what is in .serverless then: each
 * further packaging empties that folder.
 */
export const npmRunPackage = (): Promise<Packaged & { template: Template; zipped: Record<string, string[]> }> =>
  onceInRun('npm-run-package', async () => {
    const packaged = await offline('npm', ['run', 'package']);
    if (packaged.exitCode !== 0) throw new Error(`npm run package failed:\n${packaged.output}`);
    const zips = (await readdir('.serverless')).filter((file) => file.endsWith('.zip'));
    const zipped = Object.fromEntries(
      zips.map((file) => [file.replace('.zip', ''), namesInZip(`.serverless/${file}`)]),
    );
    return { ...packaged, template: await readTemplate('.serverless'), zipped };
  });

/** Packages what was built before once more, otherwise configured, and hands its template over. */
export async function packageWith(
  parameters: string[],
  settings?: Record<string, string>,
): Promise<Packaged & { template: Template }> {
  await npmRunPackage();
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-package-'));
  try {
    const packaged = await offline('osls', ['package', '--package', folder, ...parameters], settings);
    const template = packaged.exitCode === 0 ? await readTemplate(folder) : emptyTemplate;
    return { ...packaged, template };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const emptyTemplate: Template = { Resources: {}, Conditions: {}, Outputs: {} };

const readTemplate = async (folder: string): Promise<Template> =>
  JSON.parse(await readFile(join(folder, 'cloudformation-template-update-stack.json'), 'utf8'));

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
async function offline(command: string, args: string[], settings: Record<string, string> = {}): Promise<Packaged> {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-home-'));
  const connectionsFile = join(home, 'connections');
  const env = {
    PATH: `node_modules/.bin:${process.env.PATH}`,
    HOME: home,
    NODE_OPTIONS: `--import=${REFUSE_NETWORK}`,
    CONNECTIONS: connectionsFile,
    npm_config_update_notifier: 'false',
    ...settings,
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
function namesInZip(path: string): string[] {
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
