import * as z from 'zod/mini';
import type { publishName } from '../../shared/nameservice/publish.ts';
import type { readAliasOrList } from '../../shared/nameservice/read.ts';
import type { repairAlias } from '../../shared/nameservice/repair-alias.ts';
import { published, record, recordPage, repaired } from '../answers/nameservice.ts';
import { examplesOf } from '../examples.ts';
import { publishRequest, readNamesRequest, repairRequest } from '../requests/nameservice.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const NAMESERVICE_ROUTES = [
  route<AnswerOf<typeof publishName>>({
    function: 'publish',
    method: 'POST',
    path: '/v1/nameservice/publish',
    tag: 'Nameservice',
    summary: 'Publish',
    description:
      'Creates an alias, or changes what it points to: `op` says how. A publish that arrives late is `stale`, and changes nothing.',
    request: publishRequest,
    success: {
      201: { description: 'This call created the alias.', answer: published },
      200: { description: 'The alias is up to date.', answer: published },
    },
    errors: ['NotFound', 'Conflict', 'AlreadyExists', 'OutcomeUnknown'],
    when: {
      NotFound: 'The alias does not exist, or the operation is for the other kind of alias.',
      Conflict:
        'A compare-and-set lost, or `t` or `v` does not rise. `actual` is the value that the alias has now, or null.',
      AlreadyExists:
        'The alias already exists. Without `kind`, leftover items that do not form a record are in the way.',
      OutcomeUnknown:
        'A write was sent, and its response was lost. Send the same call with the fields of `retryWith` added. The code also means that a compare-and-set, or a reindex at the same `t`, may have won before another caller overwrote it: `actual` is the value now.',
    },
    examples: examplesOf('publish'),
  }),
  route<AnswerOf<typeof repairAlias>>({
    function: 'repairNames',
    method: 'POST',
    path: '/v1/nameservice/repair',
    tag: 'Nameservice',
    summary: 'Repair an alias',
    description:
      'For an administrator: sets counters and flags back, or removes an alias. Each operation takes effect only if the alias still is as the caller saw it.',
    request: repairRequest,
    success: { 200: { description: 'The repair took effect.', answer: repaired } },
    errors: ['NotFound', 'Conflict', 'OutcomeUnknown'],
    when: {
      NotFound: 'The alias does not exist, or the operation is for the other kind of alias.',
      Conflict: 'The alias is not as the caller saw it. `actual` is the value that the alias has now.',
    },
    scope: 'repairScope',
    examples: examplesOf('repairNames'),
  }),
  route<AnswerOf<typeof readAliasOrList>>({
    function: 'readNames',
    method: 'GET',
    path: '/v1/nameservice',
    tag: 'Nameservice',
    summary: 'Read an alias, or list aliases',
    description: 'With `alias`, reads the record of that alias. Without `alias`, lists records page by page.',
    request: readNamesRequest,
    success: { 200: { description: 'The record, or the page.', answer: z.union([record, recordPage]) } },
    errors: ['NotFound'],
    when: { NotFound: 'The alias does not exist.' },
    examples: examplesOf('readNames'),
  }),
];
