import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { onceBegin } from '../../../functions/once/begin.ts';
import { onceComplete } from '../../../functions/once/complete.ts';
import { onceForget } from '../../../functions/once/forget.ts';
import { readOnce } from '../../../functions/once/read.ts';
import { breakGrant } from '../../../shared/locks/calls/break.ts';
import { heartbeat } from '../../../shared/locks/calls/heartbeat.ts';
import { breakInput } from '../../../shared/locks/calls/inputs.ts';
import { release } from '../../../shared/locks/calls/release.ts';
import type { LeaseDependencies } from '../../../shared/locks/dependencies.ts';
import { beginOnce } from '../../../shared/once/begin.ts';
import { completeOnce } from '../../../shared/once/complete.ts';
import { forgetOnce } from '../../../shared/once/forget.ts';
import { beginInput, completeInput, forgetInput, readOnceInput } from '../../../shared/once/inputs.ts';
import { readOnce as readsOnce } from '../../../shared/once/read.ts';
import { call, madeAtFirstCall, noteCommands, testClient } from '../emulators/aws.ts';
import { documented } from '../stack/contract.ts';
import { leaseWorld } from './leases.ts';

const factories = { onceBegin, onceComplete, onceForget, readOnce };
const inputs = {
  begin: beginInput(),
  complete: completeInput(),
  forget: forgetInput(),
  read: readOnceInput(),
  break: breakInput(),
};

/** The world of leases, and the calls of `once` over its tables: as domain calls and as handlers. */
export async function onceWorld(overrides: Partial<LeaseDependencies> = {}) {
  const world = await leaseWorld(overrides);
  const { dependencies, dynamodb, table } = world;
  const begun = documented('onceBegin', beginOnce(dependencies));
  const completed = documented('onceComplete', completeOnce(dependencies));
  const forgotten = documented('onceForget', forgetOnce(dependencies));
  const read = documented('readOnce', readsOnce(dependencies));
  const broken = documented('breakLease', breakGrant(dependencies));
  const beaten = documented('heartbeat', heartbeat(dependencies));
  const released = documented('release', release(dependencies));
  /** The schemas fill in the defaults. */
  const begin = (input: object, as = call()) => begun(inputs.begin.parse({ holder: 'tester', ...input }), as);
  return {
    ...world,
    begin,
    /** A run of the key. The test fails if the call receives none. */
    run: async (input: object) => {
      const answer = await begin(input);
      if (answer.outcome !== 'run') throw new Error(`expected a run, got ${JSON.stringify(answer)}`);
      return answer;
    },
    complete: (input: object, as = call()) => completed(inputs.complete.parse(input), as),
    forget: (input: object, as = call()) => forgotten(inputs.forget.parse(input), as),
    readOnce: (input: object, as = call()) => read(inputs.read.parse(input), as),
    readKey: async (key: string) => {
      const view = await read(inputs.read.parse({ key }), call());
      if ('keys' in view) throw new Error('a key, not a page');
      return view;
    },
    breakRun: (input: object, as = call()) => broken(inputs.break.parse({ kind: 'once', ...input }), as),
    heartbeat: (input: Parameters<typeof beaten>[0], as = call()) => beaten(input, as),
    release: (input: Parameters<typeof released>[0], as = call()) => released(input, as),
    /** The record of a key, as it is stored. */
    rawRow: async (key: string) =>
      (
        await dynamodb.send(
          new GetItemCommand({ TableName: table, Key: { key: { S: `holdfast:once:${key}` } }, ConsistentRead: true }),
        )
      ).Item,
    handlers: { ...world.handlers, ...onceHandlers(dependencies) },
  };
}

/** The deployed handlers, each with a client of its own. */
export const onceHandlers = (dependencies: LeaseDependencies) => {
  const handlerOf = <Name extends keyof typeof factories>(name: Name) => {
    const dynamodb = testClient();
    noteCommands(name, dynamodb);
    return madeAtFirstCall(() => factories[name]({ ...dependencies, dynamodb }));
  };
  return {
    onceBegin: handlerOf('onceBegin'),
    onceComplete: handlerOf('onceComplete'),
    onceForget: handlerOf('onceForget'),
    readOnce: handlerOf('readOnce'),
  };
};
