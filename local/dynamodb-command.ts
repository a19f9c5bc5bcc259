import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM } from './program.ts';

/** The address of an emulator, and the folder of its tables: in memory if `dataDir` is undefined. */
export interface Wanted {
  host: string;
  port: number;
  dataDir: string | undefined;
}

/** A command that starts an emulator of DynamoDB. */
export interface EmulatorCommand {
  file: string;
  args: string[];
  /** How long it may take until it answers, in milliseconds: it may have to be downloaded first. */
  patienceMs: number;
}

const VERSION = '2.6.1';

/** What both ways of running DynamoDB Local have. It would answer pages of every origin otherwise, so it gets one that nobody has. */
const LOCAL = ['-sharedDb', '-disableTelemetry', '-cors', 'https://nobody.invalid'];

/** In order of preference: the first one that this machine has is used. */
const WAYS = ['dynoxide', 'java', 'docker'] as const;
type Way = (typeof WAYS)[number];

/** What to install if this machine has none of them. */
export const NO_EMULATOR = `there is no DynamoDB emulator for this machine on npm. Do one of these:
  install Docker, or Java 17 and Maven: ${PROGRAM} then runs DynamoDB Local
  cargo install dynoxide-rs, and put its binary dynoxide on the path
  set AWS_ENDPOINT_URL_DYNAMODB to a DynamoDB that runs`;

/**
 * The emulator from npm or the path, otherwise DynamoDB Local by Java or by Docker.
 * @param env DYNAMODB_EMULATOR names one of them
 * @throws Error that says what can be installed, or why DynamoDB Local could not be fetched
 */
export async function dynamodbCommand(wanted: Wanted, env: NodeJS.ProcessEnv = process.env): Promise<EmulatorCommand> {
  const { DYNAMODB_EMULATOR: asked } = env;
  if (asked && !WAYS.includes(asked as Way))
    throw new Error(`DYNAMODB_EMULATOR must be one of ${WAYS.join(', ')}, not '${asked}'`);
  for (const way of WAYS)
    if (!asked || asked === way) {
      const command = await COMMANDS[way](wanted, env);
      if (command) return command;
    }
  throw new Error(asked ? `DYNAMODB_EMULATOR is ${asked}, and this machine does not have that emulator` : NO_EMULATOR);
}

const COMMANDS: Record<Way, (wanted: Wanted, env: NodeJS.ProcessEnv) => Promise<EmulatorCommand | undefined>> = {
  dynoxide: async ({ host, port, dataDir }, env) => {
    const file = fromNpm() ?? onPath('dynoxide', env);
    const storage = dataDir ? ['--db-path', join(dataDir, 'dynamodb.sqlite')] : [];
    if (!file) return undefined;
    return { file, args: ['--host', host, '--port', String(port), ...storage], patienceMs: 10_000 };
  },
  java: async ({ port, dataDir }, env) => {
    const [file, maven] = [onPath('java', env), onPath('mvn', env)];
    const folder = resolve('.holdfast', `dynamodb-local-${VERSION}`);
    if (!file || (!maven && !isFetched(folder)) || !(await isNewEnough(file))) return undefined;
    if (!isFetched(folder)) await fetchOnce(maven ?? '', folder);
    const storage = dataDir ? ['-dbPath', dataDir] : ['-inMemory'];
    const main = 'com.amazonaws.services.dynamodbv2.local.main.ServerRunner';
    const options = ['-port', String(port), ...LOCAL, ...storage];
    return { file, args: ['-cp', join(folder, '*'), main, ...options], patienceMs: 60_000 };
  },
  docker: async ({ host, port, dataDir }, env) => {
    const file = onPath('docker', env);
    if (!file || !(await answers(file, ['info']))) return undefined;
    const volume = dataDir ? ['--user', 'root', '--volume', `${dataDir}:/data`] : [];
    const storage = dataDir ? ['-dbPath', '/data'] : ['-inMemory'];
    const container = ['run', '--rm', '--init', '--publish', `${host}:${port}:8000`, ...volume];
    const local = ['-jar', 'DynamoDBLocal.jar', ...LOCAL, ...storage];
    return { file, args: [...container, `amazon/dynamodb-local:${VERSION}`, ...local], patienceMs: 300_000 };
  },
};

/** npm has it only for Linux on x64. */
function fromNpm(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('@dynoxide/linux-x64/dynoxide');
  } catch {
    return undefined;
  }
}

/** The first program of that name. */
function onPath(name: string, { PATH = '' }: NodeJS.ProcessEnv): string | undefined {
  const endings = process.platform === 'win32' ? ['.exe', '.cmd'] : [''];
  return PATH.split(delimiter)
    .flatMap((folder) => endings.map((ending) => join(folder, name + ending)))
    .find((path) => existsSync(path));
}

const answers = (file: string, args: string[]): Promise<boolean> =>
  promisify(execFile)(file, args, { timeout: 10_000 }).then(
    () => true,
    () => false,
  );

/** Whether a program `java` is Java 17 or newer. On macOS, a program of that name is there without Java, and fails. */
async function isNewEnough(java: string): Promise<boolean> {
  const { stderr } = await promisify(execFile)(java, ['-version'], { timeout: 10_000 }).catch(() => ({ stderr: '' }));
  const [, major] = /version "(?:1\.)?(\d+)/.exec(stderr) ?? [];
  return Number(major) >= 17;
}

const isFetched = (folder: string) => existsSync(join(folder, `DynamoDBLocal-${VERSION}.jar`));

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>holdfast</groupId><artifactId>dynamodb-local</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>com.amazonaws</groupId><artifactId>DynamoDBLocal</artifactId><version>${VERSION}</version></dependency>
  </dependencies>
</project>
`;

/** By folder: `npm test` starts several emulators at once. */
const fetching = new Map<string, Promise<void>>();

function fetchOnce(maven: string, folder: string): Promise<void> {
  const begun = fetching.get(folder) ?? fetchBy(maven, folder);
  fetching.set(folder, begun);
  return begun;
}

/** From Maven Central. Another process may do the same, and finds a whole folder or none. */
async function fetchBy(maven: string, folder: string): Promise<void> {
  console.log(`Fetching DynamoDB Local ${VERSION} by Maven. This is done once.`);
  const own = `${folder}.${process.pid}`;
  await mkdir(own, { recursive: true });
  await writeFile(join(own, 'pom.xml'), POM);
  const args = ['-q', '-B', 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${own}`];
  const options = { cwd: own, timeout: 300_000, shell: process.platform === 'win32' };
  try {
    await promisify(execFile)(maven, args, options);
    await rename(own, folder);
  } catch (error) {
    if (isFetched(folder)) return;
    const { stdout = '', message } = error as Error & { stdout?: string };
    throw new Error(`DynamoDB Local could not be fetched: ${stdout.trim().split('\n')[0] || message}`);
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}
