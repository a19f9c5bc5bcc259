/** Checks the words in documentation, comments and messages: `node lint/prose/check.ts [FILE...]`, a part of `npm run lint`. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import tokens from 'js-tokens';
import { fragmentsIn, HAS_TITLES, longTitlesIn, MAX_WORDS } from './titles.ts';

/** Words that we avoid, and what we write instead: a term of docs/glossary.md, or plainer English. */
const WORDS: [wrong: RegExp, right: string][] = [
  [/\banew\b/i, 'again'],
  [/\bin vain\b/i, 'without effect'],
  [/\bfor ever\b/i, 'permanently'],
  [/\bas a rule\b/i, 'usually'],
  [/\bof its own accord\b/i, 'by itself'],
  [/\bhangs up\b|\bhung up\b/i, 'disconnects'],
  [/\bforeign clients?\b|\bclients? of another make\b/i, 'third-party client'],
];

/** Generated files, lists of measurements, lists of texts to replace, and this file, which contains the words. */
const EXEMPT =
  /^(lint\/prose\/check\.ts|clients\/typescript\/src\/contract\.ts|verification\/mutations\/.*|bench\/results.*)$/;

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md', '*.ts'], {
  encoding: 'utf8',
});
const named = process.argv.slice(2);
const files = (named.length > 0 ? named : [...new Set(listed.trim().split('\n'))]).filter((file) => !EXEMPT.test(file));

/** The comments, and the texts of several words. All other code becomes blanks, so that line numbers stay the same. */
function proseOf(code: string): string {
  let text = '';
  for (const { type, value } of tokens(code)) {
    const isProse = type.endsWith('Comment') || (/StringLiteral|Template/.test(type) && /\w \w/.test(value));
    text += isProse ? value : value.replace(/[^\n]/g, ' ');
  }
  return text;
}

/** The longest line of prose in Markdown. With short lines, a diff shows what has changed. */
const MAX_LINE = 140;

/** Tables, headings, quotes, tags and images cannot be wrapped, or not easily. */
const MAY_BE_LONG = /^\s*(\||#|>|<|!\[)/;
const GENERATED = /^docs\/(api\/|benchmarks\.md)/;

/** The numbers of lines that are too long, counted from 1. */
function longLines(markdown: string): number[] {
  let isCode = false;
  return markdown.split('\n').flatMap((line, at) => {
    if (/^\s*```/.test(line)) isCode = !isCode;
    return isCode || line.length <= MAX_LINE || MAY_BE_LONG.test(line) ? [] : [at + 1];
  });
}

/** Where a doc comment follows another one without a blank line. TypeScript and editors show only the last of the two. */
function stackedDocsIn(code: string): number[] {
  const found: number[] = [];
  let at = 0;
  let gap: string | undefined; // the blanks since the last doc comment, if only blanks came since
  for (const { type, value } of tokens(code)) {
    const isDoc = type === 'MultiLineComment' && value.startsWith('/**');
    if (isDoc && gap !== undefined && gap.split('\n').length <= 2) found.push(at);
    const isBlank = type === 'WhiteSpace' || type === 'LineTerminatorSequence';
    gap = isDoc ? '' : isBlank && gap !== undefined ? gap + value : undefined;
    at += value.length;
  }
  return found;
}

function report(file: string, line: number, what: string): void {
  console.error(`${file}:${line} ${what}`);
  process.exitCode = 1;
}

const lineAt = (text: string, at: number): number => text.slice(0, at).split('\n').length;

for (const file of files) {
  const text = readFileSync(file, 'utf8');
  const isMarkdown = file.endsWith('.md');
  const prose = (isMarkdown ? text : proseOf(text)).split('\n');
  for (const [nth, line] of prose.entries())
    for (const [wrong, right] of WORDS)
      if (wrong.test(line)) report(file, nth + 1, `says ${wrong.exec(line)?.[0]}: write ${right}`);
  if (isMarkdown && !GENERATED.test(file))
    for (const line of longLines(text)) report(file, line, `has more than ${MAX_LINE} characters`);
  if (!isMarkdown)
    for (const at of stackedDocsIn(text))
      report(file, lineAt(text, at), 'has a doc comment directly after another one');
  if (!HAS_TITLES.test(file)) continue;
  for (const { title, at } of fragmentsIn(text))
    report(file, lineAt(text, at), `has a title without its subject: ${title}`);
  for (const { title, at } of longTitlesIn(text))
    report(file, lineAt(text, at), `has a title of more than ${MAX_WORDS} words: ${title}`);
}
