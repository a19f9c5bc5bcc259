/**
 * Checks names: `node lint/names.ts`, a part of `npm run lint`. In shared/, a type, a function or a constant is declared once, and a room has each
 * file name once; only files of one name in two rooms, such as once/read.ts and rates/read.ts, may repeat each other. Identifiers, file names and
 * titles of tests use the words of the glossary, and so do the product's messages and the names of the Python client: its table for authors lists the
 * words that they replace, in code spans. Texts of tests and checkers may use any word, because some of them are examples of wrong code.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import tokens from 'js-tokens';
import { HAS_TITLES, titlesIn } from './prose/titles.ts';

/** Folders below shared/: a room, and one part of it. */
const MAX_DEPTH = 2;

const PRODUCT =
  /^(shared|functions|clients\/typescript\/src|cli\/src|console|local|bench|build|contract|deployment|infrastructure)\//;
const TESTS = /^(test|verification)\//;
const PYTHON = 'clients/python/src/';
const GENERATED = ['clients/typescript/src/contract.ts', 'clients/python/src/holdfast/contract.py'];
const DECLARED =
  /^(?:(?:export|default|declare|abstract|async) )*(?:(?:type|interface|class|function\*?|const|enum|let) ([\w$]+)|(?:const|let) [[{]([^\]}]+))/gm;

/** The names that a Python file gives to its functions and classes, its variables, and its parameters and fields. */
const DECLARED_IN_PYTHON =
  /\b(?:def|class|for|as) +(\w+)|^\s*(?:self\.)?(\w+)(?:\s*:[^=\n]+)? = |(?:^\s*|[(,] ?\**)(\w+): \S/gm;

const list = (...options: string[]): string[] =>
  execFileSync('git', ['ls-files', ...options, '*.ts', `${PYTHON}*.py`], { encoding: 'utf8' }).split('\n');
const deleted = new Set(list('--deleted'));
// During a merge, git lists a file more than once.
const files = [...new Set(list('--cached', '--others', '--exclude-standard'))].filter(
  (file) => file !== '' && !deleted.has(file),
);

function complain(text: string): void {
  console.error(text);
  process.exitCode = 1;
}

const shared = files.filter((file) => file.startsWith('shared/'));
const roomOf = (file: string): string | undefined => file.split('/').slice(1, -1)[0];
const areSiblings = (one: string, other: string): boolean =>
  basename(one) === basename(other) && roomOf(one) !== roomOf(other);

/** Complains of each place that has the name of another one, unless the two are in sibling files. */
function checkUnique(places: { name: string; file: string }[]): void {
  for (const namesakes of Map.groupBy(places, ({ name }) => name).values())
    for (const [nth, { name, file }] of namesakes.entries()) {
      const other = namesakes.slice(0, nth).find((one) => !areSiblings(one.file, file));
      if (other) complain(`${file} has the name ${name} of ${other.file}, and means something else.`);
    }
}

checkUnique(shared.map((file) => ({ name: basename(file), file })));
checkUnique(
  shared.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(DECLARED)]
      .flatMap(([, name = '', destructured = name]) => destructured.match(/[\w$]+/g) ?? [])
      .map((name) => ({ name, file })),
  ),
);
for (const file of shared) {
  const depth = dirname(file).split('/').length - 1;
  if (depth > MAX_DEPTH) complain(`${file} is ${depth} folders deep. It may be ${MAX_DEPTH}.`);
}

interface Replaced {
  right: string;
  wrong: RegExp;
  /** The folders in which the word is wrong. Empty for all. */
  where: string[];
}

/** The rows of the table for authors: `| write | in place of | where |`, with the words that a program can check in code spans. */
const replaced: Replaced[] = (readFileSync('docs/glossary.md', 'utf8').split('## For authors')[1] ?? '')
  .split('\n')
  .flatMap((line) => {
    const [, right = '', words = '', where = ''] = line.split('|').map((cell) => cell.trim());
    const wrong = [...words.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
    const folders = [...where.matchAll(/`([^`]+)`/g)].map(([, folder = '']) => `${folder}/`);
    return wrong.length === 0 ? [] : [{ right, wrong: new RegExp(`\\b(${wrong.join('|')})\\b`, 'i'), where: folders }];
  });

/** `giveBack`, `GIVE_BACK` and `give-back` as words: give back. */
const wordsOf = (name: string): string =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[_#$./-]+/g, ' ')
    .toLowerCase();

function checkWords(file: string, text: string, what: string): void {
  for (const { right, wrong, where } of replaced)
    if ((where.length === 0 || where.some((folder) => file.startsWith(folder))) && wrong.test(text))
      complain(`${file}: ${what} says ${wrong.exec(text)?.[0]}: write ${right}`);
}

for (const file of files) {
  checkWords(file, wordsOf(file), 'the file name');
  const code = readFileSync(file, 'utf8');
  for (const { title } of HAS_TITLES.test(file) ? titlesIn(code) : []) checkWords(file, title, `the title '${title}'`);
  const isProduct = PRODUCT.test(file);
  if (GENERATED.includes(file)) continue;
  if (file.endsWith('.py')) {
    const names = [...code.matchAll(DECLARED_IN_PYTHON)].map((found) => found.slice(1).join(''));
    for (const name of new Set(names)) checkWords(file, wordsOf(name), `the name ${name}`);
    continue;
  }
  if (!isProduct && !TESTS.test(file)) continue;
  const seen = new Set<string>();
  for (const { type, value } of tokens(code)) {
    const isName = type === 'IdentifierName' || type === 'PrivateIdentifier';
    const isText = isProduct && /StringLiteral|Template/.test(type) && /\w \w/.test(value);
    if ((!isName && !isText) || seen.has(value)) continue;
    seen.add(value);
    checkWords(file, isName ? wordsOf(value) : value, isName ? `the name ${value}` : `the text ${value.slice(0, 60)}`);
  }
}
