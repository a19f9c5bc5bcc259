import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readOptions } from '../../local/options.ts';
import { languages } from '../../test/support/programs/callers.ts';

const HELP = `npm run verify -- callers: builds the examples of docs/callers.md, and runs the test that calls through them.

They are built in ~/.cache/holdfast/callers, once for each text. npm run test:races runs those that are there, and curl if it is installed.
What cannot be built here is skipped, and says so.`;

async function main(): Promise<number> {
  const { values } = readOptions({ help: { type: 'boolean', short: 'h' } });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  for (const { name, ready, build } of await languages())
    if (!ready)
      await build().then(
        () => console.log(`${name}: built`),
        (error: Error) => console.log(`${name}: skipped, it cannot be built here\n${error.message}`),
      );
  const child = spawn('npx', ['vitest', 'run', 'test/docs/callers'], {
    stdio: 'inherit',
    env: { ...process.env, RACES: 'full' },
  });
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

main().then(
  (code) => process.exit(code),
  (error: Error) => {
    console.error(`npm run verify -- callers: ${error.message}`);
    process.exit(2);
  },
);
