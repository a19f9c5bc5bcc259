import * as z from 'zod/mini';
import type { publisher } from '../../shared/nameservice/publish.ts';
import type { reader } from '../../shared/nameservice/read.ts';
import type { repairer } from '../../shared/nameservice/repair-names.ts';
import { published, record, recordPage, repaired } from '../answers/nameservice.ts';
import { examplesOf } from '../examples.ts';
import { publishRequest, readNamesRequest, repairRequest } from '../requests/nameservice.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

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
    examples: examplesOf('publish'),
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
    examples: examplesOf('repairNames'),
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
    examples: examplesOf('readNames'),
  }),
];
