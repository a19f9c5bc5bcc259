import * as z from 'zod/mini';
import { ERRORS, type ErrorCode } from '../shared/errors.ts';
import { cap } from './answers/cap.ts';
import { fence } from './answers/commits.ts';
import { shortHolder, summary } from './answers/leases.ts';
import { ledgerConfig, pointer, retraction, seenRecord, status } from './answers/nameservice.ts';
import { rateKey } from './answers/rates.ts';
import { MEANING, orNull } from './meanings.ts';
import { always, answers, count, described, instant, list, nullable, oneOf, text, texts } from './schema.ts';

interface ErrorContract {
  /** Whether the same call may succeed later, as docs/api/errors.md says it. */
  retry: 'no' | 'yes' | 'after reading' | 'the same call';
  /** When the error occurs, for that page. */
  when: string;
  /** The members of its problem besides those of every problem. */
  fields: z.core.$ZodLooseShape;
}

const retryAfterMs = () =>
  count('When a retry may succeed, in milliseconds from the answer. `Retry-After` has the same in seconds.');
const retryInLine = () =>
  texts(
    'Fields to add to the same call. With them, a call that was in line receives what it was granted, or keeps its position, and a call of `once` with `per` keeps its slot.',
  );
const key = () => text(MEANING.key);
const alias = () => text(MEANING.alias);
const path = () => text(MEANING.path);
const kind = () => oneOf(['ledger', 'graph_source'], 'The kind of the alias.');

const issue = z.strictObject({
  path: text('The field as a dotted path into the request, or the part of the HTTP request.'),
  message: text('What is wrong with the field.'),
});
answers.add(issue, { id: 'Issue', description: 'One fault of a request.' });

const actual = () =>
  described(z.nullable(z.union([summary, pointer, status, ledgerConfig, seenRecord, retraction, rateKey])), {
    description: 'What the record is now: the key with a holder, or the value of an alias. Null if there is none.',
  });

