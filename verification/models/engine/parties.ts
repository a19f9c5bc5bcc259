import { sleep } from './common.ts';
import { type Config, Refused, type Request, type Self, type Steps, type Task } from './types.ts';
import { type Chooser, type Scenario, UNKNOWN, type World } from './world.ts';

export const named = <T>(name: string, wish: T): readonly [string, T] => [name, wish];

/** The first few. */
export const some = <T>(chooser: Chooser, values: readonly T[], least = 1): T[] =>
  values.slice(0, least + chooser.choose(values.length - least + 1));

/** A clock is right, or ahead by one. */
export const offset = (party: number, { chooser }: World): number => (chooser.replays ? party % 2 : chooser.choose(2));

export const isExpected = (error: unknown): boolean => error === UNKNOWN || error instanceof Refused;

/** Up to three tries of a request that may get no answer, or be refused. @returns whether a try was answered */
export function* threeTimes(send: () => Steps<unknown>, failed?: () => void): Steps<boolean> {
  for (let tries = 0; tries < 3; tries++)
    try {
      yield* send();
      return true;
    } catch (error) {
      if (!isExpected(error)) throw error;
      failed?.();
    }
  return false;
}

/** How a task behaves. Times are in units of the model. */
export interface TaskWish {
  after?: number;
  hold?: number;
  ttl?: number;
  parkMs?: number;
  /** No message reaches it. */
  unreachable?: boolean;
  /** How long after its state is tried again with a new token. */
  again?: number | undefined;
  /** A second task of the same request. */
  twin?: boolean;
}

type Park = (token: string, config: Config, self: Self) => Steps<void>;

/** A state machine that parks a task, and perhaps tries the state again. */
export function addTask(world: World, wish: TaskWish, request: Request, park: Park): void {
  const { after = 0, hold = 1, unreachable, again, twin } = wish;
  const first = `T${request.holder}`;
  const enter = (token: string, at: number, retried: boolean): void => {
    const task: Task = { token, state: 'waiting', alive: true, request, from: world.time, hold, unreachable, retried };
    world.tasks.set(token, task);
    world.spawn(`park ${token}`, function* (config, self) {
      if (at) yield sleep(at);
      task.from = world.time; // the state is entered once
      const fails = () => {
        task.retried = true;
      };
      const isAnswered = yield* threeTimes(() => park(token, config, self), fails);
      if (!isAnswered && task.state === 'waiting') Object.assign(task, { state: 'failed', error: 'OutcomeUnknown' });
    });
  };
  enter(first, after, twin === true);
  if (twin) enter(`${first}'`, after, true);
  if (again === undefined) return;
  world.spawn(`again ${request.holder}`, function* () {
    yield sleep(after + again);
    const task = world.tasks.get(first);
    if (task?.state !== 'waiting') return;
    task.alive = false; // it timed out
    enter(`${first}'`, 0, true);
  });
}

/** A function that dies fails its task, at the latest where nothing is on record of it. */
export const failTaskOfCrashed: Scenario['crashed'] = (world, { name }) => {
  if (!name.startsWith('park ')) return;
  const task = world.tasks.get(name.slice(5));
  const hasRow = [...world.rows.values()].some(({ token }) => token === task?.token);
  if (task?.state === 'waiting' && (!hasRow || world.chooser.choose(2)))
    Object.assign(task, { state: 'failed', error: 'Lambda' });
};
