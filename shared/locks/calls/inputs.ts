import * as z from 'zod/mini';
import { callersName, cursorText, flag, json, jsonFault, limit, name, oneOf, queryFlag, whole } from '../../fields.ts';
import type { NameFields } from '../../namespace.ts';
import { cappedRates } from '../../rates/inputs.ts';
import { BOUND_SECONDS, DEFAULT_TTL_SECONDS } from '../dependencies.ts';
import { isDurable } from '../executions/allowed.ts';
import { MAX_DATA_BYTES, MAX_LIMIT, MODES, ONCE_KEY_PREFIX, RATE_KEY_PREFIX } from '../record/identity.ts';
import { KEY_STATES, REPLACES } from './types.ts';

// The schemas are functions instead of constants, so that each Lambda function builds only its own. The other schemas
// would cost it 3 kB, and 1 ms of every cold start.

const key = () => callersName(1024);
/** Like `key`, but the keys of the service's own leases are allowed too. */
const anyKey = () => name(1024);
const leaseId = () => name(256);
const ttlSeconds = () => whole(2, 86_400);
const ticket = () => name(256);
/** The longest time for which a Lambda function can run. */
const MAX_GRACE_SECONDS = 900;
/** The longest sleep of a caller. Its place stays a minute longer than that. */
const MAX_SLEEP_MS = 300_000;
/** The id of a callback, in the form in which Lambda makes it. */
const callbackId = () =>
  name(1024).check(z.regex(/^[A-Za-z0-9+/]+={0,2}$/, 'must be the id of a callback of a durable function'));

/** The fields of acquire. contract/requests/leases.ts explains each of them. */
const acquireFields = () =>
  z.strictObject({
    key: key(),
    holder: name(256),
    ttlSeconds: z.optional(ttlSeconds()),
    waitSeconds: z._default(whole(0, 20), 0),
    sleepMs: z._default(whole(0, MAX_SLEEP_MS), 0),
    fair: z._default(z.boolean('must be true or false'), true),
    ticket: z.optional(ticket()),
    requestId: z.optional(name(256)),
    data: z.optional(json()),
    execution: z.optional(executionArn()),
    target: z.optional(executionArn()),
    graceSeconds: z.optional(whole(0, MAX_GRACE_SECONDS)),
    bound: z.optional(flag()),
    taskToken: z.optional(name(2048)),
    callbackId: z.optional(callbackId()),
    parkSeconds: z.optional(whole(1, 604_800)),
    limit: z.optional(whole(1, MAX_LIMIT)),
    weight: z.optional(whole(1, MAX_LIMIT)),
    mode: z.optional(oneOf(MODES)),
    replace: z.optional(oneOf(REPLACES)),
  });
type AcquireFields = z.infer<ReturnType<typeof acquireFields>>;

const checkedFields = () =>
  acquireFields().check(
    z.check(({ value, issues }) => {
      for (const [field, message] of [
        ...parkingFaults(value),
        ...sleepFaults(value),
        ...executionFaults(value),
        ...termsFaults(value),
        ...replaceFaults(value),
      ])
        issues.push({ code: 'custom', path: [field], message, input: field });
    }),
  );

/**
 * A request for a lease or a permit. A bound grant gets a ttl longer than any execution, because it does not need
 * heartbeats.
 */
export const acquireInput = () =>
  z.pipe(
    checkedFields(),
    z.transform(({ ttlSeconds = DEFAULT_TTL_SECONDS, ...fields }) => ({
      ...fields,
      ttlSeconds: fields.bound ? BOUND_SECONDS : ttlSeconds,
    })),
  );

export type AcquireInput = z.infer<ReturnType<typeof acquireInput>>;

/** The fields of a request that do not fit together, each with a message. */
type Faults = [field: string, message: string][];

/** The field that parks a task or a callback. False if the request has neither. */
const parkingField = ({ taskToken, callbackId }: Pick<AcquireFields, 'taskToken' | 'callbackId'>) =>
  callbackId !== undefined ? 'callbackId' : taskToken !== undefined && 'taskToken';

