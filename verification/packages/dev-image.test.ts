import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { freePort } from '../../local/ports.ts';
import manifest from '../../package.json' with { type: 'json' };
import { dockerfile } from './support/dockerfile.ts';

const { names, wordsOf, entryPoint, copyTo } = await dockerfile('local/Dockerfile', '.');

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'holdfast-dev-image-'));
  await copyTo(root);
});
afterAll(() => rm(root, { recursive: true, force: true }));

it('the Dockerfile of the local stack copies files onto the Node of the tests', () => {
  expect(names).toEqual(['COPY', 'ENTRYPOINT', 'ENV', 'FROM', 'USER', 'WORKDIR']);
  expect(wordsOf('FROM')).toEqual([[`node:${manifest.devDependencies.node}-alpine`]]);
  expect(wordsOf('USER')).toEqual([['node']]);
});

/** Asks by another loopback address, which stands for that of the container. @returns the status */
const get = (port: number, path: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const headers = { host: `127.0.0.1:${port}` };
    request({ host: '127.0.0.2', port, path, headers }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end();
  });

// Without a container engine, the files of the image run as a process.
it('the image of the local stack serves API and page until SIGTERM', async () => {
  const port = await freePort();
  const [program = '', ...args] = entryPoint;
  const variables = wordsOf('ENV').map(([pair = '']) => pair.split('='));
  const child = spawn(process.execPath, [join(root, 'usr/local/bin', program), ...args, '--port', `${port}`], {
    cwd: root,
    env: { PATH: '/usr/bin:/bin', HOME: root, ...Object.fromEntries(variables) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  try {
    await vi.waitFor(async () => expect(await get(port, '/v1/health')).toBe(200), { timeout: 20_000, interval: 50 });
    expect(await get(port, '/')).toBe(200);
  } finally {
    child.kill('SIGTERM');
  }
  expect(await ended).toEqual([0, null]);
});
