/** Checks the words of the documentation, of comments and of messages: `node lint/prose/check.ts [FILE...]`, a part of `npm run lint`. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import tokens from 'js-tokens';
import { createLinter, loadLinterFormatter, loadTextlintrc } from 'textlint';
import { fragmentsIn, HAS_TITLES } from './titles.ts';

/** Generated, or lists of measurements and of texts to replace. */
const EXEMPT = /^(client\/src\/contract\.ts|verification\/mutations\/.*|bench\/results.*)$/;

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md', '*.ts'], {
  encoding: 'utf8',
});
const named = process.argv.slice(2);
const files = (named.length > 0 ? named : [...new Set(listed.trim().split('\n'))]).filter((file) => !EXEMPT.test(file));

/** Comments, and texts with a blank. Everything else becomes blanks, so that each place stays where it is. */
function proseOf(code: string): string {
  let text = '';
  for (const { type, value } of tokens(code)) {
    const isProse =
      type.endsWith('Comment') || ((type === 'StringLiteral' || type.startsWith('Template')) && /\w \w/.test(value));
    text += isProse ? value : value.replace(/[^\n]/g, ' ');
  }
  return text;
}

/** The most characters of a line of prose in Markdown, so that a change shows what changed. */
const MAX_LINE = 140;

/** Tables, headings, quotes, tags and code may be longer; so may generated pages. */
const MAY_BE_LONG = /^\s*(\||#|>|<|!\[)/;
const GENERATED = /^docs\/(api\/|benchmarks\.md)/;

/** The numbers of the lines that are too long, from 1. */
function longLines(markdown: string): number[] {
  let isCode = false;
  return markdown.split('\n').flatMap((line, at) => {
    if (/^\s*```/.test(line)) isCode = !isCode;
    return isCode || line.length <= MAX_LINE || MAY_BE_LONG.test(line) ? [] : [at + 1];
  });
}

const descriptor = await loadTextlintrc({ configFilePath: resolve(import.meta.dirname, 'textlintrc.json') });
const linter = createLinter({ descriptor });
const results = [];
for (const file of files) {
  const text = readFileSync(file, 'utf8');
  const result = file.endsWith('.md')
    ? await linter.lintText(text, file)
    : await linter.lintText(proseOf(text), `${file}.txt`);
  results.push({ ...result, filePath: file });
  if (file.endsWith('.md') && !GENERATED.test(file))
    for (const line of longLines(text)) {
      console.error(`${file}:${line} has more than ${MAX_LINE} characters`);
      process.exitCode = 1;
    }
  for (const { title, at } of HAS_TITLES.test(file) ? fragmentsIn(text) : []) {
    console.error(`${file}:${text.slice(0, at).split('\n').length} has a title without its subject: ${title}`);
    process.exitCode = 1;
  }
}
const formatter = await loadLinterFormatter({ formatterName: 'unix' });
const wrong = results.filter(({ messages }) => messages.length > 0);
if (wrong.length > 0) {
  console.error(formatter.format(wrong));
  process.exitCode = 1;
}