function parkingFaults(fields: AcquireFields): Faults {
  const { taskToken, callbackId, parkSeconds, waitSeconds, fair, ticket, requestId } = fields;
  const faults: Faults = [];
  const parked = parkingField(fields);
  const unparked = { waitSeconds: waitSeconds > 0, fair: !fair, ticket: ticket !== undefined };
  for (const [field, isSet] of Object.entries({ ...unparked, taskToken: callbackId && taskToken !== undefined }))
    if (parked && isSet) faults.push([field, `cannot be combined with ${parked}`]);
  if (ticket !== undefined && requestId === undefined) faults.push(['ticket', 'needs a requestId']);
  if (!parked && parkSeconds !== undefined) faults.push(['parkSeconds', 'needs a taskToken or a callbackId']);
  return faults;
}

function sleepFaults(fields: AcquireFields): Faults {
  const { sleepMs, waitSeconds, fair } = fields;
  if (sleepMs === 0) return [];
  const parked = parkingField(fields);
  if (parked) return [['sleepMs', `cannot be combined with ${parked}`]];
  const faults: Faults = [];
  if (waitSeconds === 0) faults.push(['sleepMs', 'needs waitSeconds above 0']);
  if (!fair) faults.push(['sleepMs', 'cannot be combined with fair false']);
  return faults;
}

function executionFaults(fields: AcquireFields): Faults {
  const { callbackId, execution, bound, ttlSeconds } = fields;
  const faults: Faults = [];
  for (const field of ['target', 'graceSeconds', 'bound'] as const)
    if (fields[field] && execution === undefined) faults.push([field, 'needs an execution']);
  if (callbackId !== undefined && !(execution && isDurable(execution)))
    faults.push(['execution', 'must be the durable execution of the callback']);
  // Other callers are processes, which can send heartbeats. If one crashed under a bound grant, its
  // retry would wait for the end of its own execution.
  if (bound && !parkingField(fields)) faults.push(['bound', 'needs a taskToken or a callbackId']);
  if (bound && ttlSeconds !== undefined) faults.push(['ttlSeconds', 'cannot be combined with bound']);
  return faults;
}

function termsFaults({ limit, weight, mode, data }: AcquireFields): Faults {
  if (limit === undefined && mode === undefined)
    return weight === undefined ? [] : [['weight', 'needs a limit or a mode']];
  const faults: Faults = [];
  if (mode === 'exclusive' && limit !== undefined) faults.push(['limit', 'cannot be combined with mode exclusive']);
  if (mode === 'exclusive' && weight !== undefined) faults.push(['weight', 'cannot be combined with mode exclusive']);
  else if (weight !== undefined && limit !== undefined && weight > limit)
    faults.push(['weight', 'must be at most the limit']);
  // The schema of `data` has already refused what is too deep or too large for any grant.
  if (
    mode !== 'exclusive' &&
    data !== undefined &&
    !jsonFault(data) &&
    Buffer.byteLength(JSON.stringify(data)) > MAX_DATA_BYTES
  )
    faults.push(['data', `must be at most ${MAX_DATA_BYTES} bytes of JSON with a limit or mode shared`]);
  return faults;
}

/** Only a request that can wait for the key alone replaces others. */
function replaceFaults(fields: AcquireFields): Faults {
  const { replace, waitSeconds, fair, limit, mode } = fields;
  if (!replace) return [];
  const others = { limit: limit !== undefined, mode: mode === 'shared', fair: !fair };
  const faults = Object.entries(others).flatMap(
    ([field, isSet]): Faults => (isSet ? [[field, 'cannot be combined with replace']] : []),
  );
  const waits = waitSeconds > 0 || parkingField(fields);
  return waits ? faults : [...faults, ['replace', 'needs waitSeconds above 0, a taskToken or a callbackId']];
}

