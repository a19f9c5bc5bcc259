// Reads the reports of the suites of .ci/run. It runs on any Node.js from 20 on, and needs no packages.
//   node .ci/tally.mjs again NAME.json             prints the files to play again, one on each line
//   node .ci/tally.mjs count FOLDER CODE VERDICT…  prints the closing lines
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** A stalled machine makes a file or two fail. If more fail, something is broken. */
const MAX_FILES = 3;

/** These suites need only npm, so they always run. */
const ALWAYS = ['test', 'races', 'release'];

const read = (file) => JSON.parse(readFileSync(file, 'utf8')).testResults;
const failuresOf = (results) =>
  results.flatMap(({ name, message, assertionResults }) => {
    const file = relative('.', name);
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    const tests = failed.map((test) => ({ file, test: test.fullName, why: test.failureMessages.join('\n') }));
    // A file that could not be loaded does not have tests to count.
    return message && tests.length === 0 ? [{ file, test: '(the file)', why: message }] : tests;
  });
const idOf = ({ file, test }) => `${file}: ${test}`;

function again(file) {
  const files = [...new Set(failuresOf(read(file)).map((failure) => failure.file))];
  if (files.length <= MAX_FILES) for (const name of files) console.log(name);
}

/** A failed test counts as passed if it passed when its file was played again, alone and with the same seed. */
function withSecondTry(report) {
  const first = read(report);
  const secondFile = report.replace('.json', '.again.json');
  const second = existsSync(secondFile) ? read(secondFile) : [];
  const passedThen = new Set(
    second.flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === 'passed')
        .map(({ fullName }) => idOf({ file: relative('.', name), test: fullName })),
    ),
  );
  const failures = failuresOf(first);
  const unsteady = failures.filter((failure) => passedThen.has(idOf(failure)));
  const passed = first.flatMap(({ assertionResults }) => assertionResults).filter(({ status }) => status === 'passed');
  return {
    passed: passed.length + unsteady.length,
    unsteady,
    failures: failures.filter((failure) => !unsteady.includes(failure)),
  };
}

/** How many tests of Python passed. A failure already counts as a verdict. */
function passedInPython(file) {
  if (!existsSync(file)) return 0;
  const counts = ['tests', 'failures', 'errors', 'skipped'].map((name) =>
    Number(new RegExp(`<testsuite [^>]*\\b${name}="(\\d+)"`).exec(readFileSync(file, 'utf8'))?.[1] ?? 0),
  );
  return counts.reduce((passed, others) => passed - others);
}

function count(folder, code, ...verdicts) {
  const played = existsSync(`${folder}/deploy.json`) ? [...ALWAYS, 'deploy'] : ALWAYS;
  const suites = played.map((name) => withSecondTry(`${folder}/${name}.json`));
  const failures = suites.flatMap((suite) => suite.failures);
  // Failures are printed again here, because a log may be cut at its beginning.
  for (const failure of suites.flatMap((suite) => suite.unsteady))
    console.log(`failed, and passed when played again alone: ${idOf(failure)}\n${failure.why}`);
  for (const failure of failures) console.log(`failed: ${idOf(failure)}\n${failure.why}`);
  const commands = existsSync(`${folder}/failed`) ? readFileSync(`${folder}/failed`, 'utf8') : '';
  if (commands) console.log(commands.trimEnd());

  const failedCommands = verdicts.filter((verdict) => verdict !== '0').length;
  // The runner itself may fail even if every test passed, because of an error outside the tests.
  const failed = Math.max(failures.length, code === '0' ? 0 : 1) + failedCommands;
  const inPython = passedInPython(`${folder}/python.xml`);
  const passed = suites.reduce((sum, suite) => sum + suite.passed, inPython) + verdicts.length - failedCommands;
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

const [what, ...rest] = process.argv.slice(2);
({ again, count })[what](...rest);
