import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { cuttable } from '../support/faults/cuttable.ts';
import { living } from '../support/programs/cli.ts';
import { runnersOf } from '../support/programs/run.ts';
import { rounds } from '../support/time/rounds.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

/** The last line that was written whole. */
const lastSign = async (file: string): Promise<number> => {
  const [at] = (await readFile(file, 'utf8')).split('\n').slice(-2);
  expect(Number(at)).toBeGreaterThan(0);
  return Number(at);
};

/** A program that, with its child, writes down that it is alive. Only SIGKILL ends them. */
const IMMORTAL = `const fs = require('fs'), [file, role] = process.argv.slice(1);
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
if (role === 'leader') require('child_process').spawn(process.execPath, ['-e', process.env.IMMORTAL, file, 'child'], { stdio: 'inherit' });
const live = () => fs.appendFileSync(file + '.' + role, Date.now() + '\\n');
live();
setInterval(live, 2);
console.log(role, process.pid);`;

/** The ids of the leader and its child as soon as both run, or none if the lease ended before. */
const bothLive = ({ stdout, exited }: Pick<ReturnType<typeof cli.start>, 'stdout' | 'exited'>): Promise<number[]> => {
  const found = () => stdout().match(/(?<=^(leader|child) )\d+$/gm) ?? [];
  return Promise.race([
    exited.then(() => []),
    expect
      .poll(() => found().length, { timeout: 120_000, interval: 10 })
      .toBe(2)
      .then(() => found().map(Number)),
  ]);
};

/** If the machine stalls for longer, a late end of the command proves nothing, and the round is played again. */
const STOOD_STILL_MS = 100;

/** Checks the clock all the time. The returned function stops that, and says how long the longest stall was. */
function stillness() {
  let [last, longestMs] = [performance.now(), 0];
  const check = () => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - last - CHECK_MS);
    last = now;
  };
  const timer = setInterval(check, CHECK_MS);
  return () => {
    check();
    clearInterval(timer);
    return longestMs;
  };
}
const CHECK_MS = 10;

/** Whether both processes ended before the lease. Undefined if they did not, but the machine stalled. */
async function endedInTime(file: string, { endsAt, stoodStillMs }: { endsAt: number; stoodStillMs: number }) {
  const lives = await Promise.all(['leader', 'child'].map((role) => lastSign(`${file}.${role}`)));
  const isInTime = Math.max(...lives) < endsAt;
  return isInTime || stoodStillMs < STOOD_STILL_MS ? isInTime : undefined;
}

/** Plays rounds in parallel, as far as two cores keep up. A round that proved nothing does not count. */
async function inTurns(count: number, width: number, play: (round: number) => Promise<boolean>): Promise<void> {
  let [next, left] = [0, count];
  const turn = async () => {
    while (left > 0) {
      left--;
      if (!(await play(next++))) left++;
    }
  };
  await Promise.all(Array.from({ length: width }, turn));
}

describe.each(runnersOf(cli))('$name', (runner) => {
  it('if the network is cut, a command that ignores SIGTERM ends before its lease', {
    timeout: 600_000,
  }, async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    await inTurns(rounds(50), 3, async (round) => {
      const key = `cut/${runner.isPython}/${round}`;
      const file = join(cli.folder, `cut-${runner.isPython}-${round}`);
      const proxy = await cuttable(api.url);
      const args = ['run', key, '--ttl', '3', '--', process.execPath, '-e', IMMORTAL, file, 'leader'];
      const started = runner.start(args, { env: { HOLDFAST_ENDPOINT: proxy.url, IMMORTAL } });
      const stoodStill = stillness();
      if ((await bothLive(started)).length === 0) return false;
      await delay(random() * 2000); // before or after a heartbeat
      proxy.cut(random() < 0.5 ? 'hangs' : 'breaks');
      const { code, stderr } = await started.exited;
      const endsAt = Date.parse((await holdfast.readLease(key)).expiresAt ?? '');
      const isInTime = await endedInTime(file, { endsAt, stoodStillMs: stoodStill() });
      if (isInTime === undefined) return false;
      expect(isInTime, `round ${round} of SEED=${seed}`).toBe(true);
      expect([code, stderr]).toEqual([76, `holdfast: the lease of ${key} is lost (deadline): the command is ended\n`]);
      await proxy.stop();
      return true;
    });
  });

  it('holdfast run ends the command if it is killed, long before the lease ends', { timeout: 600_000 }, async () => {
    const tookMs: number[] = [];
    await inTurns(rounds(50), 2, async (round) => {
      const file = join(cli.folder, `killed-${runner.isPython}-${round}`);
      const args = [
        'run',
        `killed/${runner.isPython}/${round}`,
        '--ttl',
        '3600',
        '--',
        process.execPath,
        '-e',
        IMMORTAL,
        file,
        'leader',
      ];
      const started = runner.start(args, { env: { HOLDFAST_ENDPOINT: api.url, IMMORTAL } });
      const pids = await bothLive(started);
      const killedAt = performance.now();
      started.child.kill('SIGKILL');
      for (const pid of pids) await expect.poll(() => living(pid), { interval: 10 }).toBe(false);
      if (pids.length > 0) tookMs.push(performance.now() - killedAt);
      return pids.length > 0;
    });
    // A bar on time, which a busy machine may miss: `npm run verify -- cli-kill` measures it.
    if (!process.env.BARS) return;
    console.log(`gone after ${Math.round(Math.max(...tookMs))} ms at most, in ${tookMs.length} rounds`);
    expect(Math.max(...tookMs)).toBeLessThan(500);
  });

  it('a stopped holdfast run does not keep the command from ending in time', { timeout: 600_000 }, async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    await inTurns(rounds(50), 3, async (round) => {
      const key = `stopped/${runner.isPython}/${round}`;
      const file = join(cli.folder, `stopped-${runner.isPython}-${round}`);
      const args = ['run', key, '--ttl', '3', '--', process.execPath, '-e', IMMORTAL, file, 'leader'];
      const started = runner.start(args, { env: { HOLDFAST_ENDPOINT: api.url, IMMORTAL } });
      const stoodStill = stillness();
      if ((await bothLive(started)).length === 0) return false;
      await delay(random() * 2000);
      started.child.kill('SIGSTOP');
      await expect.poll(async () => (await holdfast.readLease(key)).state, { interval: 10 }).toBe('expired');
      const endsAt = Date.parse((await holdfast.readLease(key)).expiresAt ?? '');
      const isInTime = await endedInTime(file, { endsAt, stoodStillMs: stoodStill() });
      started.child.kill('SIGCONT');
      expect((await started.exited).code).toBe(76);
      if (isInTime === undefined) return false;
      expect(isInTime, `round ${round} of SEED=${seed}`).toBe(true);
      return true;
    });
  });
});
