import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import {
  CreateTableCommand,
  DynamoDBClient,
  ListTablesCommand,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import type { TableDefinition } from '../infrastructure/read.ts';
import { dynamodbCommand } from './dynamodb-command.ts';
import { type Emulator, refusedBy } from './emulator.ts';
import { startGate } from './gate.ts';
import { portClosedToBrowsers } from './ports.ts';

/**
 * Starts the emulator behind a gate, because the emulator itself would answer web pages. So that pages cannot reach it directly, it listens on a port
 * that browsers do not call, and on Linux at a random address, because all of 127.0.0.0/8 is this machine.
 */
export async function startGatedDynamodb(port: number, dataDir?: string): Promise<Emulator> {
  const part = () => randomInt(1, 255);
  const host = process.platform === 'linux' ? `127.${part()}.${part()}.${part()}` : '127.0.0.1';
  return startGate(await startDynamodb(await portClosedToBrowsers(host), dataDir, host), port);
}

/** Starts the emulator. @param dataDir the folder that keeps the tables between runs; undefined to keep them in memory */
export async function startDynamodb(port: number, dataDir?: string, host = '127.0.0.1'): Promise<Emulator> {
  if (dataDir) await mkdir(dataDir, { recursive: true });
  const { file, args, patienceMs } = await dynamodbCommand({ host, port, dataDir });
  const child = spawnWatched(file, args);
  // On Windows nothing watches this process, so the emulator ends with it, except if this process is killed.
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  const endpoint = `http://${host}:${port}`;
  try {
    await untilItAnswers(endpoint, child, patienceMs);
  } catch (error) {
    await stop(child);
    throw error;
  }
  const unexpected = () => console.error('the DynamoDB emulator has stopped');
  child.once('exit', unexpected);
  return {
    endpoint,
    stop: () => {
      child.off('exit', unexpected);
      return stop(child);
    },
  };
}

/**
 * A script for a shell that leaves a watcher in the process group of the command, and then becomes the command. The watcher reads a pipe whose other end
 * only this process has: when this process ends, even by SIGKILL, the watcher ends the group. A line in the pipe means that the command has ended by
 * itself. SIGTERM comes first, because Docker needs it to stop a container.
 */
const WITH_WATCHER = `(
  trap '' TERM
  read -r over <&3 && exit
  kill -TERM 0
  sleep 2
  kill -KILL 0
) >/dev/null 2>&1 &
exec 3<&-
exec "$@"`;

/** Starts the emulator in a process group of its own, so that Ctrl-C reaches only this process, which stops the emulator when nothing uses it any more. */
function spawnWatched(file: string, args: string[]): ChildProcess {
  if (process.platform === 'win32') return spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  const stdio = ['ignore', 'ignore', 'pipe', 'pipe'] as const;
  const child = spawn('/bin/sh', ['-c', WITH_WATCHER, 'dynamodb', file, ...args], {
    stdio: [...stdio],
    detached: true,
  });
  const pipe = child.stdio[3] as Duplex;
  pipe.on('error', () => {}); // the watcher has ended with its group
  child.once('exit', () => pipe.end('over\n'));
  return child;
}

async function untilItAnswers(endpoint: string, child: ChildProcess, patienceMs: number): Promise<void> {
  let complaint = '';
  child.stderr?.on('data', (chunk) => {
    complaint = (complaint + chunk).slice(-1000);
  });
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = new Error(`the DynamoDB emulator cannot be started: ${error.message}`);
  });
  child.once('exit', (code) => {
    failure ??= new Error(`the DynamoDB emulator stopped (exit code ${code}): ${complaint.trim()}`);
  });
  const dynamodb = localClient(endpoint);
  for (const startedAt = Date.now(); ; await delay(10)) {
    if (failure) throw failure;
    const silence = await dynamodb.send(new ListTablesCommand({})).then(
      () => undefined,
      (error: Error) => error,
    );
    if (!silence) break;
    if (Date.now() - startedAt > patienceMs)
      throw new Error(`the DynamoDB emulator did not answer at ${endpoint}: ${silence.message}`);
  }
  dynamodb.destroy();
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 2000);
  await ended;
  clearTimeout(timer);
}

const localClient = (endpoint: string) => new DynamoDBClient({ endpoint, maxAttempts: 1 });

/** Creates the tables that do not exist yet, with their TTL. */
export async function createTables(endpoint: string, tables: TableDefinition[]): Promise<void> {
  const dynamodb = localClient(endpoint);
  for (const { definition, ttlAttribute } of tables) {
    try {
      await dynamodb.send(new CreateTableCommand(definition));
    } catch (error) {
      if (error instanceof ResourceInUseException) continue;
      refusedBy(endpoint, `CreateTable of ${definition.TableName}`)(error as Error);
    }
    if (ttlAttribute)
      await dynamodb
        .send(
          new UpdateTimeToLiveCommand({
            TableName: definition.TableName,
            TimeToLiveSpecification: { AttributeName: ttlAttribute, Enabled: true },
          }),
        )
        .catch(refusedBy(endpoint, `UpdateTimeToLive of ${definition.TableName}`));
  }
  dynamodb.destroy();
}
