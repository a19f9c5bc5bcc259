import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, expect, it } from 'vitest';
import { dynamodbCommand } from '../../local/dynamodb-command.ts';
import { createBuckets, startS3 } from '../../local/s3.ts';
import { s3Client } from '../../shared/aws/s3.ts';

const folder = await mkdtemp(join(tmpdir(), 'holdfast-path-'));
afterAll(() => rm(folder, { recursive: true }));

/** A PATH with programs that do nothing but say which Java they are, and end with this code. */
async function pathWith(code: number, ...names: string[]): Promise<string> {
  const path = await mkdtemp(join(folder, 'bin-'));
  for (const name of names) {
    const said = name === 'java' ? `echo 'openjdk version "17.0.15" 2025-04-15' >&2\nexit 0` : `exit ${code}`;
    await writeFile(join(path, name), `#!/bin/sh\n${said}\n`);
    await chmod(join(path, name), 0o755);
  }
  return path;
}

/** The folder of DynamoDB Local is below the current folder. */
async function inFolder(name: string, act: (here: string) => Promise<void>): Promise<void> {
  const before = process.cwd();
  const here = join(folder, name);
  await mkdir(here, { recursive: true });
  process.chdir(here);
  try {
    await act(here);
  } finally {
    process.chdir(before);
  }
}

const wanted = { host: '127.0.0.1', port: 8000, dataDir: undefined };
/** DynamoDB Local answers pages of every origin without it. */
const NO_PAGES = '-cors https://nobody.invalid';
const kept = { ...wanted, dataDir: '/data/of/mine' };

it('the command starts the emulator of npm, or one on the path', async () => {
  const { file, args } = await dynamodbCommand(kept, { PATH: await pathWith(0, 'dynoxide') });
  expect(file).toMatch(/dynoxide$/);
  expect(args).toEqual(['--host', '127.0.0.1', '--port', '8000', '--db-path', '/data/of/mine/dynamodb.sqlite']);
});

it('the command runs DynamoDB Local by Docker if Docker is there, and answers', async () => {
  const PATH = await pathWith(0, 'docker');
  const { file, args } = await dynamodbCommand(kept, { PATH, DYNAMODB_EMULATOR: 'docker' });
  expect(file).toBe(join(PATH, 'docker'));
  expect(args.join(' ')).toContain('--publish 127.0.0.1:8000:8000');
  expect(args.join(' ')).toContain('--volume /data/of/mine:/data amazon/dynamodb-local:2.6.1');
  expect(args.join(' ')).toContain(`-sharedDb -disableTelemetry ${NO_PAGES} -dbPath /data`);
  const inMemory = await dynamodbCommand(wanted, { PATH, DYNAMODB_EMULATOR: 'docker' });
  expect(inMemory.args.slice(-1)).toEqual(['-inMemory']);
  // The command is there, and the daemon does not run.
  const PATH_WITHOUT_DAEMON = await pathWith(1, 'docker');
  await expect(dynamodbCommand(wanted, { PATH: PATH_WITHOUT_DAEMON, DYNAMODB_EMULATOR: 'docker' })).rejects.toThrow(
    'DYNAMODB_EMULATOR is docker, and this machine does not have that emulator',
  );
});

it('the command runs DynamoDB Local by Java if Maven has fetched it', () =>
  inFolder('fetched', async (here) => {
    await mkdir(join(here, '.holdfast/dynamodb-local-2.6.1'), { recursive: true });
    await writeFile(join(here, '.holdfast/dynamodb-local-2.6.1/DynamoDBLocal-2.6.1.jar'), '');
    const PATH = await pathWith(0, 'java');
    const { file, args } = await dynamodbCommand(kept, { PATH, DYNAMODB_EMULATOR: 'java' });
    expect(file).toBe(join(PATH, 'java'));
    const options = `-port 8000 -sharedDb -disableTelemetry ${NO_PAGES} -dbPath /data/of/mine`;
    expect(args.slice(2).join(' ')).toBe(`com.amazonaws.services.dynamodbv2.local.main.ServerRunner ${options}`);
  }));

