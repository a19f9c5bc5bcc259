import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../local/ports.ts';

/** `npm start` on the bench's emulator, and its URL. */
export async function startStack(dynamodbEndpoint: string): Promise<{ url: string; stop(): Promise<void> }> {
  const port = await freePort();
  const child = spawn(process.execPath, [new URL('../local/start.ts', import.meta.url).pathname], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      AWS_ENDPOINT_URL_DYNAMODB: dynamodbEndpoint,
      PORT: String(port),
      S3_PORT: String(await freePort()),
      SFN_PORT: String(await freePort()),
      SCHEDULES: 'off', // a report would be measured along
    },
  });
  const ended = once(child, 'exit');
  const kill = () => child.kill();
  process.once('exit', kill);
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await isReady(url)); tries++) {
    if (child.exitCode !== null || tries > 400) throw new Error('the local stack did not start');
    await delay(25);
  }
  return {
    url,
    stop: async () => {
      process.off('exit', kill);
      child.kill('SIGTERM');
      await ended;
    },
  };
}

const isReady = (url: string) =>
  fetch(`${url}/v1/health`).then(
    ({ ok }) => ok,
    () => false,
  );
