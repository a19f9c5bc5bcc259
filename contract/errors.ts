import * as z from 'zod/mini';
import { ERRORS, type ErrorCode } from '../shared/errors.ts';
import { fence } from './answers/commits.ts';
import { lease } from './answers/leases.ts';
import { ledgerConfig, pointer, retraction, seenRecord, status } from './answers/nameservice.ts';
import { holder } from './answers/pools.ts';
import { always, answers, count, instant, list, nullable, oneOf, text, texts } from './schema.ts';

interface ErrorContract {
  /** Whether the same call may succeed later, as worded in the table of docs/api.md. */
  retry: 'no' | 'yes' | 'after reading' | 'the same call';
  /** When the error occurs, for that table. */
  when: string;
  /** The members of its problem besides those of every problem. */
  fields: z.core.$ZodLooseShape;
}

const retryAfterMs = () => count('After how many milliseconds a retry may succeed.');
const retryInLine = () =>
  texts(
    'Of a call that stood in line: what to add to the same call, which finds what it was granted meanwhile, or keeps the place.',
  );
const key = () => text('The key.');
const alias = () => text('The alias, as `name:branch`.');
const path = () => text('The path of the commit.');
const kind = () => oneOf(['ledger', 'graph_source'], 'What the alias is.');

const issue = z.strictObject({
  path: text('The field, as a dotted path into the payload, or the part of the HTTP request.'),
  message: text('What is wrong with it.'),
});
answers.add(issue, { id: 'Issue', description: 'One fault of a request.' });

const actual = () => z.nullable(z.union([lease, pointer, status, ledgerConfig, seenRecord, retraction]));

