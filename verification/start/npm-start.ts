import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../local/ports.ts';

/** Runs `npm start` on free ports until it answers. `stop` must be called. @throws Error if it does not come up */
export async function npmStart(more: Record<string, string> = {}) {
  const [port, dynamodb, s3, states] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const settings = { PORT: `${port}`, DYNAMODB_PORT: `${dynamodb}`, S3_PORT: `${s3}`, SFN_PORT: `${states}` };
  const child = spawn('npm', ['start', '--', '--memory'], {
    env: { ...process.env, ...settings, ...more },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await fetch(`${url}/v1/health`).catch(() => undefined))?.ok; tries++) {
    if (tries > 6000 || child.exitCode !== null) throw new Error('npm start did not come up');
    await delay(20);
  }
  const serverPid = await descendant(child.pid ?? 0, 'local/start.ts');
  return {
    url,
    memory: async () => (await processes()).find(({ pid }) => pid === serverPid)?.bytes ?? 0,
    stop: async () => {
      const exit = once(child, 'exit');
      process.kill(serverPid, 'SIGTERM');
      await exit;
    },
  };
}

/** The process below `ancestor` that runs the script. npm starts a shell in between. */
async function descendant(ancestor: number, script: string): Promise<number> {
  const all = await processes();
  const below = (pid: number): number[] => [
    pid,
    ...all.filter(({ parent }) => parent === pid).flatMap((one) => below(one.pid)),
  ];
  const family = below(ancestor);
  // The shell's command line has the script, too.
  const found = all.findLast(({ pid, command }) => family.includes(pid) && command.includes(script));
  if (!found) throw new Error(`npm start runs no ${script}`);
  return found.pid;
}

async function processes() {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,rss=,command='], { maxBuffer: 2 ** 26 });
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, kilobytes, command = ''] = /^ *(\d+) +(\d+) +(\d+) (.*)$/.exec(line) ?? [];
    return pid === undefined
      ? []
      : [{ pid: Number(pid), parent: Number(parent), bytes: Number(kilobytes) * 1024, command }];
  });
}
