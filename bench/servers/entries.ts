import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRIES, type Entry, isThere } from '../contestants.ts';
import { isOnPath, JARS, type ServerName, versionOf } from './launch.ts';

/** A contestant with the server that keeps its locks. */
export interface ServerEntry extends Entry {
  server: ServerName;
  /** The program on the path that starts the server. */
  program?: string;
}

const libraries = (path: string) => join(import.meta.dirname, '../libraries', path);
const peer = { expires: true, byDefault: true, waits: true, beats: false };
const moduleVersion = (module: string): string =>
  `${module} ${JSON.parse(readFileSync(libraries(`node_modules/${module}/package.json`), 'utf8')).version}`;

const redis = (name: string, kind: string, module: string): ServerEntry => ({
  ...{ ...peer, name, kind: 'npm', server: 'redis', program: 'redis-server' },
  command: [process.execPath, libraries('redis.mjs')],
  env: { LOCK_KIND: kind },
  needs: { file: libraries(`node_modules/${module}/package.json`), how: 'npm run verify -- bench-libraries' },
  library: () => `${moduleVersion(module)} on ${versionOf('redis')}`,
});

const jar = (name: string): string | undefined =>
  readdirSync(JARS).flatMap((file) => new RegExp(`^${name}-(\\d.*)\\.jar$`).exec(file)?.[1] ?? [])[0];

const PEERS: ServerEntry[] = [
  {
    ...{ ...peer, name: 'etcd concurrency.Mutex', kind: 'other', server: 'etcd', program: 'etcd' },
    command: [libraries('etcd/target/etcd-contestant')],
    needs: { file: libraries('etcd/target/etcd-contestant'), how: 'npm run verify -- bench-libraries, with go' },
    library: () => {
      const [, version] = /client\/v3 v(\S+)/.exec(readFileSync(libraries('etcd/go.mod'), 'utf8')) ?? [];
      return `etcd client ${version} on ${versionOf('etcd')}`;
    },
  },
  redis('redlock-universal', 'redlock-universal', 'redlock-universal'),
  redis('redis-semaphore Mutex', 'Mutex', 'redis-semaphore'),
  redis('redis-semaphore Semaphore of 1', 'Semaphore', 'redis-semaphore'),
  {
    ...{ ...peer, name: 'Curator InterProcessMutex', kind: 'other', server: 'zookeeper', program: 'java' },
    command: [
      ...['java', '-cp', `${libraries('java/target/contestant.jar')}:${join(JARS, '*')}`],
      'holdfast.bench.CuratorContestant',
    ],
    needs: {
      file: libraries('java/target/contestant.jar'),
      how: 'npm run verify -- bench-libraries, with mvn and a JDK from 17',
    },
    library: () => `Curator ${jar('curator-recipes')} on ZooKeeper ${jar('zookeeper')}`,
  },
];

/** The client of Holdfast with heartbeats, which takes part in measurements of holders. */
const CLIENT: ServerEntry = {
  ...{ ...peer, name: 'holdfast client', kind: 'ours', server: 'dynamodb' },
  command: [process.execPath, '{bundled}/client/index.mjs'],
};

const isRunnable = (entry: ServerEntry) => isThere(entry) && (!entry.program || isOnPath(entry.program));

const runnable = (): ServerEntry[] => PEERS.filter(isRunnable);

/** The contestants whose speed is compared. */
export const speedEntries = (): ServerEntry[] => [
  ...ENTRIES.filter(({ name }) => ['floor', 'holdfast'].includes(name)).map(
    (entry): ServerEntry => ({ ...entry, server: 'dynamodb' }),
  ),
  ...runnable(),
];

/** The contestants that suffer faults. */
export const faultEntries = (): ServerEntry[] => [CLIENT, ...runnable()];

/** The servers and libraries that can run here, with their versions. */
export const serverLibraries = (): string[] => runnable().flatMap(({ library }) => (library ? [library()] : []));

/** The contestants that cannot run here, each with the reason. */
export const absentServers = (): string[] =>
  PEERS.filter((entry) => !isRunnable(entry)).map(({ name, needs, program = '' }) => {
    const how = existsSync(needs?.file ?? '') ? `there is no ${program} on the path` : `${needs?.how} brings it`;
    return `${name}: left out; ${how}`;
  });
