import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM } from './program.ts';

/** The address of an emulator, and the folder of its tables: in memory if `dataDir` is undefined. */
export interface EmulatorAddress {
  host: string;
  port: number;
  dataDir: string | undefined;
}

/** A command that starts a DynamoDB emulator. */
export interface EmulatorCommand {
  file: string;
  args: string[];
  /** How long it may take until the emulator answers, in milliseconds. Docker may have to download it before. */
  patienceMs: number;
}

const VERSION = '2.6.1';

/** The options of DynamoDB Local. Without an allowed origin it would answer the web pages of every origin, so it gets one that does not exist. */
const LOCAL = ['-sharedDb', '-disableTelemetry', '-cors', 'https://nobody.invalid'];

/** The emulators, in order of preference: the stack uses the first one that this machine has. */
const EMULATORS = ['dynoxide', 'java', 'docker'] as const;
type EmulatorName = (typeof EMULATORS)[number];

/** The error on a machine without any of these emulators. */
export const NO_EMULATOR = `there is no DynamoDB emulator for this machine on npm. Do one of these:
  install Docker, or Java 17 and Maven: ${PROGRAM} then runs DynamoDB Local
  cargo install dynoxide-rs, and put its binary dynoxide on the path
  set AWS_ENDPOINT_URL_DYNAMODB to a DynamoDB that runs`;

/**
 * Finds an emulator: dynoxide from npm or the path, otherwise DynamoDB Local with Java or Docker.
 * @param env DYNAMODB_EMULATOR may name one of them
 * @throws Error that says what to install, or why DynamoDB Local could not be downloaded
 */
export async function dynamodbCommand(
  wanted: EmulatorAddress,
  env: NodeJS.ProcessEnv = process.env,
): Promise<EmulatorCommand> {
  const { DYNAMODB_EMULATOR: chosen } = env;
  if (chosen && !EMULATORS.includes(chosen as EmulatorName))
    throw new Error(`DYNAMODB_EMULATOR must be one of ${EMULATORS.join(', ')}, not '${chosen}'`);
  for (const name of EMULATORS)
    if (!chosen || chosen === name) {
      const command = await COMMANDS[name](wanted, env);
      if (command) return command;
    }
  throw new Error(
    chosen ? `DYNAMODB_EMULATOR is ${chosen}, and this machine does not have that emulator` : NO_EMULATOR,
  );
}

const COMMANDS: Record<
  EmulatorName,
  (wanted: EmulatorAddress, env: NodeJS.ProcessEnv) => Promise<EmulatorCommand | undefined>
> = {
  dynoxide: async ({ host, port, dataDir }, env) => {
    const file = fromNpm() ?? onPath('dynoxide', env);
    const storage = dataDir ? ['--db-path', join(dataDir, 'dynamodb.sqlite')] : [];
    if (!file) return undefined;
    return { file, args: ['--host', host, '--port', String(port), ...storage], patienceMs: 10_000 };
  },
  java: async ({ port, dataDir }, env) => {
    const [file, maven] = [onPath('java', env), onPath('mvn', env)];
    const folder = resolve('.holdfast', `dynamodb-local-${VERSION}`);
    if (!file || (!maven && !isDownloaded(folder)) || !(await isNewEnough(file))) return undefined;
    if (!isDownloaded(folder)) await downloadTogether(maven ?? '', folder);
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

/** The dynoxide of npm, which exists only for Linux on x64. */
function fromNpm(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('@dynoxide/linux-x64/dynoxide');
  } catch {
    return undefined;
  }
}

/** The first program of that name on the path. */
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

/** True if a program `java` is Java 17 or newer. On macOS, there is a program of that name even without Java, which fails. */
async function isNewEnough(java: string): Promise<boolean> {
  const { stderr } = await promisify(execFile)(java, ['-version'], { timeout: 10_000 }).catch(() => ({ stderr: '' }));
  const [, major] = /version "(?:1\.)?(\d+)/.exec(stderr) ?? [];
  return Number(major) >= 17;
}

const isDownloaded = (folder: string) => existsSync(join(folder, `DynamoDBLocal-${VERSION}.jar`));

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>holdfast</groupId><artifactId>dynamodb-local</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>com.amazonaws</groupId><artifactId>DynamoDBLocal</artifactId><version>${VERSION}</version></dependency>
  </dependencies>
</project>
`;

/** The downloads that are under way, by folder, because `npm test` starts several emulators at the same time. */
const downloads = new Map<string, Promise<void>>();

/** Downloads it, or joins a download of this process that is under way. */
function downloadTogether(maven: string, folder: string): Promise<void> {
  const begun = downloads.get(folder) ?? download(maven, folder);
  downloads.set(folder, begun);
  return begun;
}

/** Downloads DynamoDB Local from Maven Central. Another process may do the same, and must find a complete folder or none. */
async function download(maven: string, folder: string): Promise<void> {
  console.log(`Downloading DynamoDB Local ${VERSION} by Maven, for this and later starts.`);
  const temporaryFolder = `${folder}.${process.pid}`;
  await mkdir(temporaryFolder, { recursive: true });
  await writeFile(join(temporaryFolder, 'pom.xml'), POM);
  const args = [
    '-q',
    '-B',
    'dependency:copy-dependencies',
    '-DincludeScope=runtime',
    `-DoutputDirectory=${temporaryFolder}`,
  ];
  const options = { cwd: temporaryFolder, timeout: 300_000, shell: process.platform === 'win32' };
  try {
    await promisify(execFile)(maven, args, options);
    await rename(temporaryFolder, folder);
  } catch (error) {
    if (isDownloaded(folder)) return;
    const { stdout = '', message } = error as Error & { stdout?: string };
    throw new Error(`DynamoDB Local could not be downloaded: ${stdout.trim().split('\n')[0] || message}`);
  } finally {
    await rm(temporaryFolder, { recursive: true, force: true });
  }
}
