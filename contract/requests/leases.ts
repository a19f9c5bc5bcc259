import {
  acquireInput,
  breakInput,
  cancelInput,
  capInput,
  heartbeatInput,
  readInput,
  releaseInput,
  runNextInput,
  withdrawInput,
} from '../../shared/locks/calls/inputs.ts';
import { MEANING } from '../meanings.ts';
import { ratesWith } from './rates.ts';
import { bytes, cursor, given, json, limit, request } from './request.ts';

const key = () => ({ description: MEANING.key, ...bytes(1024) });
const holder = () => ({ description: MEANING.holder, ...bytes(256) });
const leaseId = () => ({ description: `${MEANING.leaseId} As \`acquire\` answered it.`, ...bytes(256) });
const ticket = (description = '') => ({ description: `${MEANING.ticket}${description}`, ...bytes(256) });
const arn = (description: string) => ({ description, ...bytes(320) });

export const acquireRequest = request(acquireInput(), {
  id: 'AcquireRequest',
  description:
    'Acquires a key for the caller alone (a lease), or with `limit` or `mode` `shared` together with other holders (a permit). With `taskToken` or `callbackId`, parks a task of Step Functions or a callback of a durable function until the grant.',
  fields: {
    key: key(),
    holder: holder(),
    ttlSeconds: {
      description: 'How long the grant lasts without a heartbeat, in seconds. Not with `bound`.',
      default: 60,
    },
    waitSeconds: {
      description:
        'How long the call waits in line, in seconds. A deployment may cut the wait short (`maxWaitSeconds`).',
    },
    sleepMs: {
      description:
        'How long the caller can stay away between two calls, in milliseconds. While its turn is far, the call fails at once with `LeaseHeld`, and the caller sleeps for `comeBackMs`. Needs `waitSeconds`. Not with `fair` false, `taskToken` or `callbackId`.',
    },
    fair: {
      description: 'If false, the call polls outside the line: for short waits among few callers.',
    },
    ticket: ticket(
      ' Send the ticket of `retryWith` within `keptMs` after `LeaseHeld`, with the other fields unchanged, and the call keeps its position. Needs `requestId`.',
    ),
    requestId: {
      description: `${MEANING.requestId} A retry with the same id, holder and authenticated caller receives the grant of the first try while that grant lasts. After the release it fails with \`LeaseLost\`, and after the expiry it receives a new grant. Send an unpredictable id, such as a random UUID, with each acquisition.`,
      ...bytes(256),
    },
    data: json(
      `${MEANING.data} Up to 4 KiB and 32 levels deep, or with \`limit\` or \`mode\` \`shared\` up to 256 bytes.`,
    ),
    execution: arn(
      'The ARN of the execution, of a Standard workflow or of a durable function, that will hold the lease or the permit, in the account and region of the deployment. The end of the execution frees its grant and takes the execution out of the line. Other ARNs fail with `InvalidRequest`, as do those of durable functions that the parameter `durableFunctions` does not name.',
    ),
    target: arn(
      'The ARN of an execution that works under the grant of `execution`. The grant stays while the target runs. Needs `execution`.',
    ),
    graceSeconds: {
      description:
        'How long the grant stays after the execution, or its target, has ended with any status but SUCCEEDED, in seconds, but never beyond the expiry. Set it to the longest timeout of the functions that the execution calls. Needs `execution`.',
    },
    bound: {
      description:
        'If true, the grant lasts as long as `execution` runs, without heartbeats, and for `graceSeconds` after an abnormal end. Needs `execution`, and `taskToken` or `callbackId`. Not with `ttlSeconds`.',
    },
    taskToken: {
      description:
        'The token of a task of Step Functions. The call answers at once, and the task receives its grant in line order. Not with `waitSeconds`, `ticket` or `fair` false.',
      ...bytes(2048),
    },
    callbackId: {
      description:
        "The id of a durable function's callback. The call returns at once. The callback completes with the grant as JSON, in line order, or fails with the problem in `ErrorData`. Without `requestId`, the request id is `c-` and the SHA-256 of the callback id in base64url. Not with `taskToken`, `waitSeconds`, `ticket` or `fair` false. Needs its own `execution`, and the parameter `durableFunctions`.",
      ...bytes(1024),
    },
    parkSeconds: {
      description:
        'How long the task or the callback waits, in seconds. Then the task or the callback fails with `LeaseHeld`, within two minutes. The default is 86,400. Needs `taskToken` or `callbackId`.',
    },
    limit: {
      description:
        'The most that all holders may weigh, this one included: the call asks for a permit. Without `limit`, the caller has the key alone, or with `mode` `shared` the limit is 200. Not with `mode` `exclusive`.',
    },
    weight: {
      description:
        'How much of the limit the permit takes, at most `limit`. Without it, 1. Needs `limit` or `mode` `shared`.',
    },
    mode: {
      description: `${MEANING.mode} The default is \`shared\` with \`limit\`, and \`exclusive\` without.`,
    },
    replace: {
      description:
        'Makes this the newest request of the key: each older one that also said `replace` and still waits fails with `Superseded`. With `running`, a holder that said `running` is asked to stop too: its next heartbeat fails with `LeaseLost` (`superseded`). The request starts when that holder has released or has expired. Needs `waitSeconds`, `taskToken` or `callbackId`. Not with `limit`, `mode` `shared` or `fair` false.',
    },
  },
  rules: {
    dependentRequired: {
      target: ['execution'],
      graceSeconds: ['execution'],
      ticket: ['requestId'],
      callbackId: ['execution'],
    },
    not: {
      anyOf: [
        { required: ['taskToken', 'waitSeconds'], properties: { taskToken: {}, waitSeconds: { minimum: 1 } } },
        { required: ['callbackId', 'waitSeconds'], properties: { callbackId: {}, waitSeconds: { minimum: 1 } } },
        { required: ['sleepMs'], properties: { sleepMs: { minimum: 1 }, waitSeconds: { maximum: 0 } } },
        { required: ['sleepMs', 'fair'], properties: { sleepMs: { minimum: 1 }, fair: { const: false } } },
        given('taskToken', 'callbackId'),
        given('replace', 'limit'),
        { required: ['replace', 'mode'], properties: { replace: {}, mode: { const: 'shared' } } },
        { required: ['replace', 'fair'], properties: { replace: {}, fair: { const: false } } },
        {
          required: ['replace'],
          properties: { replace: {}, waitSeconds: { maximum: 0 }, taskToken: { not: {} }, callbackId: { not: {} } },
        },
        {
          required: ['callbackId', 'execution'],
          properties: { callbackId: {}, execution: { pattern: '^arn:[^:]*:states:' } },
        },
        { required: ['parkSeconds'], properties: { parkSeconds: {}, taskToken: { not: {} }, callbackId: { not: {} } } },
      ],
    },
  },
});

