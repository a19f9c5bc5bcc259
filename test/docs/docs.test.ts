import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import tokens from 'js-tokens';
import { afterEach, describe, expect, it } from 'vitest';
import { alarms } from '../../infrastructure/alarms.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { runExamples } from '../support/programs/examples.ts';
import { isFull } from '../support/time/rounds.ts';
import { wholeApi } from '../support/worlds/client-worlds.ts';

let stop = async () => {};
afterEach(() => stop());

/** Everything that a fresh `npm start` serves. */
async function freshApi(): Promise<string> {
  const api = await wholeApi();
  stop = api.stop;
  return api.url;
}

const configuration = await readFile('docs/configuration.md', 'utf8');

describe('the commands of the pages', () => {
  it.runIf(isFull).each([
    ['docs/commits.md', 13],
    ['docs/nameservice.md', 11],
    ['docs/expiry.md', 5],
  ])('the commands of %s give the answers that are written below them', async (file, least) => {
    const count = await runExamples(await readFile(file, 'utf8'), await freshApi(), ['LICENSE']);
    expect(count).toBeGreaterThanOrEqual(least);
  });
});

it.runIf(isFull)('docs/operations.md signs the calls of operators, and the functions take them', async () => {
  const blocks = [...(await readFile('docs/operations.md', 'utf8')).matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(
    ([, text]) => text,
  );
  const definition = blocks.find((block) => block?.includes('call() {')) ?? '';
  const url = await freshApi();
  const setUp = [
    definition.replace(/^eval .*$/m, '').replace(/^export API=.*$/m, `export API=${url} AWS_REGION=eu-west-1`),
    'export AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret AWS_SESSION_TOKEN=token',
  ];
  const lines = blocks
    .join('')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('call '));
  expect(lines.length).toBeGreaterThan(5);
  for (const line of lines) {
    const { stdout } = await promisify(execFile)('bash', ['-c', [...setUp, line].join('\n')]);
    const { code, issues } = JSON.parse(stdout);
    // The key is free, and there is no report and no object yet. But the service never refuses the form of a request.
    expect([undefined, 'NotFound', 'PreconditionFailed'], `${line}: ${JSON.stringify(issues)}`).toContain(code);
  }
});

it('the README has at most 120 lines', async () => {
  expect((await readFile('README.md', 'utf8')).trimEnd().split('\n').length).toBeLessThanOrEqual(120);
});

