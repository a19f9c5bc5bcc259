/** Checks the words of the documentation, of comments and of messages: `node lint/prose/check.ts [FILE...]`, a part of `npm run lint`. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import tokens from 'js-tokens';
import { createLinter, loadLinterFormatter, loadTextlintrc } from 'textlint';

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

const descriptor = await loadTextlintrc({ configFilePath: resolve(import.meta.dirname, 'textlintrc.json') });
const linter = createLinter({ descriptor });
const results = [];
for (const file of files) {
  const text = readFileSync(file, 'utf8');
  const result = file.endsWith('.md')
    ? await linter.lintText(text, file)
    : await linter.lintText(proseOf(text), `${file}.txt`);
  results.push({ ...result, filePath: file });
}
const formatter = await loadLinterFormatter({ formatterName: 'unix' });
const wrong = results.filter(({ messages }) => messages.length > 0);
if (wrong.length > 0) {
  console.error(formatter.format(wrong));
  process.exitCode = 1;
}