export const heartbeatRequest = request(heartbeatInput(), {
  id: 'HeartbeatRequest',
  description: 'Extends a lease or a permit.',
  fields: {
    key: key(),
    leaseId: leaseId(),
    ttlSeconds: {
      description:
        'How long the grant lasts from now on, in seconds, also after later heartbeats. Without it, as before. A heartbeat never shortens a grant.',
    },
  },
});

export const releaseRequest = request(releaseInput(), {
  id: 'ReleaseRequest',
  description: 'Releases a lease or a permit.',
  fields: { key: key(), leaseId: leaseId() },
});

export const breakRequest = request(breakInput(), {
  id: 'BreakRequest',
  description: 'Breaks the lease or the permit that an operator saw.',
  fields: {
    key: key(),
    fence: { description: 'The fence of the lease or the permit to end, as the operator read it.' },
    kind: {
      description: 'With `once`, ends the grant of `POST /v1/once/begin`, in place of the lease or the permit.',
    },
    wait: {
      description:
        'If true, the holder keeps the key until its release or its expiry, and no heartbeat extends the grant. A lease that no caller holds ends at once all the same. If false, the grant ends at once, while the holder may still work.',
    },
  },
});

export const cancelRequest = request(cancelInput(), {
  id: 'CancelRequest',
  description: 'Takes a task or a call out of the line of a key.',
  fields: {
    key: key(),
    ticket: ticket(' As `acquire`, or a read of the key with `waiters`, shows it.'),
  },
});

