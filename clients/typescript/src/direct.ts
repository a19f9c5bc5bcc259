import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import type * as z from 'zod/mini';
import type { Call } from '../../../shared/aws/call.ts';
import { HoldfastError as DomainError, invalidRequest } from '../../../shared/errors.ts';
import { addNamespace, removeNamespace } from '../../../shared/lambda/stored-names.ts';
import { KEY_OR_PAGE_NAME_FIELDS } from '../../../shared/listings/key-or-page.ts';
import { acquire } from '../../../shared/locks/calls/acquire.ts';
import { breakGrant } from '../../../shared/locks/calls/break.ts';
import { capKey } from '../../../shared/locks/calls/cap.ts';
import { heartbeat } from '../../../shared/locks/calls/heartbeat.ts';
import {
  acquireInput,
  breakInput,
  capInput,
  heartbeatInput,
  LEASE_LIST_FIELDS,
  LEASE_NAME_FIELDS,
  readInput,
  releaseInput,
  runNextInput,
  withdrawInput,
} from '../../../shared/locks/calls/inputs.ts';
import { readKeyOrList } from '../../../shared/locks/calls/read.ts';
import { release } from '../../../shared/locks/calls/release.ts';
import { runNext } from '../../../shared/locks/calls/run-next.ts';
import { withdrawOwnRequest } from '../../../shared/locks/calls/withdraw.ts';
import type { LeaseDependencies } from '../../../shared/locks/dependencies.ts';
import type { NameFields } from '../../../shared/namespace.ts';
import { beginOnce } from '../../../shared/once/begin.ts';
import { completeOnce } from '../../../shared/once/complete.ts';
import { forgetOnce } from '../../../shared/once/forget.ts';
import { beginInput, completeInput, forgetInput, readOnceInput } from '../../../shared/once/inputs.ts';
import { readOnce } from '../../../shared/once/read.ts';
import { forgetRate } from '../../../shared/rates/forget-rate.ts';
import { forgetRateInput, readRatesInput, reserveInput, settleInput } from '../../../shared/rates/inputs.ts';
import { readRates } from '../../../shared/rates/read.ts';
import { reserveRate } from '../../../shared/rates/reserve.ts';
import { settleRate } from '../../../shared/rates/settle.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { systemIds } from '../../../shared/surroundings/ids.ts';
import { HoldfastError, type Operation, type Transport, unreachable } from './index.ts';

export interface DirectOptions {
  /**
   * Your DynamoDB client. Make it with `requestHandler: { requestTimeout: 2000, throwOnRequestTimeout: true }`, so that a lost answer costs only two
   * seconds.
   */
  client: DynamoDBClient;
  /** The table of leases and permits, such as `holdfast-prod-leases`. */
  leasesTable: string;
  /** The table of waiters, such as `holdfast-prod-waiters`. */
  waitersTable: string;
  /** The clock skew margin of the deployment, which must be the same here. The default is 500. */
  clockSkewMs?: number | undefined;
  /** How long the deployment keeps a released record, which must be the same here. The default is 3600. */
  fenceRetentionSeconds?: number | undefined;
  /**
   * Returns a client that notifies Step Functions tasks. You want it if tasks are parked for the keys that you release: the next task then has the lease
   * at once, and otherwise within a minute, by the schedule of the deployment. The callbacks of durable functions always wait for the schedule.
   *
   * A message to a task is not sent again, and a connection that was idle may be closed, so make the client with
   * `requestHandler: { requestTimeout: 3000, throwOnRequestTimeout: true, httpsAgent: { keepAlive: false } }`.
   */
  stepFunctions?: (() => Promise<SFNClient>) | undefined;
}

/** Unlike the functions, this process may read the whole table, so cursors need no encryption. */
const cursors: NameFields['cursors'] = { open: (cursor) => cursor, seal: (cursor) => cursor };
const LISTED: Partial<Record<Operation, NameFields>> = {
  readLeases: { ...LEASE_LIST_FIELDS, cursors },
  readOnce: { ...KEY_OR_PAGE_NAME_FIELDS, cursors },
  readRates: { ...KEY_OR_PAGE_NAME_FIELDS, cursors },
};

/** How long a try may take if the caller sets no limit, in milliseconds. Its signal may end it earlier. */
const NO_LIMIT_MS = 60_000;

