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
        data: null,
      },
    ],
    waiting: 0,
  },
};