it('the command fetches DynamoDB Local by Maven once for all callers', () =>
  inFolder('not fetched', async (here) => {
    const PATH = await pathWith(0, 'java');
    // Like Maven, this writes the jars into the folder that an option names.
    const maven = `#!/bin/sh
echo called >> '${here}/calls'
for one; do case $one in -DoutputDirectory=*) touch "\${one#*=}/DynamoDBLocal-2.6.1.jar";; esac; done
`;
    await writeFile(join(PATH, 'mvn'), maven, { mode: 0o755 });
    const env = { PATH: `${PATH}:/usr/bin:/bin`, DYNAMODB_EMULATOR: 'java' };
    const commands = await Promise.all([1, 2, 3].map((port) => dynamodbCommand({ ...wanted, port }, env)));
    expect(new Set(commands.map(({ file }) => file))).toEqual(new Set([join(PATH, 'java')]));
    expect(await readFile(join(here, 'calls'), 'utf8')).toBe('called\n');
    expect(await readdir(join(here, '.holdfast'))).toEqual(['dynamodb-local-2.6.1']);
  }));

it.each([
  ['1.8.0_402', false],
  ['11.0.22', false],
  ['17', true],
  ['21.0.1', true],
  ['nothing', false],
])('the command uses Java %s for DynamoDB Local: %s', (version, isUsed) =>
  inFolder(version, async () => {
    const PATH = await pathWith(1, 'mvn');
    await writeFile(join(PATH, 'java'), `#!/bin/sh\necho 'openjdk version "${version}"' >&2\n`, { mode: 0o755 });
    const asked = dynamodbCommand(wanted, { PATH, DYNAMODB_EMULATOR: 'java' });
    // Maven fails here, so a Java that is new enough ends in that failure.
    await expect(asked).rejects.toThrow(
      isUsed ? /could not be downloaded/ : /this machine does not have that emulator/,
    );
  }),
);

it('the command says why DynamoDB Local could not be downloaded', () =>
  inFolder('elsewhere', async () => {
    const PATH = await pathWith(1, 'java', 'mvn');
    await expect(dynamodbCommand(wanted, { PATH, DYNAMODB_EMULATOR: 'java' })).rejects.toThrow(
      /^DynamoDB Local could not be downloaded: /,
    );
  }));

it('the command refuses an unknown emulator, and says what could be installed', async () => {
  await expect(dynamodbCommand(wanted, { PATH: '', DYNAMODB_EMULATOR: 'localstack' })).rejects.toThrow(
    "DYNAMODB_EMULATOR must be one of dynoxide, java, docker, not 'localstack'",
  );
  const { NO_EMULATOR } = await import('../../local/dynamodb-command.ts');
  expect(NO_EMULATOR).toContain('cargo install dynoxide-rs');
});

it('the S3 emulator keeps objects in DATA_DIR between runs, and their conditions', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdfast-s3-'));
  const object = { Bucket: 'kept', Key: 'a'.repeat(1000) };
  const create = new PutObjectCommand({ ...object, Body: 'one', Metadata: { a: 'b' }, IfNoneMatch: '*' });
  try {
    for (const expected of ['ok', 'PreconditionFailed']) {
      const emulator = await startS3(0, dataDir);
      const s3 = s3Client({ endpoint: emulator.endpoint });
      await createBuckets(emulator.endpoint, ['kept']);
      const outcome = await s3.send(create).then(
        () => 'ok',
        ({ name }) => name,
      );
      expect(outcome).toBe(expected);
      expect(await s3.send(new HeadObjectCommand(object))).toMatchObject({ Metadata: { a: 'b' }, ContentLength: 3 });
      s3.destroy();
      await emulator.stop();
    }
  } finally {
    await rm(dataDir, { recursive: true });
  }
});
