import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { readService, type Service } from '../../../infrastructure/read.ts';
import { startDynamodb } from '../../../local/dynamodb.ts';
import { dynamodbCommand } from '../../../local/dynamodb-command.ts';
import { givenOr } from '../../../local/emulator.ts';
import { freePort } from '../../../local/ports.ts';
import { startS3 } from '../../../local/s3.ts';
import { testSeed } from '../chance/seed.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** An emulator for each worker, because with each table an emulator takes longer to make the next one. */
    dynamodbEndpoints: string[];
    /** Whether the emulator counts the units of transactions and empty reads as AWS does. DynamoDB Local does not. */
    countsUnits: boolean;
    /** AWS_ENDPOINT_URL_S3 if it is set, else an emulator. */
    s3Endpoint: string;
    s3IsEmulator: boolean;
    /** A folder with a file for each function, which names the commands that the tests saw it send. */
    seenCommands: string;
    /** A folder for what happens once in this run (once.ts). */
    sharedFolder: string;
    /** The service of serverless.yml in the stage `test`. Reading it takes as long as the tests of a small file. */
    service: Service;
  }
}

let running: ReturnType<typeof start> | undefined;

/** The emulators and one record of commands for the whole run, whatever the number of projects. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  running ??= start(project.vitest.config.maxWorkers as number);
  const { dynamodbEndpoints, countsUnits, s3Endpoint, s3IsEmulator, ...more } = await running;
  const { seenCommands, sharedFolder, service, stop } = more;
  project.provide('dynamodbEndpoints', dynamodbEndpoints);
  project.provide('countsUnits', countsUnits);
  project.provide('s3Endpoint', s3Endpoint);
  project.provide('s3IsEmulator', s3IsEmulator);
  project.provide('seenCommands', seenCommands);
  project.provide('sharedFolder', sharedFolder);
  project.provide('service', service);
  return stop;
}

/** What the tests of one run share. @param workers how many emulators of DynamoDB there are */
export async function start(workers = 1) {
  // All workers have the same seed. Otherwise each could leave out what it expects another to play.
  process.env.SEED ??= String(testSeed());
  // The SDK that creates the tables needs a region and credentials, though the emulators do not.
  process.env.AWS_REGION ??= 'us-east-1';
  process.env.AWS_ACCESS_KEY_ID ??= 'test';
  process.env.AWS_SECRET_ACCESS_KEY ??= 'test';
  const ports = await Promise.all(Array.from({ length: workers }, freePort));
  const emulators = await Promise.all(ports.map((port) => startDynamodb(port)));
  const { file } = await dynamodbCommand({ host: '127.0.0.1', port: 0, dataDir: undefined });
  const isDynoxide = /dynoxide(\.exe)?$/.test(file);
  const s3 = await givenOr('AWS_ENDPOINT_URL_S3', async () => startS3(await freePort()));
  const service = await readService('test');
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-test-'));
  // Node strips the types of each file once for all the processes that the tests start, in this run and later ones.
  process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'holdfast-compiled');
  const seenCommands = join(folder, 'seen');
  const sharedFolder = join(folder, 'shared');
  for (const made of [seenCommands, sharedFolder]) await mkdir(made);
  return {
    dynamodbEndpoints: emulators.map(({ endpoint }) => endpoint),
    countsUnits: isDynoxide,
    s3Endpoint: s3.endpoint,
    s3IsEmulator: !process.env.AWS_ENDPOINT_URL_S3,
    seenCommands,
    sharedFolder,
    service,
    stop: async () => {
      await Promise.all(emulators.map(({ stop }) => stop()));
      await s3.stop();
      // A process that ends may still write there.
      await rm(folder, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}