/** Every error with its fields: the one place where they are written. Code, status and title are in shared/errors.ts. */
export const ERROR_CONTRACTS: Record<ErrorCode, ErrorContract> = {
  InvalidRequest: {
    retry: 'no',
    when: 'A field is missing, unknown, out of bounds, or does not go with another field. The service wrote nothing.',
    fields: { issues: list(issue, 'The faults, up to twenty.') },
  },
  Forbidden: {
    retry: 'no',
    when: 'The token of the caller has no subject (`sub`), does not name the namespace of the route, or lacks the scope of administrators on a route without a namespace. For a task: the alias that the task invokes belongs to no namespace, or the function takes no alias.',
    fields: { missing: text('The claim or the scope that the caller lacks.') },
  },
  NotFound: {
    retry: 'no',
    when: 'The record that the call names does not exist.',
    fields: {
      key: z.exactOptional(key()),
      alias: z.exactOptional(alias()),
      kind: z.exactOptional(kind()),
      source: z.exactOptional(text('The upload that the commit names.')),
      reportId: z.exactOptional(nullable(text(`${MEANING.reportId} Null if the caller named none.`))),
    },
  },
  LeaseHeld: {
    retry: 'yes',
    when: 'Another caller holds the key or works for the slot, the holders leave no room, other waiters are in line, or an operator has paused or capped the key.',
    fields: {
      key: key(),
      holder: nullable(text(orNull(MEANING.holder))),
      fence: nullable(count(MEANING.fence)),
      expiresAt: nullable(instant(MEANING.expiresAt)),
      retryAfterMs: retryAfterMs(),
      waiting: z.exactOptional(
        count(
          'After a wait in line: the number of other waiters, counted up to 100. An estimate if `place` is above 20. A lower bound if 200 or more callers have given up within the last minute.',
        ),
      ),
      place: z.exactOptional(
        count('After a wait in line: the position of the call, from 1. An estimate if it is above 20.'),
      ),
      retryWith: z.exactOptional(
        texts(
          'The fields to add to the same call. After a wait in line, send the call within `keptMs` to keep its position. Without `ticket`, there is no position to keep. A call of `once` with `per` keeps its slot.',
        ),
      ),
      comeBackMs: z.exactOptional(
        count(
          'With a `ticket`: how long a caller that sends `sleepMs` sleeps before it asks again, in milliseconds. If it is 0, ask again at once.',
        ),
      ),
      keptMs: z.exactOptional(
        count('With a `ticket`: how long the position is kept after the answer, in milliseconds.'),
      ),
      used: count(MEANING.used),
      limit: nullable(
        count(
          'The limit that this call names. If it names none, the limit that the last grant named. Null if neither names one.',
        ),
      ),
      holders: list(
        shortHolder,
        'Up to ten holders: first those whose grants end next, then those that have expired. `holder`, `fence` and `expiresAt` are of the first holder.',
      ),
      cap: z.exactOptional(cap),
    },
  },
  Superseded: {
    retry: 'no',
    when: 'A newer request of the key has replaced this one, which waited: both said `replace`. Do not repeat the call: as the newest request, it would replace the newer one.',
    fields: { key: key(), by: text('The holder of the newer request.') },
  },
  CommitInProgress: {
    retry: 'yes',
    when: 'A third-party client is committing to the path, and has not timed out.',
    fields: {
      path: path(),
      generation: count('How often the state of the path was contended.'),
      retryAfterMs: retryAfterMs(),
    },
  },
  Conflict: {
    retry: 'after reading',
    when: 'The record has changed since the caller read it: another grant has the fence, or another value is under the alias. `actual` is what is there now.',
    fields: {
      key: z.exactOptional(key()),
      alias: z.exactOptional(alias()),
      field: z.exactOptional(
        oneOf(
          ['inputHash', 'per'],
          'The field of the request that is in conflict: the slot is done with another `inputHash`, or a slot is done that sorts after every period of `per`.',
        ),
      ),
      actual: actual(),
    },
  },
  AlreadyExists: {
    retry: 'no',
    when: 'The alias to create exists.',
    fields: { alias: alias(), kind: z.exactOptional(kind()) },
  },
  LeaseLost: {
    retry: 'no',
    when: 'The caller does not hold the lease or the permit, or no longer.',
    fields: {
      key: key(),
      reason: oneOf(
        ['released', 'taken', 'broken', 'superseded', 'unknown', 'cancelled'],
        'How the caller lost it: by its own release, to another caller, by an operator, to a newer request that asks the holder to stop, in a way that the record does not show, or by an end of its wait.',
      ),
      holder: nullable(text('The present holder. Null if no caller holds the key, or the record does not say.')),
    },
  },
  PreconditionFailed: {
    retry: 'no',
    when: 'The object is not in the state that the commit expects.',
    fields: {
      path: path(),
      etag: nullable(text('The ETag of the object at the path. Null if there is no object.')),
      fence: z.exactOptional(nullable(fence)),
    },
  },
  FenceRejected: {
    retry: 'no',
    when: 'The object was written under a newer token, or under another fence.',
    fields: {
      path: path(),
      token: nullable(count('The token of this commit. Null if the commit has no fence.')),
      highest: count('The highest token that has written the object.'),
    },
  },
  PayloadTooLarge: {
    retry: 'no',
    when: 'The request has more than 64 KiB of JSON (a publish: 664 KiB; a commit: the limit of Lambda, 6 MB), or more than 5,000 values. For a commit: the body has more than 1 MiB, so stage an upload; or the upload is larger than the parameter `maxUploadMib`.',
    fields: {
      limitBytes: z.exactOptional(count('The limit in bytes, if the request exceeds it.')),
      limitValues: z.exactOptional(count('The limit of values, if the request exceeds it.')),
    },
  },
  RateExceeded: {
    retry: 'yes',
    when: 'The rate is used up, or an operator has paused the key: the start would be later than `waitSeconds` allows. Nothing is reserved.',
    fields: {
      key: key(),
      boundBy: text('The name of the tightest rate.'),
      retryAfterMs: retryAfterMs(),
      cap: z.exactOptional(cap),
    },
  },
  QueueFull: {
    retry: 'yes',
    when: 'Too many tasks and calls are in line for the key, or in the namespace. The task of a `taskToken`, or the callback of a `callbackId`, fails with the same code: do not repeat that call, and park with a new task or callback.',
    fields: {
      key: key(),
      quota: oneOf(
        ['maxWaitersPerKey', 'maxWaitersPerNamespace', 'openReservations'],
        'The parameter of the deployment that limits them. `openReservations`: too many reservations of a key are open.',
      ),
      limit: count('The value of that parameter. The limit of open reservations is 200.'),
      retryAfterMs: retryAfterMs(),
    },
  },
  Throttled: {
    retry: 'yes',
    when: 'DynamoDB or S3 throttles, even after the retries of the service.',
    fields: { retryAfterMs: retryAfterMs(), retryWith: z.exactOptional(retryInLine()) },
  },
  Unavailable: {
    retry: 'yes',
    when: 'DynamoDB, S3 or Step Functions is not available, a table is missing, access is denied (`detail` names the resource), a third-party client wrote a record that cannot be used, or the time was over before the service wrote anything.',
    fields: {
      retryAfterMs: z.exactOptional(retryAfterMs()),
      key: z.exactOptional(key()),
      retryWith: z.exactOptional(retryInLine()),
    },
  },
  OutcomeUnknown: {
    retry: 'the same call',
    when: 'A write was sent, and its response was lost. Send the same call with the fields of `retryWith` added: its answer says whether the first call took effect.',
    fields: {
      retryWith: texts('The fields to add to the same call.'),
      retryAfterMs: retryAfterMs(),
      key: z.exactOptional(key()),
      alias: z.exactOptional(alias()),
      path: z.exactOptional(path()),
      actual: z.exactOptional(actual()),
    },
  },
};

