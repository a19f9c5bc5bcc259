import {
  acquireInput,
  breakInput,
  cancelInput,
  heartbeatInput,
  readInput,
  releaseInput,
  withdrawInput,
} from '../../shared/locks/inputs.ts';
import { bytes, cursor, json, limit, request } from './request.ts';

const key = () => ({ description: 'The name of the resource: any text up to 1,024 bytes of UTF-8.', ...bytes(1024) });
const leaseId = () => ({ description: 'The `leaseId` of the grant.', ...bytes(256) });
const ticket = () => ({
  description: 'The place in the queue, as `acquire` or a list of `waiters` shows it.',
  ...bytes(256),
});
const arn = (description: string) => ({ description, ...bytes(256) });

export const acquireRequest = request(acquireInput(), {
  id: 'AcquireRequest',
  description:
    'Takes a lease, or with `limit` or `mode` a permit. With a task token, parks a task for the lease or the permit.',
  fields: {
    key: key(),
    holder: { description: 'Who the caller is, shown to others. Up to 256 bytes of UTF-8.', ...bytes(256) },
    ttlSeconds: { description: 'How long the lease lasts, in seconds.' },
    waitSeconds: {
      description:
        'How long to wait inside the call for the lease to come free, in seconds. The deployment may allow less.',
    },
    fair: {
      description:
        'Whether the call waits in line, and gets the lease in its turn. `false` looks and races instead: that costs fewer requests, and the order is left to chance.',
    },
    ticket: {
      description:
        'Of the `retryWith` of an earlier LeaseHeld of this request: within five seconds it keeps the place in line. Needs `requestId`.',
      ...bytes(256),
    },
    requestId: {
      description:
        'Names one acquisition, so that a retry finds the grant instead of a lease of its own. Up to 256 bytes of UTF-8.',
      ...bytes(256),
    },
    data: json('Any JSON up to 4 KiB and 32 levels deep, shown to everybody who reads the lease.'),
    execution: arn('The ARN of the Standard execution that will hold the lease or the permit. Its end frees it.'),
    target: arn(
      'The ARN of an execution that works under the lease or the permit, which stays while it runs. Needs `execution`.',
    ),
    graceSeconds: {
      description:
        'How long the lease or the permit goes on after the execution ends with any status but SUCCEEDED, in seconds, at most to its own expiry: a function that the execution started may still work. 0 by default. Needs `execution`.',
    },
    taskToken: {
      description:
        'The token of a Step Functions task: the task waits parked, and gets the grant as its output. Excludes `waitSeconds`.',
      ...bytes(2048),
    },
    parkSeconds: {
      description: 'How long the task waits at most, in seconds. 86,400 where it is not given. Needs `taskToken`.',
    },
    limit: {
      description:
        'Asks for a permit of the pool of the key: the permit is granted if all holders, with this permit, weigh at most `limit`. With `mode` `shared`, the default is 200.',
    },
    weight: {
      description: 'How much the permit weighs, at most `limit`. 1 where it is not given. Needs `limit` or `mode`.',
    },
    mode: {
      description:
        'Asks for a permit of the pool of the key: beside others (`shared`, as with `limit`), or alone (`exclusive`). Permits take up to 256 bytes of `data`.',
    },
  },
  rules: {
    dependentRequired: {
      parkSeconds: ['taskToken'],
      target: ['execution'],
      graceSeconds: ['execution'],
      ticket: ['requestId'],
    },
    not: { required: ['taskToken', 'waitSeconds'], properties: { taskToken: {}, waitSeconds: { minimum: 1 } } },
  },
});

export const heartbeatRequest = request(heartbeatInput(), {
  id: 'HeartbeatRequest',
  description: 'Extends a lease.',
  fields: {
    key: key(),
    leaseId: leaseId(),
    ttlSeconds: { description: 'How long the lease lasts from now on, in seconds. The standing one where not given.' },
  },
});

export const releaseRequest = request(releaseInput(), {
  id: 'ReleaseRequest',
  description: 'Gives a lease back.',
  fields: { key: key(), leaseId: leaseId() },
});

export const breakRequest = request(breakInput(), {
  id: 'BreakRequest',
  description: 'Breaks the lease or the permit that an operator saw.',
  fields: {
    key: key(),
    fence: { description: 'The fence of the lease or the permit to end, as the operator read it.' },
    wait: {
      description:
        'True if the holder keeps the key until it releases the lease or its ttl ends. The next heartbeat of the holder fails with `LeaseLost`, and nothing extends the lease. Without `wait` the lease ends at once, while its holder may still work.',
    },
  },
});

export const cancelRequest = request(cancelInput(), {
  id: 'CancelRequest',
  description: 'Takes a task or a call out of the line of a key, by its ticket.',
  fields: {
    key: key(),
    ticket: ticket(),
  },
});

export const withdrawRequest = request(withdrawInput(), {
  id: 'WithdrawRequest',
  description: 'Withdraws a call that waits for a lease or a permit, or what it got.',
  fields: {
    key: key(),
    requestId: { description: 'The `requestId` of the acquisition, as it was sent to `acquire`.', ...bytes(256) },
    holder: { description: 'The `holder` of the acquisition, as it was sent to `acquire`.', ...bytes(256) },
    ticket: {
      description:
        'The place of the call in line, from `retryWith`: withdraws that place without a read of the whole line, and what it got. Leave `ticket` out if a response to another call of the request was lost, because that call may have a place too.',
      ...bytes(256),
    },
  },
});

export const readLeasesRequest = request(readInput(), {
  id: 'ReadLeasesRequest',
  description: 'Reads one key, or a page of keys.',
  fields: {
    key: { ...key(), description: `${key().description} Without a key the answer is a page of all keys.` },
    prefix: { description: 'Only keys that begin so. Not with `key`.', ...bytes(1024) },
    holder: {
      description: 'Only keys of this holder. The row of a pool then shows a permit of this holder. Not with `key`.',
      ...bytes(256),
    },
    state: {
      description:
        'Only keys in this state. A pool is held while at least one permit has time left. `active`: keys that have a holder, expired or not, or a line. Not with `key`.',
    },
    kind: { description: 'Only keys of this kind. Not with `key`.' },
    sort: {
      description:
        'Sorts by key, by the expiry that comes first (`expiry`), by the holder that has had its key for the longest time (`held`), or by the longest line (`waiting`). Each page then costs a read of the whole table. Not with `key`.',
    },
    limit: {
      ...limit(),
      description: `${limit().description} With \`key\`: of those in line, and only with \`waiters\`.`,
    },
    cursor: { ...cursor(), description: `${cursor().description} Not with \`key\`.` },
    waiters: { description: 'With `key`: whether to list the tasks and callers in line for it, the oldest first.' },
  },
});