export const heartbeatInput = () =>
  z.strictObject({ key: key(), leaseId: leaseId(), ttlSeconds: z.optional(ttlSeconds()) });
export type HeartbeatInput = z.infer<ReturnType<typeof heartbeatInput>>;

export const releaseInput = () => z.strictObject({ key: key(), leaseId: leaseId() });
export type ReleaseInput = z.infer<ReturnType<typeof releaseInput>>;

export const breakInput = () =>
  z.strictObject({
    key: key(),
    fence: whole(0, Number.MAX_SAFE_INTEGER),
    /**
     * Whether the grant stays until its holder releases it, or the ttl is over. The holder learns of the break from its
     * next heartbeat.
     */
    wait: z.optional(flag()),
    /** Ends the grant of the key's `once`, instead of its lease or permit. */
    kind: z.optional(oneOf(['once'])),
  });
export type BreakInput = z.infer<ReturnType<typeof breakInput>>;

export const runNextInput = () => z.strictObject({ key: key(), ticket: ticket() });
export type RunNextInput = z.infer<ReturnType<typeof runNextInput>>;

const MAX_CAP_SECONDS = 31 * 86_400;

export const capInput = () =>
  z
    .strictObject({
      key: key(),
      /**
       * 0 pauses the key, and reservations at its rates too. Null lifts the cap. If the field is absent, the cap stays.
       */
      limit: z.optional(z.nullable(whole(0, MAX_LIMIT))),
      rates: z.optional(z.nullable(cappedRates())),
      reason: z.optional(name(256).check(z.refine((reason) => reason.trim() !== '', 'must not be blank'))),
      forSeconds: z.optional(whole(1, MAX_CAP_SECONDS)),
      /** Pauses the key's `once`, instead of its leases and permits. */
      kind: z.optional(oneOf(['once'])),
    })
    .check(
      z.check(({ value: { limit, rates, reason, forSeconds, kind }, issues }) => {
        const lifts = (limit ?? null) === null && (rates ?? null) === null;
        const faults: [field: string, isWrong: boolean, message: string][] = [
          ['limit', limit === undefined && rates === undefined, 'is required, unless the call has rates'],
          ['reason', !lifts && reason === undefined, 'is required, because others will read it'],
          ['forSeconds', lifts && forSeconds !== undefined, 'cannot be combined with a lift'],
          ['limit', kind === 'once' && !lifts && limit !== 0, 'must be 0 or null with kind once'],
          ['rates', kind === 'once' && rates !== undefined, 'cannot be combined with kind once'],
        ];
        for (const [field, isWrong, message] of faults)
          if (isWrong) issues.push({ code: 'custom', path: [field], message, input: field });
      }),
    );
export type CapInput = z.infer<ReturnType<typeof capInput>>;

export const cancelInput = () => z.strictObject({ key: key(), ticket: ticket() });
export type CancelInput = z.infer<ReturnType<typeof cancelInput>>;

/**
 * The request and the holder as the caller sent them to acquire. With the `ticket` of its only call in line, the line
 * is not read.
 */
export const withdrawInput = () =>
  z.strictObject({ key: key(), requestId: name(256), holder: name(256), ticket: z.optional(ticket()) });
export type WithdrawInput = z.infer<ReturnType<typeof withdrawInput>>;

/** With a key, the run repairs only that one. */
export const repairInput = () => z.strictObject({ key: z.optional(anyKey()) });
export type RepairInput = z.infer<ReturnType<typeof repairInput>>;

/**
 * How an execution of Step Functions or of a durable function ends. Only the former are aborted, and only the latter
 * are stopped.
 */
const ENDED_STATUSES = ['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED', 'STOPPED'] as const;

/**
 * When an execution ended, in epoch milliseconds as in an event of Step Functions, or in ISO 8601 as in an event of
 * Lambda.
 */
