import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readService } from '../../infrastructure/read.ts';
import { createTables, startDynamodb } from '../../local/dynamodb.ts';
import { freePort } from '../../local/ports.ts';
import { endsWithUs } from '../children.ts';

/** A server that keeps locks. */
export type ServerName = 'dynamodb' | 'etcd' | 'redis' | 'zookeeper';

export interface LockServer {
  /** host:port */
  address: string;
  /** Kills the server, and starts it at the same address without its data. */
  restartWithoutDisk(): Promise<void>;
  stop(): Promise<void>;
}

export const JARS = join(import.meta.dirname, '../libraries/java/target/lib');

interface Launched {
  port: number;
  folder: string;
}

/** Each server has its defaults, except for the port, the folder of the data, and a ZooKeeper tick that allows sessions of two seconds. */
const COMMANDS: Record<Exclude<ServerName, 'dynamodb'>, (launched: Launched & { peerPort: number }) => string[]> = {
  etcd: ({ port, folder, peerPort }) => {
    const [url, peers] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
    return [
      ...['etcd', '--data-dir', folder, '--listen-client-urls', url, '--advertise-client-urls', url],
      ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers, '--initial-cluster', `default=${peers}`],
    ];
  },
  redis: ({ port, folder }) => ['redis-server', '--bind', '127.0.0.1', '--port', String(port), '--dir', folder],
  zookeeper: ({ port, folder }) => [
    ...['java', '-cp', join(JARS, '*'), '-Dzookeeper.admin.enableServer=false'],
    ...['-Dzookeeper.clientPortAddress=127.0.0.1', 'org.apache.zookeeper.server.ZooKeeperServerMain'],
    ...[String(port), folder, '1000'],
  ],
};

export const isOnPath = (program: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));

/** The name and version of a server that is installed. */
export function versionOf(server: 'etcd' | 'redis'): string {
  const [command, pattern] = {
    etcd: ['etcd', /etcd Version: (\S+)/] as const,
    redis: ['redis-server', /v=(\S+)/] as const,
  }[server];
  return `${server} ${pattern.exec(execFileSync(command, ['--version'], { encoding: 'utf8' }))?.[1]}`;
}

/** @throws Error if the server ends, or does not listen within half a minute */
export async function launch(server: ServerName): Promise<LockServer> {
  return server === 'dynamodb' ? launchDynamodb() : launchProgram(server);
}

async function launchProgram(server: Exclude<ServerName, 'dynamodb'>): Promise<LockServer> {
  const [port, peerPort] = [await freePort(), await freePort()];
  const start = async () => {
    const folder = await mkdtemp(join(tmpdir(), `holdfast-bench-${server}-`));
    const [program = '', ...rest] = COMMANDS[server]({ port, folder, peerPort });
    const child = endsWithUs(spawn(program, rest, { stdio: 'ignore' }));
    const ended = once(child, 'exit');
    const stop = async () => {
      child.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    };
    for (let tries = 0; !(await isListening(port)); tries++) {
      if (child.exitCode !== null || tries > 600) {
        await stop();
        throw new Error(`${server} did not start`);
      }
      await delay(50);
    }
    return stop;
  };
  let stop = await start();
  return {
    address: `127.0.0.1:${port}`,
    restartWithoutDisk: async () => {
      await stop();
      stop = await start();
    },
    stop: () => stop(),
  };
}

/** The emulator keeps its tables in memory. DynamoDB keeps each write on three disks, so nothing like this restart happens on AWS. */
async function launchDynamodb(): Promise<LockServer> {
  const port = await freePort();
  const { tables } = await readService('bench');
  const start = async () => {
    const emulator = await startDynamodb(port);
    await createTables(emulator.endpoint, tables);
    return emulator;
  };
  let emulator = await start();
  return {
    address: `127.0.0.1:${port}`,
    restartWithoutDisk: async () => {
      await emulator.stop();
      emulator = await start();
    },
    stop: () => emulator.stop(),
  };
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (listens: boolean) => () => {
      socket.destroy();
      resolve(listens);
    };
    socket.once('connect', settle(true)).once('error', settle(false));
  });
