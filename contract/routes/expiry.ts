import type { cleanExpired } from '../../shared/expiry/clean.ts';
import type { readReport } from '../../shared/expiry/read.ts';
import type { createReport } from '../../shared/expiry/report.ts';
import { cleaned, report, reportPage } from '../answers/expiry.ts';
import { examplesOf } from '../examples.ts';
import { cleanRequest, readExpiredRequest, reportRequest } from '../requests/expiry.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const EXPIRY_ROUTES = [
  route<AnswerOf<typeof createReport>>({
    function: 'report',
    method: 'POST',
    path: '/v1/expired/report',
    tag: 'Expired records',
    summary: 'Report what has expired',
    description:
      'Scans the tables and the bucket for expired records, and writes a report. The records stay as they are. The schedule makes the same call.',
    request: reportRequest,
    success: {
      201: { description: 'A complete report.', answer: report },
      200: {
        description: 'A report that stopped before its end. The next call continues it.',
        answer: report,
      },
    },
    errors: ['LeaseHeld', 'LeaseLost', 'OutcomeUnknown'],
    when: { LeaseHeld: 'Another report is running.', LeaseLost: 'A later run has taken over the report.' },
    examples: examplesOf('report'),
  }),
  route<AnswerOf<typeof readReport>>({
    function: 'readExpired',
    method: 'GET',
    path: '/v1/expired',
    tag: 'Expired records',
    summary: 'Read a report',
    description: 'Reads the last complete report, or the report with the given id, page by page.',
    request: readExpiredRequest,
    success: { 200: { description: 'The summary and a page of rows.', answer: reportPage } },
    errors: ['NotFound'],
    when: { NotFound: 'There is no such report.' },
    examples: examplesOf('readExpired'),
  }),
  route<AnswerOf<typeof cleanExpired>>({
    function: 'clean',
    method: 'POST',
    path: '/v1/expired/clean',
    tag: 'Expired records',
    summary: 'Delete expired records',
    description:
      'Deletes reported records that have not changed since the report. By default the call only says what it would delete.',
    request: cleanRequest,
    success: { 200: { description: 'What was deleted, and what was spared.', answer: cleaned } },
    errors: ['NotFound', 'OutcomeUnknown'],
    when: { NotFound: 'There is no such report.' },
    scope: 'cleanScope',
    examples: examplesOf('clean'),
  }),
];
