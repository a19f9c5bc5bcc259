import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { bundle } from '../build/bundle.ts';
import { readService } from '../local/service.ts';
import { type Figure, type Measurement, median, type Options, ratio, shuffle } from './measurement.ts';

/** A client made at load, as every function makes its own, and the commands. */
const sdk = (client: string, from: string, commands: string[]) =>
  `import { ${client} } from '${from}';\nexport { ${commands} } from '${from}';\nexport const of${client} = new ${client}({});\n`;
const dynamodb = (...commands: string[]) => sdk('DynamoDBClient', '@aws-sdk/client-dynamodb', commands);
const sfn = (...commands: string[]) => sdk('SFNClient', '@aws-sdk/client-sfn', commands);
const s3 = (...commands: string[]) => sdk('S3Client', '@aws-sdk/client-s3', commands);

const TELL = ['SendTaskSuccessCommand', 'SendTaskFailureCommand'];

/** What each function sends: its bundle is compared with one of the clients and these commands alone. */
const BARE: Record<string, string> = {
  acquire: dynamodb('PutItemCommand', 'GetItemCommand'),
  heartbeat: dynamodb('UpdateItemCommand'),
  release: dynamodb('UpdateItemCommand'),
  breakLease: dynamodb('UpdateItemCommand'),
  readLeases: dynamodb('GetItemCommand', 'ScanCommand'),
  commit:
    dynamodb('PutItemCommand', 'UpdateItemCommand', 'GetItemCommand') +
    s3(
      ...['HeadObjectCommand', 'PutObjectCommand', 'CopyObjectCommand', 'CreateMultipartUploadCommand'],
      ...['UploadPartCopyCommand', 'CompleteMultipartUploadCommand', 'AbortMultipartUploadCommand'],
    ),
  stageUpload: `${s3('PutObjectCommand')}export { getSignedUrl } from '@aws-sdk/s3-request-presigner';\n`,
  readCommit: dynamodb('GetItemCommand') + s3('HeadObjectCommand'),
  cancelWaiter: dynamodb('GetItemCommand', 'DeleteItemCommand') + sfn('SendTaskFailureCommand'),
  repairQueues:
    dynamodb('GetItemCommand', 'UpdateItemCommand', 'ScanCommand', 'QueryCommand', 'DeleteItemCommand') +
    sfn(...TELL, 'DescribeExecutionCommand'),
  executionEnded:
    dynamodb('GetItemCommand', 'UpdateItemCommand', 'QueryCommand', 'DeleteItemCommand') +
    sfn(...TELL, 'DescribeExecutionCommand'),
  publish: dynamodb('UpdateItemCommand', 'TransactWriteItemsCommand', 'QueryCommand'),
  readNames: dynamodb('QueryCommand', 'BatchGetItemCommand'),
};

/** What a function sends only when somebody is parked, and so loads only then; its bare bundle does the same. */
const LATER: Record<string, string> = {
  acquire: dynamodb('UpdateItemCommand', 'QueryCommand', 'DeleteItemCommand') + sfn(...TELL),
  release: dynamodb('QueryCommand', 'DeleteItemCommand') + sfn(...TELL),
  breakLease: dynamodb('QueryCommand', 'DeleteItemCommand', 'GetItemCommand') + sfn(...TELL),
  readLeases: dynamodb('QueryCommand'),
};

interface Contest {
  name: string;
  built: string;
  /** The folder of the SDK alone. */
  bare: string;
}

const size: Measurement = {
  name: 'size',
  title: 'Bundle size, and its ratio to the clients alone with the same commands',
  method:
    'minified, not compressed, same build options; loaded: files that importing index.mjs loads; all: the whole zip',
  run: () =>
    withContests(async (contests) => {
      const figures = contests.map(async ({ name, built, bare }): Promise<Figure[]> => {
        const loaded = await bytes(built, await loadedFiles(built));
        const all = await bytes(built, await scripts(built));
        return [
          { what: `${name}, loaded / all`, value: `${kilobytes(loaded)} / ${kilobytes(all)}` },
          ratio(`${name} loaded ratio`, loaded / (await bytes(bare, await loadedFiles(bare))), 1.45),
          ratio(`${name} all ratio`, all / (await bytes(bare, await scripts(bare))), 1.45),
        ];
      });
      return (await Promise.all(figures)).flat();
    }),
};

