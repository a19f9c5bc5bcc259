import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../local/ports.ts';
import { endsWithUs } from './children.ts';
import { CREDENTIALS } from './environment.ts';

/** `npm start` on the emulator of the bench, with its URL. */
export async function startStack(dynamodbEndpoint: string): Promise<{ url: string; stop(): Promise<void> }> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, '../local/start.ts'), '--memory'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    // Without the variables that the shell may set for another npm start, such as DATA_DIR, AUTH or its own S3.
    env: {
      ...CREDENTIALS,
      AWS_ENDPOINT_URL_DYNAMODB: dynamodbEndpoint,
      PORT: String(port),
      S3_PORT: String(await freePort()),
      SFN_PORT: String(await freePort()),
      SCHEDULES: 'off', // a report would be part of the measurement
    },
  });
  endsWithUs(child);
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await isReady(url)); tries++) {
    if (child.exitCode !== null || tries > 400) throw new Error('the local stack did not start');
    await delay(25);
  }
  return {
    url,
    stop: async () => {
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