export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];

const baseFields = () => ({
  type: text('The URN of the code.'),
  title: text('The meaning of the code.'),
  status: count('The HTTP status.'),
  code: oneOf(ERROR_CODES, 'The code, for programs.'),
  detail: text('The reason, for people.'),
  traceId: text('The id of the Lambda request, also in the log line of the call.'),
});

/** The members of every problem (RFC 9457). */
const base = z.strictObject(baseFields());
answers.add(base, {
  id: 'Problem',
  description: 'An error of the service, RFC 9457. Each code has fields of its own.',
});

/** The members of every problem that no code narrows. */
export const BASE_ONLY = ['title', 'detail', 'traceId'] as const;

/** The problem of each code. The title may be reworded; `code`, `type` and `status` may not. */
export const problems = Object.fromEntries(ERROR_CODES.map((code) => [code, problem(code)])) as Record<
  ErrorCode,
  z.ZodMiniType
>;

function problem(code: ErrorCode): z.ZodMiniType {
  const { status, title } = ERRORS[code];
  const schema = z.strictObject({
    ...baseFields(),
    type: always(`urn:holdfast:error:${code}`),
    status: always(status),
    code: always(code),
    ...ERROR_CONTRACTS[code].fields,
  });
  answers.add(schema, { id: code, description: `${title}.` });
  return schema;
}

/** The answers of API Gateway itself, by status: it called no function, or none answered in time. */
export const GATEWAY_ANSWERS: Readonly<Record<number, string>> = {
  401: 'The request carries no token, or one that is not valid.',
  403: 'The caller has no permission for this route.',
  413: 'The request is larger than API Gateway or Lambda takes.',
  429: 'The API throttles requests.',
  431: 'The URL and the headers are longer than API Gateway takes.',
  500: 'The function could not be run.',
  503: 'The function took longer than the API waits, or could not be reached.',
};
export const GATEWAY_STATUSES = Object.keys(GATEWAY_ANSWERS).map(Number);

export const gatewayRefusal = z.strictObject({ message: text('What API Gateway says.') });
answers.add(gatewayRefusal, { id: 'GatewayRefusal', description: 'An answer of API Gateway itself.' });
