/** Fails if a module has too many lines. Unlike Biome's rule, this counts comments and blank lines. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const MAX_LINES = 400;
/** Files of tests may be longer, because people read them case by case. */
const MAX_LINES_OF_CASES = 650;
const CASES = /^(test|bench|verification)\//;

/** Files that are generated, or only a list of similar entries. */
const EXEMPT = ['clients/typescript/src/contract.ts', 'verification/mutations/mutations.ts'];

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.js', '*.mjs'], {
  encoding: 'utf8',
});
for (const file of files.trim().split('\n')) {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').length;
  const most = CASES.test(file) ? MAX_LINES_OF_CASES : MAX_LINES;
  if (lines <= most || EXEMPT.includes(file)) continue;
  console.error(`${file} has ${lines} lines. It may have ${most}.`);
  process.exitCode = 1;
}
