import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openapi } from '../../contract/openapi.ts';
import { readOptions } from '../../local/options.ts';
import { npmStart } from '../start/npm-start.ts';

const HELP = `npm run verify -- fuzz: Schemathesis against npm start, with requests that fit the contract and requests that do not.

  --seconds N   how long (60)
  --seed N      the seed of the requests (1)

It fails on a 5xx, on a status or an answer that the contract does not document, on a field too many, and where a request
that the contract forbids is taken. It exits with 1 then, and with 2 where it could not run. Without Schemathesis, which
.ci/run installs into .venv, it is skipped.`;

const SCHEMATHESIS = '.venv/bin/schemathesis';
const CONFIG = join(import.meta.dirname, 'schemathesis.toml');
const HOOKS = join(import.meta.dirname, 'hooks.py');

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) console.log(HELP);
  else if (!existsSync(SCHEMATHESIS)) console.log(`Skipped: there is no ${SCHEMATHESIS}`);
  else return fuzz(number('seconds', { min: 10, whole: true }) ?? 0, number('seed', { min: 0, whole: true }) ?? 0);
  return true;
}

async function fuzz(seconds: number, seed: number): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-fuzz-'));
  const server = await npmStart({ SCHEDULES: 'off' });
  try {
    // The schemas are closed, so that an unknown field is found too.
    const document = join(folder, 'openapi.json');
    await writeFile(document, JSON.stringify(openapi({ strict: true })));
    const options = [`--url=${server.url}`, `--seed=${seed}`, `--max-time=${seconds}`, '--request-timeout=40'];
    // The tool keeps its state between runs in the working directory.
    const child = spawn(
      join(process.cwd(), SCHEMATHESIS),
      ['--config-file', CONFIG, 'run', document, '--continue-on-failure', ...options],
      { cwd: folder, stdio: 'inherit', env: { ...process.env, SCHEMATHESIS_HOOKS: HOOKS } },
    );
    const [code] = await once(child, 'exit');
    return code === 0;
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: Error) => {
    console.error(`npm run verify -- fuzz: ${error.message}`);
    process.exit(2);
  },
);
