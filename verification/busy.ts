/**
 * npm run test:busy: the tests, next to ten processes that do nothing but compute. A test may then run out of time. None may
 * assert anything that depends on how fast this machine is: each other failure is one of a test that does.
 * Arguments go to vitest: npm run test:busy -- test/queue
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';

/** On two cores; a larger machine gets as many for each pair. */
const BUSY = 10 * Math.ceil(availableParallelism() / 2);

interface Report {
  numPassedTests: number;
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

interface Failure {
  test: string;
  message: string;
}

const failures = ({ testResults }: Report): Failure[] =>
  testResults.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((one) => one.status === 'failed');
    // A file whose hook or import failed has no failed test.
    if (failed.length === 0) return status === 'failed' ? [{ test: name, message }] : [];
    return failed.map(({ fullName, failureMessages }) => ({
      test: `${name} > ${fullName}`,
      message: failureMessages.join('\n'),
    }));
  });

const isTimeout = ({ message }: Failure) => /\b(Test|Hook) timed out in \d+ ?ms/i.test(message);

const busy: ChildProcess[] = Array.from({ length: BUSY }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
process.once('exit', () => {
  for (const process of busy) process.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const folder = await mkdtemp(join(tmpdir(), 'holdfast-busy-'));
const file = join(folder, 'report.json');
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
const tests = spawn('npx', ['vitest', 'run', ...reporters, ...process.argv.slice(2)], { stdio: 'inherit' });
await once(tests, 'exit');
const report: Report = JSON.parse(await readFile(file, 'utf8'));
await rm(folder, { recursive: true });

const failed = failures(report);
const wrong = failed.filter((failure) => !isTimeout(failure));
for (const { test, message } of wrong) console.error(`depends on speed: ${test}\n${message}\n`);
console.log(
  `next to ${BUSY} busy processes: ${report.numPassedTests} passed, ${failed.length - wrong.length} out of time, ${wrong.length} wrong`,
);
process.exit(wrong.length > 0 ? 1 : 0);