/** Every error with its fields: the one place where they are written. Code, status and title are in shared/errors.ts. */
export const ERROR_CONTRACTS: Record<ErrorCode, ErrorContract> = {
  InvalidRequest: {
    retry: 'no',
    when: 'The input does not fit. The service wrote nothing.',
    fields: { issues: list(issue, 'Every fault that was found, up to twenty.') },
  },
  Forbidden: {
    retry: 'no',
    when: 'The token of the caller has no subject (`sub`), does not name the namespace of the route, or lacks the scope of administrators on a route without one. A task: the alias that it invokes is none of a namespace, or the function takes no alias.',
    fields: { missing: text('What the caller lacks.') },
  },
  NotFound: {
    retry: 'no',
    when: 'There is no such report, no such alias (or not of the kind that the operation is for), no upload under `source`, or nobody holds the lease or the permit to break.',
    fields: {
      key: z.exactOptional(key()),
      alias: z.exactOptional(alias()),
      kind: z.exactOptional(kind()),
      source: z.exactOptional(text('The upload that the commit names.')),
      reportId: z.exactOptional(nullable(text('The report. Null where the caller named none.'))),
    },
  },
  LeaseHeld: {
    retry: 'yes',
    when: 'Another caller holds the lease, or the holders of the pool leave no room. For a report: one is running.',
    fields: {
      key: key(),
      holder: nullable(text('Who holds it. Null where the record does not say.')),
      fence: nullable(count('The fencing token of that grant.')),
      expiresAt: nullable(instant('When it ends unless its holder extends it.')),
      retryAfterMs: retryAfterMs(),
      waiting: z.exactOptional(
        count(
          'After a wait in line: how many others are in line, counted up to 100. A lower bound while rows of 200 callers that gave up stand in line.',
        ),
      ),
      place: z.exactOptional(
        count('After a wait in line: how many of those are before this call, and one. Counted as `waiting`.'),
      ),
      retryWith: z.exactOptional(
        texts(
          'After a wait in line: what to add to the same call, within five seconds, to keep the place. Without `ticket` there is no place to keep.',
        ),
      ),
      used: z.exactOptional(count('Of a pool: how much all holders weigh together.')),
      limit: z.exactOptional(
        nullable(
          count('Of a pool: how much they may weigh together, as this caller asked for it. Null for `exclusive`.'),
        ),
      ),
      holders: z.exactOptional(
        list(holder, 'Of a pool: those that end first, up to ten, and expired permits last. The first is `holder`.'),
      ),
    },
  },
  WrongKind: {
    retry: 'yes',
    when: 'Other callers use the key as a pool, and the call names neither `limit` nor `mode`; or other callers use the key as a lease, and the call names `limit` or `mode`. `detail` says what to pass.',
    fields: {
      key: key(),
      kind: oneOf(['lease', 'pool'], 'The kind of the key.'),
      holder: nullable(text('The holder whose grant ends first. Null if the record does not say.')),
      fence: nullable(count('The fencing token of that grant.')),
      expiresAt: nullable(instant('When that grant ends, unless its holder extends it.')),
      retryAfterMs: retryAfterMs(),
      used: z.exactOptional(count('The total weight of all holders of a pool.')),
      limit: z.exactOptional(
        nullable(count('The limit that the last grant of a pool named. Null if no grant has named a limit.')),
      ),
      holders: z.exactOptional(
        list(holder, 'Of a pool: the holders whose permits end first, up to ten, and expired permits last.'),
      ),
    },
  },
  CommitInProgress: {
    retry: 'yes',
    when: "The record of another client's writer has not timed out.",
    fields: { path: path(), generation: count('How often the state was contended.'), retryAfterMs: retryAfterMs() },
  },
  Conflict: {
    retry: 'after reading',
    when: 'A compare-and-set lost, the lease to break has another fence, or what is to be repaired is not as the caller saw it.',
    fields: {
      key: z.exactOptional(key()),
      alias: z.exactOptional(alias()),
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
    when: 'A heartbeat without holding, or of a lease that is ending, or an acquire with the `requestId` of such a grant or of a released one. A task or a call in line gets it where its ticket was cancelled or its request withdrawn; a task also where its lease was broken before it knew, and a call where nobody has had the lease since. For a report: a later run has taken over.',
    fields: {
      key: key(),
      reason: oneOf(['released', 'taken', 'broken', 'unknown', 'cancelled'], 'How it was lost.'),
      holder: nullable(text('Who holds the lease now. Null where nobody does, or the record does not say.')),
    },
  },
  PreconditionFailed: {
    retry: 'no',
    when: 'The object is not in the state that the commit expects.',
    fields: {
      path: path(),
      etag: nullable(text('What is there. Null where nothing is.')),
      fence: z.exactOptional(z.nullable(fence)),
    },
  },
  FenceRejected: {
    retry: 'no',
    when: 'The object was written under a newer token, or under another fence.',
    fields: {
      path: path(),
      token: nullable(count('The token of this commit. Null where it has none.')),
      highest: count('The highest token that has written the object.'),
    },
  },
  PayloadTooLarge: {
    retry: 'no',
    when: 'The request is over 64 KiB of JSON (publish: 664 KiB, commit: what Lambda takes), or it holds over 5,000 values. The body of a commit is over 1 MiB: stage an upload. Or an upload is over `maxUploadMib`.',
    fields: {
      limitBytes: z.exactOptional(count('The most bytes that it may have, where it has more.')),
      limitValues: z.exactOptional(count('The most values that it may hold, where it holds more.')),
    },
  },
  QueueFull: {
    retry: 'yes',
    when: 'Too many tasks and callers are in line for the lease, or in the namespace. The task of the `taskToken` fails with the same code.',
    fields: {
      key: key(),
      quota: oneOf(['maxWaitersPerKey', 'maxWaitersPerNamespace'], 'The parameter of the deployment that limits them.'),
      limit: count('Its value.'),
      retryAfterMs: retryAfterMs(),
    },
  },
  Throttled: {
    retry: 'yes',
    when: "DynamoDB or S3 throttles past the service's own retries.",
    fields: { retryAfterMs: retryAfterMs(), retryWith: z.exactOptional(retryInLine()) },
  },
  Unavailable: {
    retry: 'yes',
    when: 'DynamoDB, S3 or Step Functions is down, a table is missing, access is denied (`detail` names it), another client wrote a record that cannot be used, or time was up before anything was written.',
    fields: {
      retryAfterMs: z.exactOptional(retryAfterMs()),
      key: z.exactOptional(key()),
      retryWith: z.exactOptional(retryInLine()),
    },
  },
  OutcomeUnknown: {
    retry: 'the same call',
    when: 'A write was sent and its answer never came. Send the same call with the fields of `retryWith` added, and its answer says what became of the first.',
    fields: {
      retryWith: texts('What to add to the same call.'),
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
  type: text('A URN of the code.'),
  title: text('What the code means, in words.'),
  status: count('The HTTP status.'),
  code: oneOf(ERROR_CODES, 'What programs branch on.'),
  detail: text('What happened, in words.'),
  traceId: text('The id of the request, to look up in the logs.'),
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
answers.add(gatewayRefusal, { id: 'GatewayRefusal', description: 'What API Gateway answers where no function does.' });
