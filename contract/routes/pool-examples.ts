import type { Example } from './route.ts';

export const PERMIT_EXAMPLE: Example = {
  name: 'permit',
  summary: 'One of five permits',
  request: { key: 'render', holder: 'worker-1', limit: 5, requestId: 'run-44' },
  status: 201,
  answer: {
    key: 'render',
    holder: 'worker-1',
    leaseId: 'p.mXw2Zx1r0uC-4q_T.da91f8eb-f757-4f74-81a5-86d441d75bcf.3',
    version: '32a2edb5-afa8-4793-9a45-f0fc12b37590',
    fence: 1795215137091,
    acquiredAt: '2026-11-20T22:52:17.091Z',
    expiresAt: '2026-11-20T22:53:17.091Z',
    remainingMs: 59994,
    waitedMs: 6,
    repeated: false,
    previous: null,
    mode: 'shared',
    limit: 5,
    weight: 1,
    used: 3,
  },
};

export const WRONG_KIND_EXAMPLE: Example = {
  name: 'wrongKind',
  summary: 'A caller that forgets the limit of a pool',
  request: { key: 'render', holder: 'worker-2', requestId: 'run-45' },
  status: 409,
  answer: {
    type: 'urn:holdfast:error:WrongKind',
    title: 'The key is used as the other kind',
    status: 409,
    code: 'WrongKind',
    detail:
      'the key is used as a pool of permits, and 1 of 5 are in use: acquire it with limit or mode, or use another key for a lease',
    traceId: '3ba08391-5d72-4da5-add5-973d8369e325',
    key: 'render',
    kind: 'pool',
    holder: 'worker-1',
    fence: 1795215137091,
    expiresAt: '2026-11-20T22:53:17.091Z',
    retryAfterMs: 60396,
    used: 1,
    limit: 5,
    holders: [
      {
        holder: 'worker-1',
        fence: 1795215137091,
        mode: 'shared',
        weight: 1,
        expiresAt: '2026-11-20T22:53:17.091Z',
      },
    ],
  },
};

export const POOL_EXAMPLE: Example = {
  name: 'pool',
  summary: 'A pool',
  request: { key: 'render' },
  status: 200,
  answer: {
    kind: 'pool',
    key: 'render',
    used: 1,
    limit: 5,
    limitBy: 'worker-1',
    holders: [
      {
        holder: 'worker-1',
        fence: 1795215137091,
        mode: 'shared',
        weight: 1,
        expiresAt: '2026-11-20T22:53:17.204Z',
        state: 'held',
        acquiredAt: '2026-11-20T22:52:17.091Z',
        remainingMs: 59976,
        ttlSeconds: 60,
        execution: null,
        inGrace: false,
        ending: false,
        brokenAt: null,
        brokenBy: null,
        data: null,
      },
    ],
    waiting: 0,
  },
};
