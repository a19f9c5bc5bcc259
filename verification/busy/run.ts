/**
 * npm run verify -- busy: the tests, next to ten processes that do nothing but compute. A test may then run out of time. None may
 * assert anything that depends on how fast this machine is: each other failure is one of a test that does.
 * Arguments go to vitest: npm run verify -- busy test/line
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isTimeout, type Report } from './report.ts';

/** On two cores; a larger machine gets as many for each pair. */
const BUSY = 10 * Math.ceil(availableParallelism() / 2);

const busy: ChildProcess[] = Array.from({ length: BUSY }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
process.once('exit', () => {
  for (const process of busy) process.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const folder = await mkdtemp(join(tmpdir(), 'holdfast-busy-'));
const file = join(folder, 'report.json');
const reporters = ['--reporter=default', `--reporter=${join(import.meta.dirname, 'reporter.ts')}`];
const tests = spawn('npx', ['vitest', 'run', ...reporters, ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, BUSY_REPORT: file },
});
await once(tests, 'exit');
const { passed, failures }: Report = JSON.parse(await readFile(file, 'utf8'));
await rm(folder, { recursive: true });

const wrong = failures.filter((failure) => !isTimeout(failure));
for (const failure of failures)
  console.error(
    `${isTimeout(failure) ? 'out of time' : 'depends on speed'}: ${failure.test}\n${failure.messages.join('\n')}\n`,
  );
console.log(
  `next to ${BUSY} busy processes: ${passed} passed, ${failures.length - wrong.length} out of time, ${wrong.length} wrong`,
);
process.exit(wrong.length > 0 ? 1 : 0);
