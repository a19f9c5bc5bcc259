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
  /** Whether to send the same call again, for docs/api/errors.md. */
  retry: 'no' | 'yes' | 'after reading' | 'the same call';
  /** When the error occurs. */
  when: string;
  /** The fields of this error, besides those of every error. */
  fields: z.core.$ZodLooseShape;
}

const retryAfterMs = () =>
  count(
    'When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.',
  );
const retryInLine = () =>
  texts(
    'Fields to add to the same call. A call that was in line then receives its grant or keeps its position, and a call of `once` with `per` keeps its slot.',
  );
const key = () => text(MEANING.key);
const alias = () => text(MEANING.alias);
const path = () => text(MEANING.path);
const kind = () => oneOf(['ledger', 'graph_source'], 'The kind of the alias.');

const issue = z.strictObject({
  path: text('The field, as a path with dots into the request. Or the part of the HTTP request.'),
  message: text('What is wrong with the field.'),
});
answers.add(issue, { id: 'Issue', description: 'One fault of a request.' });

const actual = () =>
  described(z.nullable(z.union([summary, pointer, status, ledgerConfig, seenRecord, retraction, rateKey])), {
    description: 'What is there now: the key with a holder, or the value of the alias. Null if there is nothing.',
  });

/** When each error occurs, and its fields. Its status and title are in shared/errors.ts. */
export const ERROR_CONTRACTS: Record<ErrorCode, ErrorContract> = {
  InvalidRequest: {
    retry: 'no',
    when: 'A field is missing, unknown, out of bounds, or cannot be combined with another field. Nothing was written.',
    fields: { issues: list(issue, 'The faults, up to twenty.') },
  },
  Forbidden: {
    retry: 'no',
    when: 'The token of the caller has no subject (`sub`), does not name the namespace of the route, or lacks the scope of administrators on a route without a namespace. For a task: the alias that it invokes does not belong to a namespace, or the function does not accept aliases.',
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
    when: 'Another caller holds the key or works for the slot, the holders leave no room, others wait in line, or an operator has paused or capped the key.',
    fields: {
      key: key(),
      holder: nullable(text(orNull(MEANING.holder))),
      fence: nullable(count(MEANING.fence)),
      expiresAt: nullable(instant(MEANING.expiresAt)),
      retryAfterMs: retryAfterMs(),
      waiting: z.exactOptional(
        count(
          'After a wait in line: the number of other waiters, counted up to 100. It is an estimate if `place` is above 20, and may be too low if 200 or more callers have stopped waiting within the last minute.',
        ),
      ),
      place: z.exactOptional(
        count('After a wait in line: the position of the call, from 1. An estimate if it is above 20.'),
      ),
      retryWith: z.exactOptional(
        texts(
          'The fields to add to the same call. After a wait in line, send it within `keptMs` to keep the position. If there is no `ticket`, the request has lost its position. A call of `once` with `per` keeps its slot.',
        ),
      ),
      comeBackMs: z.exactOptional(
        count(
          'With a `ticket`: how long a caller that sends `sleepMs` sleeps before it calls again, in milliseconds. If it is 0, call again at once.',
        ),
      ),
      keptMs: z.exactOptional(
        count('With a `ticket`: how long the position is kept after the answer, in milliseconds.'),
      ),
      used: count(MEANING.used),
      limit: nullable(
        count(
          'The limit that this call names, or else the limit that the last grant named. Null if neither names one.',
        ),
      ),
      holders: list(
        shortHolder,
        'Up to ten holders: first those whose grants end next, then those that have expired. `holder`, `fence` and `expiresAt` of the answer are those of the first one.',
      ),
      cap: z.exactOptional(cap),
    },
  },
  Superseded: {
    retry: 'no',
    when: 'A newer request of the key has replaced this one while it waited, because both said `replace`. Do not repeat the call: it would then be the newest request, and replace the other one.',
    fields: { key: key(), by: text('The holder of the newer request.') },
  },
  CommitInProgress: {
    retry: 'yes',
    when: 'A third-party client is committing to the path, and its record cannot be taken over yet.',
    fields: {
      path: path(),
      generation: count('How often a commit has taken over the record of another one for the same precondition.'),
      retryAfterMs: retryAfterMs(),
    },
  },
  Conflict: {
    retry: 'after reading',
    when: 'The record has changed since the caller read it: the grant has another fence, or the alias has another value. `actual` is what is there now.',
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
    when: 'The alias to create already exists.',
    fields: { alias: alias(), kind: z.exactOptional(kind()) },
  },
  LeaseLost: {
    retry: 'no',
    when: 'The caller does not hold the lease or the permit, or no longer waits for it.',
    fields: {
      key: key(),
      reason: oneOf(
        ['released', 'taken', 'broken', 'superseded', 'unknown', 'cancelled'],
        'How the caller lost it. `released`: by its own release. `taken`: to another caller. `broken`: an operator broke it. `superseded`: a newer request asks the holder to stop. `unknown`: the record does not say. `cancelled`: the wait was ended.',
      ),
      holder: nullable(text('The current holder. Null if no caller holds the key, or the record does not say.')),
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
    when: 'The object was written with a higher token, or is tied to another fence.',
    fields: {
      path: path(),
      token: nullable(count('The token of this commit. Null if the commit has no fence.')),
      highest: count('The highest token that has written the object.'),
    },
  },
  PayloadTooLarge: {
    retry: 'no',
    when: "The request has more than 64 KiB of JSON (a publish: 664 KiB; a commit: Lambda's limit, 6 MB), or more than 5,000 values. For a commit: the body has more than 1 MiB, so stage an upload; or the upload is larger than the parameter `maxUploadMib`.",
    fields: {
      limitBytes: z.exactOptional(count('The limit in bytes, if the request exceeds it.')),
      limitValues: z.exactOptional(count('The limit of values, if the request exceeds it.')),
    },
  },
  RateExceeded: {
    retry: 'yes',
    when: 'The rate is used up, or an operator has paused the key, so the start would be later than `waitSeconds` allows. Nothing is reserved.',
    fields: {
      key: key(),
      boundBy: text('The name of the tightest rate.'),
      retryAfterMs: retryAfterMs(),
      cap: z.exactOptional(cap),
    },
  },
  QueueFull: {
    retry: 'yes',
    when: 'Too many tasks and calls are in line for the key, or in the namespace. If the call had a `taskToken` or a `callbackId`, the task or the callback has failed with the same code: do not repeat the call, but park a new task or callback.',
    fields: {
      key: key(),
      quota: oneOf(
        ['maxWaitersPerKey', 'maxWaitersPerNamespace', 'openReservations'],
        'The parameter of the deployment that is reached. `openReservations`: too many reservations of the key are open.',
      ),
      limit: count('The value of that parameter. The limit of open reservations is 200.'),
      retryAfterMs: retryAfterMs(),
    },
  },
  Throttled: {
    retry: 'yes',
    when: 'DynamoDB or S3 throttles, even after the service has retried.',
    fields: { retryAfterMs: retryAfterMs(), retryWith: z.exactOptional(retryInLine()) },
  },
  Unavailable: {
    retry: 'yes',
    when: 'DynamoDB, S3 or Step Functions is not available, a table is missing, access is denied (`detail` names the resource), a third-party client wrote a record that cannot be used, or the time of the call ran out before the service wrote anything.',
    fields: {
      retryAfterMs: z.exactOptional(retryAfterMs()),
      key: z.exactOptional(key()),
      retryWith: z.exactOptional(retryInLine()),
    },
  },
  OutcomeUnknown: {
    retry: 'the same call',
    when: 'A write was sent, and its response was lost. Send the same call with the fields of `retryWith` added: the answer says whether the first call took effect.',
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

const base = z.strictObject(baseFields());
answers.add(base, {
  id: 'Problem',
  description: 'An error of the service, as RFC 9457 defines it. Each code adds its own fields.',
});

/** The fields of every error that are the same for all codes. */
export const BASE_ONLY = ['title', 'detail', 'traceId'] as const;

/** The schema of each error. Later versions may reword the title, but not change `code`, `type` and `status`. */
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

/** What API Gateway answers itself with each status, if it called no function, or the function did not answer in time. */
export const GATEWAY_ANSWERS: Readonly<Record<number, string>> = {
  401: 'The request does not carry a valid token.',
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
