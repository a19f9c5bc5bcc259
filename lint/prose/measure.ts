/**
 * Counts the words of the documentation, and how often it has those that make sentences hard to follow: `npm run docs:measure`.
 * Exits with 1 if a bar is missed.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readOptions } from '../../local/options.ts';

const HELP = `npm run docs:measure counts the words of the documentation, without code blocks, and how often hard words come in 1,000.

  --pages   show each page too`;

/** Generated, or tables of measurements. */
const EXEMPT = /^(CHANGELOG\.md|docs\/benchmarks\.md|docs\/api\/.*)$/;

/** Pages that address the reader. */
const GUIDES =
  /^(README|CONTRIBUTING|docs\/(tutorial|handlers|cli|client|callers|deploy|operations|step-functions|guides\/.*))\.md$/;

/** 52,000 until `once` and durable functions came, with a guide and a protocol each. A new capability may raise it, and no other change. */
const MAX_WORDS = 59_000;
const MAX_WORDS_OF_PAGE = 3000;

/** The most that may come in 1,000 words of all pages and the changelog. */
const RARE = [
  { name: 'it, its', pattern: /\bits?\b/gi, most: 14 },
  { name: 'one, ones', pattern: /\bones?\b/gi, most: 3.5 },
  { name: 'where', pattern: /\bwhere\b/gi, most: 1.2 },
  { name: 'nobody, nothing, somebody', pattern: /\b(nobody|nothing|somebody)\b/gi, most: 0.5 },
];
/** The least that come in 1,000 words of the guides. */
const YOU = { pattern: /\byour?\b/gi, least: 8 };

interface Page {
  file: string;
  text: string;
  words: number;
}

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  encoding: 'utf8',
});
const pages = files.trim().split('\n').map(readPage);
const measured = pages.filter(({ file }) => !EXEMPT.test(file));
const changelog = pages.filter(({ file }) => file === 'CHANGELOG.md');

function readPage(file: string): Page {
  const text = readFileSync(file, 'utf8')
    .replace(/^( *)```[\s\S]*?^\1```/gm, '')
    // The address of a link is not read, nor an anchor.
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/<a id="[\w-]+"><\/a>/g, '');
  return { file, text, words: text.split(/\s+/).filter((word) => /\w/.test(word)).length };
}

const wordsOf = (some: Page[]) => some.reduce((sum, { words }) => sum + words, 0);
const inThousand = (some: Page[], pattern: RegExp) =>
  (1000 * some.reduce((sum, { text }) => sum + (text.match(pattern)?.length ?? 0), 0)) / wordsOf(some);

function tell(what: string, value: number, { least = 0, most = Number.POSITIVE_INFINITY }): void {
  const isMet = value >= least && value <= most;
  const bar = least > 0 ? `at least ${least}` : `at most ${most.toLocaleString('en')}`;
  console.log(`${isMet ? 'met   ' : 'missed'}  ${what}: ${Number(value.toFixed(2)).toLocaleString('en')} (${bar})`);
  if (!isMet) process.exitCode = 1;
}

function measure(): void {
  tell('words', wordsOf(measured), { most: MAX_WORDS });
  const longest = measured.reduce((one, other) => (one.words > other.words ? one : other));
  tell(`words of the longest page, ${longest.file}`, longest.words, { most: MAX_WORDS_OF_PAGE });
  for (const { name, pattern, most } of RARE)
    tell(`"${name}" in 1,000 words`, inThousand([...measured, ...changelog], pattern), { most });
  const guides = measured.filter(({ file }) => GUIDES.test(file));
  tell('"you, your" in 1,000 words of tutorial and guides', inThousand(guides, YOU.pattern), YOU);
}

const { values } = readOptions({ pages: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } });
if (values.help) console.log(HELP);
else {
  if (values.pages)
    for (const page of measured.toSorted((one, other) => other.words - one.words)) {
      const rates = RARE.map(({ name, pattern }) => `${name} ${inThousand([page], pattern).toFixed(1)}`);
      console.log(
        `${String(page.words).padStart(6)}  ${page.file}: ${rates.join('; ')}; you ${inThousand([page], YOU.pattern).toFixed(1)}`,
      );
    }
  measure();
}