const stopDate = () =>
  z.pipe(
    z.transform((value: unknown) => (typeof value === 'string' ? Date.parse(value) : value)),
    whole(0, Number.MAX_SAFE_INTEGER),
  );

export const executionEndedInput = () =>
  z.strictObject({
    execution: executionArn(),
    /**
     * Whether this is the second pass, a while after the event. Calls that were under way when the execution ended have
     * ended by then.
     */
    again: z._default(z.boolean('must be true or false'), false),
    /** How and when the execution ended, if the event says so. */
    status: z.optional(oneOf(ENDED_STATUSES)),
    stopDate: z.optional(stopDate()),
  });
export type ExecutionEndedInput = z.infer<ReturnType<typeof executionEndedInput>>;

/** The orders of a list: by key, by expiry, the oldest grant first, or the longest line first. */
const SORTS = ['key', 'expiry', 'held', 'waiting'] as const;

/** `active`: with a grant, even an expired one, with a line, or capped. */
const LISTED_STATES = [...KEY_STATES, 'active'] as const;

export const readInput = () =>
  z
    .strictObject({
      key: z.optional(
        anyKey().check(
          z.refine(
            (key) => !key.startsWith(ONCE_KEY_PREFIX),
            `must not begin with ${ONCE_KEY_PREFIX}, the keys of once, which readOnce reads`,
          ),
          z.refine(
            (key) => !key.startsWith(RATE_KEY_PREFIX),
            `must not begin with ${RATE_KEY_PREFIX}, the keys of rates, which readRates reads`,
          ),
        ),
      ),
      prefix: z.optional(name(1024)),
      holder: z.optional(name(256)),
      state: z.optional(oneOf(LISTED_STATES)),
      sort: z.optional(oneOf(SORTS)),
      limit: z.optional(limit()),
      cursor: z.optional(cursorText()),
      /** Whether to list the waiters of the key, in their order. In a query string, the value is a text. */
      waiters: z.optional(queryFlag()),
    })
    .check(
      z.check((ctx) => {
        const { key, waiters, limit, ...rest } = ctx.value;
        const fault = (field: string, message: string) =>
          ctx.issues.push({ code: 'custom', path: [field], message, input: field });
        const listing = limit !== undefined && !waiters ? { ...rest, limit } : rest;
        if (key !== undefined) for (const field of Object.keys(listing)) fault(field, 'cannot be combined with key');
        else if (waiters) fault('waiters', 'needs a key');
      }),
    );
export type ReadInput = z.infer<ReturnType<typeof readInput>>;

const EXECUTION_RULE = 'must be the ARN of an execution of a Standard workflow or of a durable function';

/**
 * The ARN of an execution of a Standard workflow or of a durable function.
 *
 * - Express workflows are refused: Step Functions does not send an event when one of their executions ends, and does
 *   not describe it.
 * - Both names are required, because IAM denies a question about any other ARN, which would look like a missing
 *   permission.
 * - A child of a Map Run has the label of the Map Run in the name of its state machine.
 * - The version of a durable function is never an alias.
 */
export const executionArn = () =>
  name(320).check(
    z.regex(
      /^arn:[\w-]+:(states:[\w-]+:\d{12}:execution:[^:\s]{1,121}:[^:\s]{1,80}|lambda:[\w-]+:\d{12}:function:[\w-]+:(\$LATEST(\.PUBLISHED)?|\d+)\/durable-execution\/[\w-]+\/[\w-]+)$/,
      EXECUTION_RULE,
    ),
    // Not in the pattern above, because every reader of the contract must be able to run that pattern.
    z.refine((arn) => !/\p{Cc}/u.test(arn), EXECUTION_RULE),
  );

export const LEASE_NAME_FIELDS: NameFields = { stored: ['key'], answered: ['key', 'actual.key'] };

export const LEASE_LIST_FIELDS: NameFields = {
  stored: ['key'],
  listed: { unless: 'key', of: 'stored' },
  answered: ['key', 'leases.*.key'],
};
