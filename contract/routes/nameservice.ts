import * as z from 'zod/mini';
import type { publisher } from '../../shared/nameservice/publish.ts';
import type { reader } from '../../shared/nameservice/read.ts';
import type { repairer } from '../../shared/nameservice/repair-names.ts';
import { published, record, recordPage, repaired } from '../answers/nameservice.ts';
import { publishRequest, readNamesRequest, repairRequest } from '../requests/nameservice.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

const books = {
  alias: 'books:main',
  kind: 'ledger',
  name: 'books',
  branch: 'main',
  retracted: false,
  commit: { address: null, t: 0 },
  index: { address: null, t: 0 },
  status: { state: 'ready', v: 1, extra: {} },
  updatedAt: '2026-11-20T23:57:35.840Z',
  config: { v: 0, payload: null },
};
const outcome = { alias: 'books:main', outcome: 'updated', created: false, repeated: false };

export const NAMESERVICE_ROUTES = [
  route<AnswerOf<typeof publisher>>({
    function: 'publish',
    method: 'POST',
    path: '/v1/nameservice/publish',
    tag: 'Nameservice',
    summary: 'Publish what a ledger or graph source points to',
    description: 'Every write of the nameservice, by `op`. A publication that comes late is stale and changes nothing.',
    request: publishRequest,
    success: {
      201: { description: 'The alias exists now.', answer: published },
      200: { description: 'What stands under the alias now.', answer: published },
    },
    errors: ['NotFound', 'Conflict', 'AlreadyExists', 'OutcomeUnknown'],
    examples: [
      {
        name: 'created',
        summary: 'A new ledger',
        request: { op: 'initLedger', alias: 'books', requestId: 'deploy-7' },
        status: 201,
        answer: { ...outcome, created: true, current: books },
      },
      {
        name: 'committed',
        summary: 'A new commit head',
        request: { op: 'publishCommit', alias: 'books', address: 's3://books/commit/2', t: 2 },
        status: 200,
        answer: { ...outcome, current: { address: 's3://books/commit/2', t: 2 } },
      },
      {
        name: 'lost',
        summary: 'A compare-and-set that lost',
        request: {
          op: 'compareAndSetRef',
          alias: 'books',
          ref: 'commit',
          expected: { address: 's3://books/commit/1', t: 1 },
          next: { address: 's3://books/commit/3', t: 3 },
        },
        status: 409,
        answer: {
          type: 'urn:holdfast:error:Conflict',
          title: 'The record is not in the expected state',
          status: 409,
          code: 'Conflict',
          detail: 'the commit ref is not as expected',
          traceId: '7f30e5f9-e304-44c4-a9ee-cf6e8ef590db',
          alias: 'books:main',
          actual: { address: 's3://books/commit/2', t: 2 },
        },
      },
    ],
  }),
  route<AnswerOf<typeof repairer>>({
    function: 'repairNames',
    method: 'POST',
    path: '/v1/nameservice/repair',
    tag: 'Nameservice',
    summary: 'Take back what publishing cannot',
    description:
      'For administrators: sets counters and flags back, and removes aliases. Each operation is conditional on what the caller saw.',
    request: repairRequest,
    success: { 200: { description: 'The repair took effect.', answer: repaired } },
    errors: ['NotFound', 'Conflict', 'OutcomeUnknown'],
    scope: 'repairScope',
    examples: [
      {
        name: 'setBack',
        summary: 'A commit head that was set too far',
        request: {
          op: 'resetRef',
          alias: 'books',
          ref: 'commit',
          expected: { address: 's3://books/commit/x', t: 9007199254740991 },
          next: { address: 's3://books/commit/2', t: 2 },
        },
        status: 200,
        answer: {
          alias: 'books:main',
          op: 'resetRef',
          repeated: false,
          current: { address: 's3://books/commit/2', t: 2 },
        },
      },
    ],
  }),
  route<AnswerOf<typeof reader>>({
    function: 'readNames',
    method: 'GET',
    path: '/v1/nameservice',
    tag: 'Nameservice',
    summary: 'Look an alias up, or list all of them',
    description: 'With `alias`, reads the whole record. Without it, lists records page by page.',
    request: readNamesRequest,
    success: { 200: { description: 'The record, or the page.', answer: z.union([record, recordPage]) } },
    errors: ['NotFound'],
    examples: [
      { name: 'one', summary: 'One ledger', request: { alias: 'books' }, status: 200, answer: books },
      {
        name: 'page',
        summary: 'Every ledger',
        request: { kind: 'ledger', limit: 10 },
        status: 200,
        answer: { records: [books], nextCursor: null },
      },
    ],
  }),
];
