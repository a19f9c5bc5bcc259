import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { rateForget } from '../../../functions/rates/forget.ts';
import { readRates } from '../../../functions/rates/read.ts';
import { rateReserve } from '../../../functions/rates/reserve.ts';
import { rateSettle } from '../../../functions/rates/settle.ts';
import type { LeaseDependencies } from '../../../shared/locks/dependencies.ts';
import { forgetRate } from '../../../shared/rates/forget-rate.ts';
import { forgetRateInput, readRatesInput, reserveInput, settleInput } from '../../../shared/rates/inputs.ts';
import { type CapCommand, writeRateCap } from '../../../shared/rates/rate-cap.ts';
import { readRates as reads } from '../../../shared/rates/read.ts';
import { reserveRate } from '../../../shared/rates/reserve.ts';
import { settleRate } from '../../../shared/rates/settle.ts';
import { call, madeAtFirstCall, noteCommands, testClient } from '../emulators/aws.ts';
import { documented } from '../stack/contract.ts';
import { leaseWorld } from './leases.ts';

const factories = { rateReserve, rateSettle, rateForget, readRates };
const inputs = { reserve: reserveInput(), settle: settleInput(), forget: forgetRateInput(), read: readRatesInput() };

/** The world of leases, and the calls of rates over its tables: as domain calls and as handlers. */
export async function rateWorld(overrides: Partial<LeaseDependencies> = {}) {
  const world = await leaseWorld(overrides);
  const { dependencies, dynamodb, table } = world;
  const reserved = documented('rateReserve', reserveRate(dependencies));
  const settled = documented('rateSettle', settleRate(dependencies));
  const forgotten = documented('rateForget', forgetRate(dependencies));
  const read = documented('readRates', reads(dependencies));
  return {
    ...world,
    /** The schemas fill in the defaults. */
    reserve: (input: object, as = call()) => reserved(inputs.reserve.parse({ holder: 'tester', ...input }), as),
    settle: (input: object, as = call()) => settled(inputs.settle.parse(input), as),
    forget: (input: object, as = call()) => forgotten(inputs.forget.parse(input), as),
    readRates: (input: object, as = call()) => read(inputs.read.parse(input), as),
    readRate: async (key: string) => {
      const view = await read(inputs.read.parse({ key }), call());
      if ('keys' in view) throw new Error('a key, not a page');
      return view;
    },
    /** The command of an operator, as the cap of a key sends it. */
    capRate: (command: Omit<CapCommand, 'now'> & { now?: number }, as = call()) =>
      writeRateCap(dependencies, { now: world.clock.now(), ...command }, as),
    /** The record of a key, as it is stored. */
    rawRate: async (key: string) =>
      (
        await dynamodb.send(
          new GetItemCommand({ TableName: table, Key: { key: { S: `holdfast:rate:${key}` } }, ConsistentRead: true }),
        )
      ).Item,
    handlers: { ...world.handlers, ...rateHandlers(dependencies) },
  };
}

/** The deployed handlers, each with a client of its own. */
export const rateHandlers = (dependencies: LeaseDependencies) => {
  const handlerOf = <Name extends keyof typeof factories>(name: Name) => {
    const dynamodb = testClient();
    noteCommands(name, dynamodb);
    return madeAtFirstCall(() => factories[name]({ ...dependencies, dynamodb }));
  };
  return {
    rateReserve: handlerOf('rateReserve'),
    rateSettle: handlerOf('rateSettle'),
    rateForget: handlerOf('rateForget'),
    readRates: handlerOf('readRates'),
  };
};
