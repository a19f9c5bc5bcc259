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
const leaseId = () => ({ description: `${MEANING.leaseId} From the answer of \`acquire\`.`, ...bytes(256) });
const ticket = (description = '') => ({ description: `${MEANING.ticket}${description}`, ...bytes(256) });
const arn = (description: string) => ({ description, ...bytes(320) });

export const acquireRequest = request(acquireInput(), {
  id: 'AcquireRequest',
  description:
    'Acquires a key for the caller alone (a lease), or with `limit` or `mode` `shared` together with other holders (a permit). With `taskToken` or `callbackId`, a Step Functions task or the callback of a durable function is parked until it receives the grant.',
  fields: {
    key: key(),
    holder: holder(),
    ttlSeconds: {
      description:
        'How long the grant lasts without a heartbeat, in seconds. A crashed holder blocks the key for about this long. Not with `bound`.',
      default: 60,
    },
    waitSeconds: {
      description: 'How long the call waits in line, in seconds. A deployment may allow less (`maxWaitSeconds`).',
    },
    sleepMs: {
      description:
        'For long lines: how long the caller can stay away between two calls, in milliseconds. While its turn is far off, the call fails at once with `LeaseHeld`, and the caller sleeps for `comeBackMs`. Needs `waitSeconds`. Not with `fair` false, `taskToken` or `callbackId`.',
    },
    fair: {
      description: 'If false, the call polls the key outside the line, which suits short waits among few callers.',
    },
    ticket: ticket(
      ' To keep your position after `LeaseHeld`, send the ticket of `retryWith` within `keptMs`, with the other fields unchanged. Needs `requestId`.',
    ),
    requestId: {
      description: `${MEANING.requestId} A retry with the same id, holder and authenticated caller receives the grant of the first try while that grant lasts. After the release it fails with \`LeaseLost\`, and after the expiry it receives a new grant. Use a new random UUID for each acquisition.`,
      ...bytes(256),
    },
    data: json(`${MEANING.data} Up to 4 KiB and 32 levels, or with \`limit\` or \`mode\` \`shared\` up to 256 bytes.`),
    execution: arn(
      'The ARN of the execution that will hold the grant. When the execution ends, its grant is freed, or the execution leaves the line. It must belong to a Standard workflow, or to a durable function that the parameter `durableFunctions` names, in the account and region of the deployment.',
    ),
    target: arn(
      'The ARN of a second execution that works under the same grant. The grant stays while it runs, even if `execution` has ended. Needs `execution`.',
    ),
    graceSeconds: {
      description:
        'How long the grant stays after the execution or its target has ended with any status but SUCCEEDED, in seconds, but never beyond its expiry. Set it to the longest timeout of the functions that the execution calls, because they may still run. Needs `execution`.',
    },
    bound: {
      description:
        'If true, the grant lasts as long as `execution` runs, without heartbeats, and for `graceSeconds` after an abnormal end. Needs `execution`, and `taskToken` or `callbackId`. Not with `ttlSeconds`.',
    },
    taskToken: {
      description:
        'The token of a Step Functions task that waits instead of the call, and receives the grant in its turn. Not with `waitSeconds`, `ticket` or `fair` false.',
      ...bytes(2048),
    },
    callbackId: {
      description:
        "The id of a durable function's callback that waits instead of the call. In its turn, it completes with the grant as JSON, or fails with the problem in `ErrorData`. Without `requestId`, the request id is `c-` and the SHA-256 of the callback id in base64url. Not with `taskToken`, `waitSeconds`, `ticket` or `fair` false. Needs the `execution` of the durable function itself, and the parameter `durableFunctions`.",
      ...bytes(1024),
    },
    parkSeconds: {
      description:
        'How long the task or the callback waits, in seconds. Then it fails with `LeaseHeld`, at most two minutes late. The default is 86,400, a day. Needs `taskToken` or `callbackId`.',
    },
    limit: {
      description:
        'Asks for a permit: the highest total weight of all holders, this one included. Without `limit`, the caller has the key alone, or with `mode` `shared` the limit is 200. Not with `mode` `exclusive`.',
    },
    weight: {
      description:
        'How much of the limit the permit takes, at most `limit`. The default is 1. Needs `limit` or `mode` `shared`.',
    },
    mode: {
      description: `${MEANING.mode} The default is \`shared\` with \`limit\`, and \`exclusive\` without.`,
    },
    replace: {
      description:
        'For work of which only the newest request counts: each older request that also said `replace` and still waits fails with `Superseded`. With `running`, a holder that said `running` is asked to stop too: its next heartbeat fails with `LeaseLost` (`superseded`), and this request is granted when that holder has released or has expired. Needs `waitSeconds`, `taskToken` or `callbackId`. Not with `limit`, `mode` `shared` or `fair` false.',
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
        'How long the grant lasts from this heartbeat and from later ones, in seconds. Without it, as long as before. A heartbeat never shortens a grant.',
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
  description: 'Breaks the grant with the fence that the operator has read.',
  fields: {
    key: key(),
    fence: { description: 'The fence of the grant to end, as the operator has read it.' },
    kind: {
      description: 'If `once`, the call ends the grant of `POST /v1/once/begin` instead of a lease or a permit.',
    },
    wait: {
      description:
        'If true, the holder keeps the grant until its release or its expiry, but heartbeats no longer extend the grant. A grant under which no holder works, such as an expired one, still ends at once. If false, the grant ends at once, even though the holder may still work.',
    },
  },
});

export const cancelRequest = request(cancelInput(), {
  id: 'CancelRequest',
  description: 'Takes a waiter out of the line of a key.',
  fields: {
    key: key(),
    ticket: ticket(' Read the key with `waiters` to see it, or take it from the answer of `acquire`.'),
  },
});

export const capRequest = request(capInput(), {
  id: 'CapRequest',
  description: 'Caps or pauses a key, or lifts the cap.',
  fields: {
    key: key(),
    limit: {
      description:
        'The highest total weight of all holders. 0 pauses the key: no caller is granted the key or a start at its rates. Null lifts this part of the cap. Without the field, this part stays as it is.',
    },
    rates: {
      description:
        'One to four rates with different names. They count for each reservation as if its caller had named them. Null lifts this part of the cap. Without the field, this part stays as it is.',
      anyOf: undefined,
      type: ['array', 'null'],
      ...ratesWith(),
    },
    reason: {
      description:
        'Why the key is capped, shown to each caller that the cap keeps out. Required, unless the call only lifts.',
      ...bytes(256),
    },
    forSeconds: {
      description:
        'After how many seconds the cap ends by itself, at most 31 days. Without it, the cap lasts until an operator lifts it. Not allowed if the call only lifts.',
    },
    kind: {
      description:
        'If `once`, the call pauses `POST /v1/once/begin` of the key instead of its leases, permits and rates. Only with `limit` 0 or null, and without `rates`.',
    },
  },
  rules: { allOf: [{ anyOf: [given('limit'), given('rates')] }] },
});

export const runNextRequest = request(runNextInput(), {
  id: 'RunNextRequest',
  description: 'Moves a waiter to the front of the line of a key.',
  fields: {
    key: key(),
    ticket: ticket(' Read the key with `waiters` to see it, or take it from the answer of `acquire`.'),
  },
});

export const withdrawRequest = request(withdrawInput(), {
  id: 'WithdrawRequest',
  description: 'Takes a request of the caller out of the line, or ends its grant.',
  fields: {
    key: key(),
    requestId: { description: `${MEANING.requestId} As sent to \`acquire\`.`, ...bytes(256) },
    holder: { description: `${MEANING.holder} As sent to \`acquire\`.`, ...bytes(256) },
    ticket: ticket(
      ' With the ticket of `retryWith`, Holdfast need not read the whole line. Leave it out if the response to another call of the request was lost, because that call may have a position of its own.',
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
      description: 'Only keys that this holder has. Each row shows the grant of this holder. Not with `key`.',
      ...bytes(256),
    },
    state: {
      description:
        'Only keys in this state. `held`: at least one holder has not expired. `active`: the key has a holder, expired or not, a line, or a cap. Not with `key`.',
    },
    sort: {
      description:
        'The order of the rows: by `key`, the next expiry first (`expiry`), the longest held key first (`held`), or the longest line first (`waiting`). With `sort`, each page reads the whole table, and fails with `Unavailable` if one call cannot read all of it. Not with `key`.',
    },
    limit: {
      ...limit(),
      description: `${limit().description} With \`key\`, it is the number of waiters, and needs \`waiters\`.`,
    },
    cursor: { ...cursor(), description: `${cursor().description} Not with \`key\`.` },
    waiters: {
      description: 'If true, the answer lists the tasks and calls in line, in the order of their arrival. Needs `key`.',
    },
  },
});
