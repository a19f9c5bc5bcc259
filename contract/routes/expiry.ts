import type { cleaner } from '../../shared/expiry/clean.ts';
import { KINDS } from '../../shared/expiry/kinds.ts';
import type { reader } from '../../shared/expiry/read.ts';
import type { reporter } from '../../shared/expiry/report.ts';
import { cleaned, report, reportPage } from '../answers/expiry.ts';
import { cleanRequest, readExpiredRequest, reportRequest } from '../requests/expiry.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

const reportId = '20261121T124235991Z-9d367b29';
const none = Object.fromEntries(KINDS.map((kind) => [kind, { count: 0, oldestAgeSeconds: 0 }]));
const summary = {
  reportId,
  startedAt: '2026-11-21T12:42:35.991Z',
  finishedAt: '2026-11-21T12:42:36.161Z',
  complete: true,
  scanned: 2,
  readUnits: 6,
  heldByNamespace: [],
  expired: { ...none, abandonedLease: { count: 1, oldestAgeSeconds: 7202 } },
  neverDeletable: 0,
  location: `s3://holdfast-prod/.holdfast/reports/${reportId}/`,
};
const abandoned = {
  kind: 'abandonedLease',
  key: { key: 'nightly-report' },
  holder: 'worker-7',
  expiredAt: '2026-11-21T10:42:33.922Z',
};

export const EXPIRY_ROUTES = [
  route<AnswerOf<typeof reporter>>({
    function: 'report',
    method: 'POST',
    path: '/v1/expired/report',
    tag: 'Expired records',
    summary: 'Report what has expired',
    description:
      'Scans tables and bucket for expired records and writes them down, without changing any. The schedule calls it too.',
    request: reportRequest,
    success: {
      201: { description: 'A complete report.', answer: report },
      200: { description: 'A report that stopped in time; the next call goes on with it.', answer: report },
    },
    errors: ['LeaseHeld', 'LeaseLost', 'OutcomeUnknown'],
    examples: [
      {
        name: 'complete',
        summary: 'A complete report',
        request: {},
        status: 201,
        answer: { ...summary, stoppedBy: null, announced: true },
      },
    ],
  }),
  route<AnswerOf<typeof reader>>({
    function: 'readExpired',
    method: 'GET',
    path: '/v1/expired',
    tag: 'Expired records',
    summary: 'Read the rows of a report',
    description: 'Reads the last complete report, or the one asked for, page by page.',
    request: readExpiredRequest,
    success: { 200: { description: 'The summary and a page of rows.', answer: reportPage } },
    errors: ['NotFound'],
    examples: [
      {
        name: 'abandoned',
        summary: 'Leases that nobody gave back',
        request: { kind: 'abandonedLease' },
        status: 200,
        answer: {
          ...summary,
          rows: [
            {
              ...abandoned,
              ageSeconds: 7202,
              reason: 'worker-7 let it expire without giving it back, and nobody took it over',
              neverDeletable: false,
              ttlFault: null,
              identity: { fence: { N: '1795257751922' }, released_at: null },
            },
          ],
          nextCursor: null,
        },
      },
    ],
  }),
  route<AnswerOf<typeof cleaner>>({
    function: 'clean',
    method: 'POST',
    path: '/v1/expired/clean',
    tag: 'Expired records',
    summary: 'Delete what has expired',
    description:
      'Deletes reported records that are still the very ones reported. By default it only says what it would delete.',
    request: cleanRequest,
    success: { 200: { description: 'What was deleted and what was spared.', answer: cleaned } },
    errors: ['NotFound', 'OutcomeUnknown'],
    scope: 'cleanScope',
    examples: [
      {
        name: 'dryRun',
        summary: 'What would be deleted',
        request: { kinds: ['abandonedLease'] },
        status: 200,
        answer: {
          reportId,
          dryRun: true,
          olderThanSeconds: 3600,
          deleted: { count: 1, by: { abandonedLease: 1 }, records: [abandoned] },
          spared: { count: 0, by: {}, records: [] },
          stoppedBy: null,
          nextCursor: null,
        },
      },
    ],
  }),
];
