import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startDynamodb } from '../../local/dynamodb.ts';
import { freePort } from '../../local/ports.ts';

declare module 'vitest' {
  interface ProvidedContext {
    dynamodbEndpoint: string;
    /** Folder with a file for each function, naming the commands that it was seen to send. */
    seenCommands: string;
  }
}

let running: Promise<{ dynamodbEndpoint: string; seenCommands: string; stop(): Promise<void> }> | undefined;

/** One emulator and one record of commands for the whole run, whatever the number of projects. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  running ??= start();
  const { dynamodbEndpoint, seenCommands, stop } = await running;
  project.provide('dynamodbEndpoint', dynamodbEndpoint);
  project.provide('seenCommands', seenCommands);
  return stop;
}

async function start() {
  // The emulator needs neither, but the SDK that creates its tables does.
  process.env.AWS_REGION ??= 'us-east-1';
  process.env.AWS_ACCESS_KEY_ID ??= 'test';
  process.env.AWS_SECRET_ACCESS_KEY ??= 'test';
  const emulator = await startDynamodb(await freePort());
  const seenCommands = await mkdtemp(join(tmpdir(), 'holdfast-seen-'));
  return {
    dynamodbEndpoint: emulator.endpoint,
    seenCommands,
    stop: async () => {
      await emulator.stop();
      await rm(seenCommands, { recursive: true, force: true });
    },
  };
}
