import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { freePort } from '../../../local/ports.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the emulator. */
    port: number;
    /** The address from which the emulator reads the keys of the tests' issuer. */
    issuerPort: number;
  }
}

const VENV = resolve('.venv-ministack');
const REQUIREMENTS = 'verification/deployment/requirements.txt';
const run = promisify(execFile);

/** Makes the release, and starts MiniStack in a virtual environment. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const python = join(VENV, 'bin', 'python');
  const installed = join(VENV, 'requirements.txt');
  if (!existsSync(installed) || (await readFile(installed, 'utf8')) !== (await readFile(REQUIREMENTS, 'utf8'))) {
    await run('python3', ['-m', 'venv', VENV]);
    await run(python, ['-m', 'pip', 'install', '--quiet', '--requirement', REQUIREMENTS]);
    await copyFile(REQUIREMENTS, installed);
  }
  await run('npm', ['run', 'release', '--silent']);
  const [port, issuerPort] = [await freePort(), await freePort()];
  project.provide('port', port);
  project.provide('issuerPort', issuerPort);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-ministack-'));
  const emulator = spawn(python, [resolve('verification/deployment/support/emulator.py')], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      // The functions run on the Node of this process.
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: folder,
      // Lambda's Node has the AWS SDK, which the change check in the template takes from there.
      NODE_PATH: resolve('node_modules'),
      TMPDIR: folder,
      GATEWAY_PORT: String(port),
      // The keys of the emulator are public, and it runs the deployed code on this machine. So only this machine may reach it, and its MQTT port is off.
      BIND_HOST: '127.0.0.1',
      IOT_MTLS_ENABLED: '0',
      MINISTACK_HOST: 'localhost',
      AUTH: 'true',
      LOG_LEVEL: process.env.EMULATOR_LOG_LEVEL ?? 'CRITICAL',
      ISSUER_PORT: String(issuerPort),
      MINISTACK_APIGW_JWKS_TIMEOUT_SECONDS: '60',
    },
  });
  const ended = new Promise((end) => emulator.once('exit', end));
  await untilItAnswers(`http://127.0.0.1:${port}/_ministack/health`, emulator);
  return async () => {
    emulator.kill();
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
}

async function untilItAnswers(url: string, emulator: ChildProcess): Promise<void> {
  while (emulator.exitCode === null) {
    const health = await fetch(url).catch(() => undefined);
    if (health?.ok) return;
    await delay(250);
  }
  throw new Error(`MiniStack ended with ${emulator.exitCode}`);
}
