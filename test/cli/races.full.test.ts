import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { systemClock } from '../../shared/clock.ts';
import { startApi } from '../support/api.ts';
import { builtCli } from '../support/cli.ts';
import { cuttable } from '../support/cuttable.ts';
import { leaseWorld } from '../support/leases.ts';
import { rounds } from '../support/rounds.ts';
import { seededRandom, testSeed } from '../support/seed.ts';

let api: Awaited<ReturnType<typeof startApi>>;
let cli: Awaited<ReturnType<typeof builtCli>>;
let holdfast: Holdfast;

beforeAll(async () => {
  const { handlers } = await leaseWorld({ clock: systemClock });
  [api, cli] = await Promise.all([startApi(handlers), builtCli()]);
  holdfast = new Holdfast({ endpoint: api.url, holder: 'the other' });
});
afterAll(() => Promise.all([api.stop(), cli.remove()]));

/** The last line that was written whole. */
const lastSign = async (file: string): Promise<number> => {
  const [at] = (await readFile(file, 'utf8')).split('\n').slice(-2);
  expect(Number(at)).toBeGreaterThan(0);
  return Number(at);
};

/** Writes down when it is alive, and so does its child. Nothing but SIGKILL ends them. */
const IMMORTAL = `const fs = require('fs'), [file, role] = process.argv.slice(1);
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
if (role === 'leader') require('child_process').spawn(process.execPath, ['-e', process.env.IMMORTAL, file, 'child'], { stdio: 'inherit' });
const live = () => fs.appendFileSync(file + '.' + role, Date.now() + '\\n');
live();
setInterval(live, 2);
console.log(role);`;

/** False where the lease ended before: a machine that stands still for its ttl shows nothing, and the round is played again. */
const bothLive = ({ stdout, exited }: Pick<ReturnType<typeof cli.start>, 'stdout' | 'exited'>): Promise<boolean> =>
  Promise.race([
    exited.then(() => false),
    expect
      .poll(() => stdout().trim().split('\n').sort(), { timeout: 120_000, interval: 10 })
      .toEqual(['child', 'leader'])
      .then(() => true),
  ]);

/** In parallel, as far as two cores keep up with it. A round that showed nothing does not count. */
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

describe('holdfast run', () => {
  it('has ended a command that ignores SIGTERM before its lease ends, where the network is cut', {
    timeout: 300_000,
  }, async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    await inTurns(rounds(50), 3, async (round) => {
      const key = `cut/${round}`;
      const file = join(cli.folder, `cut-${round}`);
      const proxy = await cuttable(api.url);
      const args = ['run', key, '--ttl', '3', '--', process.execPath, '-e', IMMORTAL, file, 'leader'];
      const started = cli.start(args, { env: { HOLDFAST_ENDPOINT: proxy.url, IMMORTAL } });
      if (!(await bothLive(started))) return false;
      await delay(random() * 2000); // through a heartbeat, or not
      proxy.cut(random() < 0.5 ? 'hangs' : 'breaks');
      const { code, stderr } = await started.exited;
      const ended = Date.parse((await holdfast.readLease(key)).expiresAt ?? '');
      const lives = await Promise.all(['leader', 'child'].map((role) => lastSign(`${file}.${role}`)));
      const left = ended - Math.max(...lives);
      expect(left, `round ${round} of SEED=${seed}: ${lives}, ${ended}`).toBeGreaterThan(0);
      expect([code, stderr]).toEqual([
        76,
        `holdfast: the lease of ${key} is lost (deadline), and so the command is ended\n`,
      ]);
      await proxy.stop();
      return true;
    });
  });

  it('takes the command with it at once where it is killed', { timeout: 300_000 }, async () => {
    const LATEST_MS = 500;
    await inTurns(rounds(50), 2, async (round) => {
      const file = join(cli.folder, `killed-${round}`);
      const args = ['run', `killed/${round}`, '--', process.execPath, '-e', IMMORTAL, file, 'leader'];
      const started = cli.start(args, { env: { HOLDFAST_ENDPOINT: api.url, IMMORTAL } });
      if (!(await bothLive(started))) return false;
      const killedAt = Date.now();
      started.child.kill('SIGKILL');
      await delay(LATEST_MS + 100);
      for (const role of ['leader', 'child']) {
        const lastAt = await lastSign(`${file}.${role}`);
        expect(lastAt - killedAt, `the ${role} of round ${round}`).toBeLessThan(LATEST_MS);
      }
      return true;
    });
  });

  it('is no longer needed to end the command in time where it is stopped', { timeout: 300_000 }, async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    await inTurns(rounds(50), 3, async (round) => {
      const key = `stopped/${round}`;
      const file = join(cli.folder, `stopped-${round}`);
      const args = ['run', key, '--ttl', '3', '--', process.execPath, '-e', IMMORTAL, file, 'leader'];
      const started = cli.start(args, { env: { HOLDFAST_ENDPOINT: api.url, IMMORTAL } });
      if (!(await bothLive(started))) return false;
      await delay(random() * 2000);
      started.child.kill('SIGSTOP');
      await expect.poll(async () => (await holdfast.readLease(key)).state, { timeout: 30_000 }).toBe('expired');
      const ended = Date.parse((await holdfast.readLease(key)).expiresAt ?? '');
      const lives = await Promise.all(['leader', 'child'].map((role) => lastSign(`${file}.${role}`)));
      const left = ended - Math.max(...lives);
      expect(left, `round ${round} of SEED=${seed}: ${lives}, ${ended}`).toBeGreaterThan(0);
      started.child.kill('SIGCONT');
      expect((await started.exited).code).toBe(76);
      return true;
    });
  });
});
