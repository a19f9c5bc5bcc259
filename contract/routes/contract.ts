import * as z from 'zod/mini';
import type { Whoami } from '../../shared/lambda/whoami.ts';
import { type Health, healthAnswer, whoamiAnswer } from '../answers/callers.ts';
import { examplesOf } from '../examples.ts';
import { request } from '../requests/request.ts';
import { jsonObject } from '../schema.ts';
import { route } from './route.ts';

export const CONTRACT_ROUTES = [
  route<Record<string, unknown>>({
    function: 'readContract',
    method: 'GET',
    path: '/openapi.json',
    tag: 'Contract',
    summary: 'Read the OpenAPI document',
    description: 'Returns the API of the deployed version as an OpenAPI 3.1 document. The answer may be cached.',
    request: request(z.strictObject({}), {
      id: 'ReadContractRequest',
      description: 'The call takes no fields.',
      fields: {},
    }),
    success: { 200: { description: 'The document.', answer: jsonObject<Record<string, unknown>>('OpenAPI 3.1.') } },
    errors: [],
    examples: examplesOf('readContract'),
  }),
  route<Health>({
    function: 'readHealth',
    method: 'GET',
    path: '/v1/health',
    tag: 'Contract',
    summary: 'Check the health',
    description:
      'Shows that the gateway, the authorizer and a function answer. The call does not read the tables or the bucket: to check those, acquire and release a lease. The caller needs a signature or a token, as on every route.',
    request: request(z.strictObject({}), {
      id: 'ReadHealthRequest',
      description: 'The call takes no fields.',
      fields: {},
    }),
    success: { 200: { description: 'The deployment answers.', answer: healthAnswer } },
    errors: [],
    examples: examplesOf('readHealth'),
  }),
  route<Whoami>({
    function: 'whoami',
    method: 'GET',
    path: '/v1/whoami',
    tag: 'Contract',
    summary: 'Read who the caller is, and what it may call',
    description:
      'Returns the name of the authenticated caller, the version of the deployment, and for each call the permission that it needs and whether the caller has it. With IAM, `allowed` is null, because the service does not read IAM policies.',
    request: request(z.strictObject({}), { id: 'WhoamiRequest', description: 'The call takes no fields.', fields: {} }),
    success: { 200: { description: 'The caller.', answer: whoamiAnswer } },
    errors: [],
    examples: examplesOf('whoami'),
  }),
];