it('llms.txt and the skill name each guide, and only pages that exist', async () => {
  const [index, skill, files] = await Promise.all([
    readFile('llms.txt', 'utf8'),
    readFile('skills/holdfast/SKILL.md', 'utf8'),
    tracked(),
  ]);
  const linked = [...index.matchAll(/\]\(([^)#]+)/g)].map(([, path]) => path);
  const named = [...skill.matchAll(/docs\/[\w/-]+\.md/g)].map(([path]) => path);
  for (const path of [...linked, ...named]) expect(files).toContain(path);
  const guides = files.filter((file) => /^docs\/[\w-]+\.md$/.test(file) && file !== 'docs/README.md');
  expect(guides.filter((file) => !linked.includes(file))).toEqual([]);
});

/** The files and folders that a text names in backticks. */
const namedIn = (text: string) =>
  [...text.matchAll(/`([\w./<>*-]+)`/g)]
    .map(([, name = '']) => name)
    .filter((name) => /\.(ts|yml|json|md|grit)$|\/$/.test(name));

const tracked = async () => (await promisify(execFile)('git', ['ls-files'])).stdout.trim().split('\n');

it('ARCHITECTURE.md names files and folders by paths that exist from the root', async () => {
  const [map, files] = await Promise.all([readFile('ARCHITECTURE.md', 'utf8'), tracked()]);
  const named = namedIn(map);
  expect(named.length).toBeGreaterThan(60);
  for (const name of new Set(named)) {
    const pattern = name.replaceAll('.', '\\.').replace('<capability>', '\\w+');
    const isThere = new RegExp(`^${pattern}${name.endsWith('/') ? '' : '$'}`);
    expect(
      files.some((file) => isThere.test(file)),
      name,
    ).toBe(true);
  }
});

/** Names of sources. A page or a comment may name other files that users or builds write, such as `job.sh` and `report.json`. */
const SOURCE = /(?<![\w@./*{}<>$-])(?:\.{0,2}\/)*((?:[\w.-]+\/)*[\w.-]+\.(?:ts|py|yml|cjs|grit))(?![\w/*(-]|\.\w)/g;

it('every source file that Markdown or a comment names exists', async () => {
  const files = await tracked();
  const ends = new Set(files.flatMap((file) => file.split('/').map((_, from, parts) => parts.slice(from).join('/'))));
  const folders = new Set(files.map((file) => file.split('/')[0]));
  const missing: string[] = [];
  for (const file of files.filter((name) => /\.(md|ts)$/.test(name) && !GENERATED.test(name))) {
    const text = await readFile(file, 'utf8');
    const isPage = file.startsWith('docs/');
    // A guide names files of the reader's own program too.
    for (const [, name = ''] of (file.endsWith('.md') ? withoutCode(text) : commentsOf(text)).matchAll(SOURCE))
      if (!ends.has(name) && !(isPage && !folders.has(name.split('/')[0] ?? ''))) missing.push(`${file}: ${name}`);
  }
  expect(missing).toEqual([]);
});

const GENERATED = /^(docs\/api\/|clients\/typescript\/src\/contract\.ts|verification\/mutations\/mutations\.ts)/;

const withoutCode = (markdown: string) => markdown.replaceAll(/```[\s\S]*?```/g, '').replaceAll(/\]\([^)]*\)/g, ']');

const commentsOf = (code: string) =>
  [...tokens(code)].map(({ type, value }) => (type.endsWith('Comment') ? value : '')).join('\n');

it('the READMEs of shared/ and test/support name files and folders that exist', async () => {
  const files = await tracked();
  const folders = new Set(files.map((file) => /^shared\/\w+(?=\/)|^test\/support(?=\/)/.exec(file)?.[0]));
  expect(folders.size).toBeGreaterThan(10);
  for (const folder of folders) {
    if (folder === undefined) continue;
    const text = await readFile(join(folder, 'README.md'), 'utf8');
    expect(text.split(/\s+/).length, folder).toBeLessThan(800);
    const beside = files.filter((file) => file.startsWith(`${folder}/`)).map((file) => file.slice(folder.length + 1));
    for (const name of namedIn(text)) {
      // A README names files of its own folder by name or relative path, and others by their whole path.
      const own = beside.some((file) => `${file}/`.startsWith(name) || file === name || file.endsWith(`/${name}`));
      const isThere = own || files.some((file) => file === name || (name.endsWith('/') && file.startsWith(name)));
      expect(isThere, `${folder}/README.md names ${name}`).toBe(true);
    }
  }
});

it('every link of a document leads to an existing file and heading', async () => {
  const files = (await promisify(execFile)('git', ['ls-files', '*.md'])).stdout.trim().split('\n');
  expect(files).toContain('README.md');
  for (const file of files)
    for (const [, target = '', heading] of (await readFile(file, 'utf8')).matchAll(
      /\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g,
    )) {
      const path = target === '' ? file : join(dirname(file), target);
      expect(existsSync(path), `${file} links to ${path}`).toBe(true);
      if (heading) expect(anchorsOf(await readFile(path, 'utf8')), `${file} links to ${path}`).toContain(heading);
    }
});

/** The anchors that GitHub derives from headings, and the explicit ones of the page. */
const anchorsOf = (markdown: string) => [
  ...[...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  ),
  ...[...markdown.matchAll(/<a\s+id="([\w-]+)">/g)].map(([, id]) => id),
];

it('docs/configuration.md names every parameter', async () => {
  const stack = (await promisify(execFile)('git', ['ls-files', 'serverless.yml', 'infrastructure'])).stdout
    .trim()
    .split('\n');
  const text = (await Promise.all(stack.map((file) => readFile(file, 'utf8')))).join();
  const names = new Set([...text.matchAll(/\$\{param:(\w+)/g)].map(([, name]) => name));
  expect(names.size).toBeGreaterThan(10);
  for (const name of names) expect(configuration).toContain(`\`${name}\``);
});

const operations = await readFile('docs/operations.md', 'utf8');
const deploy = await readFile('docs/deploy.md', 'utf8');

it('each alarm of the stack has its section in the runbook, and vice versa', () => {
  const [, section = ''] = operations.match(/^## Alarms\n(.*?)^## /ms) ?? [];
  const named = [...section.matchAll(/^### (.+)$/gm)].flatMap(([, heading = '']) => heading.split(', '));
  const ids = Object.keys(alarms().Resources).map((id) => id.replace(/Alarm$/, ''));
  expect(ids.length).toBeGreaterThan(15);
  expect(named.toSorted()).toEqual(ids.toSorted());
});

it('each parameter of a deployment is in the reference, with its default', async () => {
  const rows = (await readFile('docs/configuration.md', 'utf8')).match(/^\| `.*\|$/gm) ?? [];
  for (const [name, { default: value = '', fixed }] of Object.entries(PARAMETERS)) {
    const [row = ''] = rows.filter((one) => one.split('|')[1]?.includes(`\`${name}\``));
    expect(row, name).toContain(`\`${name}\`${fixed ? ' *' : ''}`);
    expect(row.split('|')[2], name).toContain(value);
  }
});

it("the snippets for other tools name existing parameters, and this version's release", () => {
  const given = [
    ...deploy.matchAll(/ParameterKey=(\w+)/g),
    ...(deploy.match(/parameters += \{(.*?)\}/s)?.[1] ?? '').matchAll(/(\w+) +=/g),
    ...(deploy.match(/new Holdfast\(.*?\{(.*?)\}/)?.[1] ?? '').matchAll(/(\w+):/g),
  ].map(([, name]) => String(name));
  expect(given.length).toBeGreaterThanOrEqual(5);
  expect(Object.keys(PARAMETERS)).toEqual(expect.arrayContaining(given));
  for (const [, version] of deploy.matchAll(/holdfast-(\d+\.\d+\.\d+)/g)) expect(version).toBe(packageJson.version);
});
