import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { capKey } from '../../shared/locks/calls/cap.ts';
import { runNext } from '../../shared/locks/calls/run-next.ts';
import { EXCLUSIVE_WEIGHT } from '../../shared/locks/record/identity.ts';
import { type KeyRecord, parseKey } from '../../shared/locks/record/record.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, type Happened, rounds } from '../support/time/rounds.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// Every write that grants is judged by the record before it, whatever the order of all requests.

const ROUNDS = rounds(60, 3);
const base = testSeed();
const world = await permitLineWorld();
const { dependencies, dynamodb, clock, acquire, release, park, repairLine, steps } = world;
const beside = testClient();
const cap = capKey(dependencies);
const next = runNext(dependencies);
afterAll(() => steps.stop());

let interleaver: Interleaver | undefined;
let round: { key: string; happened: Happened; wrong: string[] };

const record = async ({ key }: { key: string }): Promise<KeyRecord> => {
  const command = new GetItemCommand({ TableName: dependencies.table, Key: { key: { S: key } }, ConsistentRead: true });
  return parseKey(key, (await beside.send(command)).Item);
};

dynamodb.middlewareStack.add(
  (send) => async (args) => {
    const turns = interleaver;
    if (!turns) return send(args);
    await turns.turn();
    const before = await record(round);
    try {
      return await send(args);
    } finally {
      judge(before, await record(round));
      await turns.turn();
    }
  },
  { step: 'deserialize', priority: 'low', name: 'judge' },
);

function judge(before: KeyRecord, after: KeyRecord): void {
  const { wrong, happened } = round;
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };
  const granted = after.entries.filter(({ id }) => before.entries.every((one) => one.id !== id));
  if (before.cap && !after.cap) count('lifted');
  if (granted.length === 0) return;
  if (granted.some(({ ticket }) => ticket !== undefined && ticket === before.moved)) count('moved');
  if (!before.cap) return;
  const { limit } = before.cap;
  count('capped');
  if (limit === 0) wrong.push('a grant of a paused key');
  const isAlone = after.entries.length === 1;
  if (after.used > limit && !isAlone) wrong.push(`${after.used} in use under a cap of ${limit}`);
  if (after.used >= EXCLUSIVE_WEIGHT) count('exclusive');
}

const ignored = (error: unknown): undefined => {
  if (!(error instanceof HoldfastError)) throw error;
};

it(`no write exceeds the cap of the record (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { capped: 0, lifted: 0, exclusive: 0, moved: 0, tasks: 0 };
  for (let played = 0; goesOn(played, ROUNDS, happened); played++) {
    const seed = base + played;
    const random = seededRandom(seed);
    const upTo = (max: number) => Math.floor(random() * (max + 1));
    round = { key: `cap race ${seed}`, happened, wrong: [] };
    const { key } = round;
    const tickets: string[] = [];
    const operator = async () => {
      for (const limit of [1 + upTo(2), upTo(1) === 0 ? 0 : null, upTo(3), null])
        await cap({ key, limit, ...(limit !== null && { reason: 'race' }) }, call());
    };
    const mover = async () => {
      for (let tries = 0; tries < 3; tries++) {
        const ticket = tickets[upTo(tickets.length)];
        if (ticket) await next({ key, ticket }, call());
        else await repairLine(key);
      }
    };
    const caller = (nth: number) => {
      const terms = upTo(3) === 0 ? {} : { limit: 3, weight: 1 + upTo(2) };
      return async () => {
        const grant = await acquire({ key, holder: `c${nth}`, ttlSeconds: 2, ...terms }).catch(ignored);
        if (upTo(3) === 0)
          clock.advance(2600); // the grants expire
        else if (grant) await release(grant);
      };
    };
    const parker = (nth: number) => {
      const terms = upTo(2) === 0 ? {} : { limit: 3, weight: 1 + upTo(2) };
      return async () => {
        const { ticket, task } = await park({ key, holder: `t${nth}`, ttlSeconds: 2, ...terms });
        tickets.push(ticket);
        await repairLine(key);
        if (task.state === 'succeeded') await release(task.output as unknown as { key: string; leaseId: string });
      };
    };
    interleaver = new Interleaver(random);
    await interleaver.run([operator, mover, ...[0, 1, 2].map(caller), ...[0, 1, 2].map(parker)]);
    interleaver = undefined;
    expect(round.wrong, `seed ${seed}`).toEqual([]);
    clock.advance(10_000);
    for (let repairs = 0; repairs < 4; repairs++) {
      await repairLine(key);
      clock.advance(10_000);
    }
    expect(await world.read(key), `seed ${seed}`).toMatchObject({ waiting: 0 });
    expect(await record(round), `seed ${seed}`).toMatchObject({ cap: undefined });
    if (tickets.length > 0) happened.tasks++;
  }
  expectAllHappened(happened, 1, ['capped', 'lifted']);
}, 120_000);
