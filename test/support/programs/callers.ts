import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** One example of docs/callers.md, and how to build and start it. */
export interface Language {
  name: string;
  /** The folder of the build, if there is anything to build. */
  folder: string | undefined;
  /** Whether it can start now. */
  ready: boolean;
  /** Writes the example down and builds it. It fails if the language or its packages are not available here. */
  build(): Promise<void>;
  start: [command: string, ...args: string[]];
}

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'holdfast', 'callers');

/** The last block of a document in each language. */
async function blocksOf(file: string): Promise<Record<string, string>> {
  const blocks = [...(await readFile(file, 'utf8')).matchAll(/^```(\w+)\n(.*?)^```/gms)];
  return Object.fromEntries(blocks.map(([, language = '', text = '']) => [language, text]));
}

export const has = (command: string, ...args: string[]): Promise<boolean> =>
  run(command, args).then(
    () => true,
    () => false,
  );

export async function languages(): Promise<Language[]> {
  const blocks = await blocksOf('docs/callers.md');
  return [
    {
      name: 'curl',
      folder: undefined,
      ready: (await has('curl', '--version')) && (await has('jq', '--version')),
      build: async () => {},
      start: ['bash', '-c', blocks.bash ?? ''],
    },
    built(
      'Go',
      { 'main.go': blocks.go ?? '', 'go.mod': 'module lease\n' },
      {
        commands: [
          ['go', 'mod', 'tidy'],
          ['go', 'build', '-o', 'lease', '.'],
        ],
        makes: 'lease',
        start: (folder) => [join(folder, 'lease')],
      },
    ),
    built(
      'Rust',
      { 'src/main.rs': blocks.rust ?? '', 'Cargo.toml': `${CARGO}\n${blocks.toml}` },
      {
        commands: [['cargo', 'build', '--quiet']],
        makes: 'target/debug/lease',
        start: (folder) => [join(folder, 'target/debug/lease')],
      },
    ),
    built(
      'Java',
      { 'Lease.java': blocks.java ?? '', 'pom.xml': POM.replace('DEPENDENCIES', blocks.xml ?? '') },
      {
        commands: [
          ['mvn', '-q', '-B', 'dependency:copy-dependencies', '-DoutputDirectory=lib'],
          ['javac', '-cp', 'lib/*', 'Lease.java'],
        ],
        makes: 'Lease.class',
        start: (folder) => ['java', '-cp', `${folder}:${folder}/lib/*`, 'Lease'],
      },
    ),
  ];
}

const CARGO = '[package]\nname = "lease"\nversion = "0.0.0"\nedition = "2024"\n';

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>holdfast</groupId><artifactId>lease</artifactId><version>0</version>
  <dependencies>DEPENDENCIES</dependencies>
</project>
`;

interface Build {
  commands: [string, ...string[]][];
  /** The file that is there when all of them have succeeded. */
  makes: string;
  start(folder: string): Language['start'];
}

/** The folder of a build, outside of the checkout. Its name depends on the sources, so that a changed example is built again. */
function built(name: string, sources: Record<string, string>, { commands, makes, start }: Build): Language {
  const digest = createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 16);
  const folder = join(CACHE, `${name.toLowerCase()}-${digest}`);
  return {
    name,
    folder,
    ready: existsSync(join(folder, makes)),
    build: async () => {
      for (const [file, text] of Object.entries(sources)) {
        await mkdir(join(folder, file, '..'), { recursive: true });
        await writeFile(join(folder, file), text);
      }
      for (const [command, ...args] of commands) await run(command, args, { cwd: folder, maxBuffer: 2 ** 26 });
    },
    start: start(folder),
  };
}
