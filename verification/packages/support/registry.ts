import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../local/ports.ts';
import { PATH, run } from './run.ts';
import { toolIn } from './tools.ts';

const VERDACCIO = toolIn('verdaccio/bin/verdaccio');

/** This registry does not ask another one: what a package needs and does not contain cannot be installed. */
const CONFIGURATION = `
storage: ./storage
packages:
  '**':
    access: $all
    publish: $all
web:
  enable: false
log: { type: stdout, level: error }
`;

/** An empty registry of npm on this machine. `stop` must be called. @throws Error if it does not come up */
export async function startRegistry() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-registry-'));
  const configuration = join(folder, 'config.yaml');
  await writeFile(configuration, CONFIGURATION);
  const address = `127.0.0.1:${await freePort()}`;
  const args = [VERDACCIO, '--config', configuration, '--listen', address];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  const exited = once(child, 'exit');
  const url = `http://${address}`;
  for (let tries = 0; !(await fetch(`${url}/-/ping`).catch(() => undefined))?.ok; tries++) {
    if (tries > 3000 || child.exitCode !== null) throw new Error('Verdaccio did not come up');
    await delay(20);
  }
  // npm publishes nothing without a token, and this registry asks for none.
  await writeFile(join(folder, '.npmrc'), `//${address}/:_authToken=any\n`);
  return {
    url,
    /** @throws Error if the registry refuses the package */
    publish: async (tarball: string) => {
      const env = { PATH, HOME: folder, npm_config_registry: url };
      const { exitCode, output } = await run('npm', ['publish', tarball, '--access', 'public'], { cwd: folder, env });
      if (exitCode !== 0) throw new Error(output);
    },
    stop: async () => {
      child.kill();
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
