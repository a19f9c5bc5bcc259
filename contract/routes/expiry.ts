import type { cleaner } from '../../shared/expiry/clean.ts';
import type { reader } from '../../shared/expiry/read.ts';
import type { reporter } from '../../shared/expiry/report.ts';
import { cleaned, report, reportPage } from '../answers/expiry.ts';
import { examplesOf } from '../examples.ts';
import { cleanRequest, readExpiredRequest, reportRequest } from '../requests/expiry.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

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
    examples: examplesOf('report'),
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
    examples: examplesOf('readExpired'),
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
    examples: examplesOf('clean'),
  }),
];