/**
 * Runs the code of the functions in your process, on your DynamoDB client, so that a call on a lease costs no Lambda invocation and one network hop less. The
 * clock of the process then counts as a clock of the service, and must be right to within `clockSkewMs`.
 * @throws HoldfastError Refused for every call that is not about leases, and for parking or cancelling a task
 * @example
 * const tables = { leasesTable: 'holdfast-prod-leases', waitersTable: 'holdfast-prod-waiters' };
 * const holdfast = new Holdfast({ transport: directTransport({ client: new DynamoDBClient(), ...tables }), holder: 'worker-1' });
 */
export function directTransport(options: DirectOptions): Transport {
  const calls = callsOf(dependenciesOf(options));
  return async (operation, payload, signal, ...[namespace, timeoutMs = NO_LIMIT_MS]) => {
    const call = calls[operation];
    if (!call || 'taskToken' in payload || 'callbackId' in payload) throw refused(operation);
    const nameFields = LISTED[operation] ?? LEASE_NAME_FIELDS;
    const shown = <Shown>(it: Shown) => (namespace === undefined ? it : removeNamespace(it, nameFields, namespace));
    const startedAt = systemClock.now();
    const timeLeftMs = () => (signal.aborted ? 0 : timeoutMs - (systemClock.now() - startedAt));
    try {
      // Undefined fields are dropped as over HTTP, before the namespace is put in front of the keys.
      const sent: unknown = JSON.parse(JSON.stringify(payload));
      const request = namespace === undefined ? sent : addNamespace(sent, nameFields, namespace);
      return shown(await call(request, { signal, timeLeftMs, namespace }));
    } catch (error) {
      if (!(error instanceof DomainError)) throw unreachable((error as Error).message, error); // the request may have been sent
      throw new HoldfastError(shown(error.problem('')), error);
    }
  };
}

function dependenciesOf(options: DirectOptions): LeaseDependencies {
  return {
    dynamodb: options.client,
    clock: systemClock,
    ids: systemIds,
    table: options.leasesTable,
    waitersTable: options.waitersTable,
    clockSkewMs: options.clockSkewMs ?? 500,
    maxWaitSeconds: 20,
    fenceRetentionSeconds: options.fenceRetentionSeconds ?? 3600,
    stepFunctions:
      options.stepFunctions ??
      (async () => {
        throw new DomainError(
          'Unavailable',
          'a parked task must be notified, and directTransport has no stepFunctions',
        );
      }),
  };
}

type Run = (payload: unknown, call: Call) => Promise<unknown>;

function callsOf(dependencies: LeaseDependencies): Partial<Record<Operation, Run>> {
  return {
    acquire: checked(acquireInput(), acquire(dependencies)),
    heartbeat: checked(heartbeatInput(), heartbeat(dependencies)),
    release: checked(releaseInput(), release(dependencies)),
    withdraw: checked(withdrawInput(), withdrawOwnRequest(dependencies)),
    breakLease: checked(breakInput(), breakGrant(dependencies)),
    capKey: checked(capInput(), capKey(dependencies)),
    runNext: checked(runNextInput(), runNext(dependencies)),
    readLeases: checked(readInput(), readKeyOrList(dependencies)),
    onceBegin: checked(beginInput(), beginOnce(dependencies)),
    onceComplete: checked(completeInput(), completeOnce(dependencies)),
    onceForget: checked(forgetInput(), forgetOnce(dependencies)),
    readOnce: checked(readOnceInput(), readOnce(dependencies)),
    rateReserve: checked(reserveInput(), reserveRate(dependencies)),
    rateSettle: checked(settleInput(), settleRate(dependencies)),
    rateForget: checked(forgetRateInput(), forgetRate(dependencies)),
    readRates: checked(readRatesInput(), readRates(dependencies)),
  };
}

function checked<Input>(schema: z.ZodMiniType<Input>, run: (input: Input, call: Call) => Promise<unknown>): Run {
  return async (payload, call) => {
    const parsed = schema.safeParse(payload);
    if (parsed.success) return run(parsed.data, call);
    throw invalidRequest(parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })));
  };
}

const refused = (operation: Operation) =>
  new HoldfastError({ code: 'Refused', detail: `${operation} needs the deployed functions: use another transport` });