export const capRequest = request(capInput(), {
  id: 'CapRequest',
  description: 'Caps or pauses a key, or lifts the cap.',
  fields: {
    key: key(),
    limit: {
      description:
        'The most that all holders may weigh. 0 pauses the key: no caller is granted the key, or a start at its rates. Null lifts this part of the cap. Without the field, this part stays.',
    },
    rates: {
      description:
        'One to four rates with different names, which count for each reservation as if its caller had named them. Null lifts this part of the cap. Without the field, this part stays.',
      anyOf: undefined,
      type: ['array', 'null'],
      ...ratesWith(),
    },
    reason: {
      description: 'Why. Each caller that the cap keeps out sees it. Needed unless the call only lifts.',
      ...bytes(256),
    },
    forSeconds: {
      description:
        'After how many seconds the cap ends by itself, at most 31 days. Without it, the cap lasts until an operator lifts it. Not allowed if the call only lifts.',
    },
    kind: {
      description:
        'With `once`, the call pauses `POST /v1/once/begin` of the key, and not its leases, permits and rates. Only with `limit` 0 or null, and without `rates`.',
    },
  },
  rules: { allOf: [{ anyOf: [given('limit'), given('rates')] }] },
});

export const runNextRequest = request(runNextInput(), {
  id: 'RunNextRequest',
  description: 'Moves a waiter to the front of the line of a key.',
  fields: {
    key: key(),
    ticket: ticket(' As `acquire`, or a read of the key with `waiters`, shows it.'),
  },
});

export const withdrawRequest = request(withdrawInput(), {
  id: 'WithdrawRequest',
  description: 'Withdraws a request of the caller that waits, or its grant.',
  fields: {
    key: key(),
    requestId: { description: `${MEANING.requestId} As it was sent to \`acquire\`.`, ...bytes(256) },
    holder: { description: `${MEANING.holder} As it was sent to \`acquire\`.`, ...bytes(256) },
    ticket: ticket(
      ' With the ticket of `retryWith`, Holdfast does not read the whole line. Leave it out if a response to another call of the request was lost, because that call may have its own position.',
    ),
  },
});

export const readLeasesRequest = request(readInput(), {
  id: 'ReadLeasesRequest',
  description: 'Reads one key, or a page of keys.',
  fields: {
    key: { ...key(), description: `${MEANING.key} Without a key, the answer is a page of keys.` },
    prefix: { description: 'Only keys that begin with this text. Not with `key`.', ...bytes(1024) },
    holder: {
      description: 'Only keys of this holder, each by its grant to this holder. Not with `key`.',
      ...bytes(256),
    },
    state: {
      description:
        'Only keys in this state. A key is held if at least one holder has not expired. `active`: keys that have a holder, expired or not, or a line. Not with `key`.',
    },
    sort: {
      description:
        'The order: by `key`, by the first expiry (`expiry`), by the holder that has had its key for the longest time (`held`), or by the longest line (`waiting`). With `sort`, each page reads the whole table, and fails with `Unavailable` if one call cannot read all of it. Not with `key`.',
    },
    limit: {
      ...limit(),
      description: `${limit().description} With \`key\`, the number of waiters to list, and only with \`waiters\`.`,
    },
    cursor: { ...cursor(), description: `${cursor().description} Not with \`key\`.` },
    waiters: { description: 'True to list the tasks and calls in line, the oldest first. Needs `key`.' },
  },
});