const importTime: Measurement = {
  name: 'import',
  title: 'Import time, and its ratio to the clients alone with the same commands',
  method:
    'import() of index.mjs in fresh Node processes, in pairs of random order; medians, and the median ratio of the pairs; both sides make their clients at load',
  run: (options) => withContests((contests) => importFigures(contests, options)),
};

/** Where the bar cannot be kept, and why. */
const EXPLAINED: Record<string, string> = {
  publish: 'one function holds the schemas and rules of eleven operations; splitting it would be eleven functions',
};

async function importFigures(contests: Contest[], { quick, progress }: Options): Promise<Figure[]> {
  const rounds = quick ? 5 : 45;
  const samples = contests.map((contest) => ({ contest, pairs: [] as { built: number; bare: number }[] }));
  for (let round = 1; round <= rounds; round++) {
    progress(`import: round ${round} of ${rounds}`);
    for (const { contest, pairs } of shuffle([...samples])) {
      const pair = { built: 0, bare: 0 };
      for (const side of shuffle<keyof typeof pair>(['built', 'bare'])) pair[side] = await importOnce(contest[side]);
      pairs.push(pair);
    }
  }
  return samples.flatMap(({ contest: { name }, pairs }) => {
    const [built, alone] = [median(pairs.map((pair) => pair.built)), median(pairs.map(({ bare }) => bare))];
    return [
      { what: `${name}, function / alone`, value: `${built.toFixed(1)} / ${alone.toFixed(1)} ms` },
      // Of neighbours in time, so that what else the machine did weighs on both.
      ratio(`${name} ratio`, median(pairs.map((pair) => pair.built / pair.bare)), 1.3, EXPLAINED[name]),
    ];
  });
}

const IMPORT = `
  const startedAt = performance.now();
  await import(process.argv[1]);
  const endedAt = performance.now();
  console.log(endedAt - startedAt);
`;

async function importOnce(folder: string): Promise<number> {
  const { environment } = await readService('bench');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', IMPORT, join(folder, 'index.mjs')],
    { env: { ...environment, AWS_REGION: 'us-east-1', AWS_LAMBDA_FUNCTION_NAME: 'bench' } },
  );
  return Number(stdout);
}

/** Builds what the functions are compared with, for as long as `measure` takes. */
async function withContests(measure: (contests: Contest[]) => Promise<Figure[]>): Promise<Figure[]> {
  const { functions } = await readService();
  const root = await mkdtemp(join(resolve('dist'), 'bare-')); // inside the project, where modules are found
  try {
    const contests = functions.map(async ({ name, bundle: built }): Promise<Contest> => {
      const source = BARE[name];
      if (!source) throw new Error(`bench/bundles.ts does not know which commands ${name} sends`);
      return { name, built: resolve(built), bare: await bareBundle(root, name, source, LATER[name]) };
    });
    return await measure(await Promise.all(contests));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function bareBundle(root: string, name: string, source: string, later?: string): Promise<string> {
  const folder = join(root, name);
  if (later) await writeFile(`${folder}.later.ts`, later);
  const loads = later ? `export const later = () => import('./${name}.later.ts');\n` : '';
  await writeFile(`${folder}.ts`, source + loads);
  await bundle(`${folder}.ts`, folder);
  return folder;
}

const scripts = async (folder: string) => (await readdir(folder)).filter((file) => file.endsWith('.mjs'));

/** What index.mjs imports at once, directly or not; files behind import() are loaded later or never. */
async function loadedFiles(folder: string, file = 'index.mjs', found = new Set<string>()): Promise<Set<string>> {
  if (found.has(file)) return found;
  found.add(file);
  const code = await readFile(join(folder, file), 'utf8');
  for (const [, next = ''] of code.matchAll(/(?:\bfrom|\bimport)\s*"\.\/([^"]+\.mjs)"/g))
    await loadedFiles(folder, next, found);
  return found;
}

async function bytes(folder: string, files: Iterable<string>): Promise<number> {
  let sum = 0;
  for (const file of files) sum += (await stat(join(folder, file))).size;
  return sum;
}

const kilobytes = (value: number) => `${(value / 1000).toFixed(0)} kB`;

export const bundleMeasurements: Measurement[] = [size, importTime];
