import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import cron, { type RunCoordinator } from 'node-cron';
import { afterAll, describe, expect, it } from 'vitest';
import { Holdfast, HoldfastError, type Transport } from '../../clients/typescript/src/index.ts';
import { nodeCronCoordinator } from '../../clients/typescript/src/node-cron.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startApi } from '../support/stack/api.ts';
import { isFull } from '../support/time/rounds.ts';
import { onceWorld } from '../support/worlds/once.ts';

const world = await onceWorld({ clock: systemClock });
const api = await startApi(world.handlers);
afterAll(() => api.stop());

const sourceOf = (file: string) => pathToFileURL(join(import.meta.dirname, '../../clients/typescript/src', file)).href;
const TASKS = 10;
/** How many fires the test plays: set FIRES for more. */
const FIRES = Number(process.env.FIRES ?? 300);
const SECONDS = FIRES / TASKS;

/** A process whose clock is ahead, with node-cron tasks that fire each second and print what they run for. */
function startProcess(aheadMs: number) {
  const source = `
    const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...given) { given.length > 0 ? super(...given) : super(Real.now() + ${aheadMs}); }
      static now() { return Real.now() + ${aheadMs}; }
    };
    const { default: cron } = await import('node-cron');
    const { Holdfast } = await import('${sourceOf('index.ts')}');
    const { nodeCronCoordinator } = await import('${sourceOf('node-cron.ts')}');
    const holdfast = new Holdfast({ endpoint: '${api.url}', holder: 'ahead by ${aheadMs}' });
    cron.setRunCoordinator(nodeCronCoordinator(holdfast));
    for (let task = 0; task < ${TASKS}; task++)
      cron.schedule('* * * * * *', ({ date }) => console.log('ran task-' + task + ' ' + date.toISOString()), {
        name: 'task-' + task, distributed: true, missedExecutionTolerance: 60_000, suppressMissedWarning: true,
      });
    console.log('ready ' + Date.now());
    process.stdin.on('end', () => process.exit()).resume();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  const exited = new Promise((resolve) => child.once('close', resolve));
  const stop = () => {
    child.stdin.end();
    return exited;
  };
  return { lines: () => printed.split('\n').slice(0, -1), stop };
}

describe('nodeCronCoordinator', () => {
  // These tests take real seconds.
  it.runIf(isFull)(
    'nodeCronCoordinator runs each fire once in three processes whose clocks differ by 400 ms',
    async () => {
      const processes = [0, 400, 800].map(startProcess);
      const readyAt = (lines: string[]) =>
        Number(lines.find((line) => line.startsWith('ready'))?.slice('ready '.length));
      await expect.poll(() => processes.every(({ lines }) => readyAt(lines()) > 0)).toBe(true);
      // The slots that all processes fire from the first to the last moment.
      const from = Math.ceil(Math.max(...processes.map(({ lines }) => readyAt(lines()))) / 1000) * 1000 + 1000;
      const slots = Array.from({ length: SECONDS }, (_, at) => new Date(from + at * 1000).toISOString());
      const fires = slots.flatMap((slot) => Array.from({ length: TASKS }, (_, task) => `ran task-${task} ${slot}`));
      const runs = () => processes.flatMap(({ lines }) => lines()).filter((line) => fires.includes(line));
      await expect
        .poll(() => new Set(runs()).size, { interval: 200, timeout: (SECONDS + 30) * 1000 })
        .toBe(fires.length);
      // Late fires of the same slots would come now.
      await new Promise((resolve) => setTimeout(resolve, 2000));
      expect(runs().length).toBe(fires.length);
      await Promise.all(processes.map(({ stop }) => stop()));
      expect(fires.length).toBe(FIRES);
    },
    (SECONDS + 60) * 1000,
  );

  const holdfast = new Holdfast({ endpoint: api.url, holder: 'test' });
  const coordinator: RunCoordinator = nodeCronCoordinator(holdfast, { timeoutMs: 0 });
  const other = nodeCronCoordinator(new Holdfast({ endpoint: api.url, holder: 'other' }));
  const fire = (name: string, second: number) => `${name}:2026-11-26T02:00:0${second}.000Z`;

  it('nodeCronCoordinator names key and slot by the task and the fire', async () => {
    expect(await coordinator.shouldRun(fire('a:b', 1), 30_000)).toBe(true);
    expect(await holdfast.readOnce({ key: 'a:b' })).toMatchObject({ state: 'held', ttlSeconds: 30 });
    await coordinator.onComplete?.(fire('a:b', 1));
    expect(await holdfast.readOnce({ key: 'a:b' })).toMatchObject({
      ...{ state: 'released', result: null, done: { slot: '2026-11-26T02:00:01.000Z', by: 'test' } },
    });
    expect(await other.shouldRun(fire('a:b', 1), 30_000)).toBe(false);
    expect(await other.shouldRun(fire('a:b', 0), 30_000)).toBe(false);
    expect(await other.shouldRun(fire('a:b', 2), 30_000)).toBe(true);
  });

  it('nodeCronCoordinator runs a fire whose lease lasts longer than a slot is kept', async () => {
    expect(await coordinator.shouldRun(fire('long', 1), 172_800_000)).toBe(true);
    expect(await holdfast.readOnce({ key: 'long' })).toMatchObject({ state: 'held', ttlSeconds: 86_400 });
    const brief = nodeCronCoordinator(holdfast, { keepSeconds: 60 });
    expect(await brief.shouldRun(fire('brief', 1), 300_000)).toBe(true);
    await brief.onComplete(fire('brief', 1));
    const { done } = (await holdfast.readOnce({ key: 'brief' })) as { done: { at: string; keptUntil: string } };
    expect(Date.parse(done.keptUntil) - Date.parse(done.at)).toBe(300_000);
  });

  it('nodeCronCoordinator skips a fire while an earlier run of the task still works', async () => {
    expect(await coordinator.shouldRun(fire('slow', 1), 30_000)).toBe(true);
    expect(await other.shouldRun(fire('slow', 2), 30_000)).toBe(false);
    await coordinator.onComplete?.(fire('slow', 1));
    expect(await other.shouldRun(fire('slow', 3), 30_000)).toBe(true);
  });

  it('nodeCronCoordinator does not keep the process alive after a result that was not stored', async () => {
    const clock = new ManualClock();
    const service = new MemoryService({ surroundings: clock });
    const transport: Transport = (operation, ...rest) => {
      if (operation === 'onceComplete') throw new HoldfastError({ code: 'Refused', detail: 'no' });
      return service.transport(operation, ...rest);
    };
    const refused = nodeCronCoordinator(new Holdfast({ transport, surroundings: clock, holder: 'test' }));
    expect(await refused.shouldRun(fire('kept', 1), 30_000)).toBe(true);
    const awake = () => clock.timers.filter(({ idle }) => !idle);
    expect(awake()).toHaveLength(1);
    await expect(refused.onComplete(fire('kept', 1))).rejects.toMatchObject({ code: 'Refused' });
    expect(awake()).toEqual([]);
  });

  it('nodeCronCoordinator makes node-cron skip the fire if the service does not answer', async () => {
    const unreachable = new Holdfast({ endpoint: 'http://127.0.0.1:1', holder: 'test' });
    const reasons: unknown[] = [];
    const task = cron.schedule('* * * * * *', () => void reasons.push('ran'), {
      ...{ name: 'cut', distributed: true, logger: { info() {}, warn() {}, debug() {}, error() {} } },
      runCoordinator: nodeCronCoordinator(unreachable, { timeoutMs: 0 }),
    });
    task.on('execution:skipped', ({ reason }) => void reasons.push(reason));
    await expect.poll(() => reasons[0]).toBe('coordinator-error');
    await task.destroy();
    expect(reasons).not.toContain('ran');
  });
});
