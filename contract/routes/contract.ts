import * as z from 'zod/mini';
import type { Whoami } from '../../shared/callers/whoami.ts';
import { type Health, healthAnswer, whoamiAnswer } from '../answers/callers.ts';
import { request } from '../requests/request.ts';
import { jsonObject } from '../schema.ts';
import { route } from './route.ts';

export const CONTRACT_ROUTES = [
  route<Record<string, unknown>>({
    function: 'readContract',
    method: 'GET',
    path: '/openapi.json',
    tag: 'Contract',
    summary: 'Read this document',
    description: 'The contract of the version that is deployed. It may be cached.',
    request: request(z.strictObject({}), { id: 'ReadContractRequest', description: 'It takes no fields.', fields: {} }),
    success: { 200: { description: 'This document.', answer: jsonObject<Record<string, unknown>>('OpenAPI 3.1.') } },
    errors: [],
    examples: [{ name: 'document', summary: 'Its beginning', request: {}, status: 200, answer: { openapi: '3.1.0' } }],
  }),
  route<Health>({
    function: 'readHealth',
    method: 'GET',
    path: '/v1/health',
    tag: 'Contract',
    summary: 'Ask whether the deployment answers, and with which version',
    description:
      'Says that the gateway, the authorizer and a function answer. It reads no table and no bucket: what a caller needs of those, a lease that it acquires and releases shows. Every answer of a function names the version too, in the header `holdfast-version`.',
    request: request(z.strictObject({}), { id: 'ReadHealthRequest', description: 'It takes no fields.', fields: {} }),
    success: { 200: { description: 'It answers.', answer: healthAnswer } },
    errors: [],
    examples: [
      { name: 'ok', summary: 'It answers', request: {}, status: 200, answer: { status: 'ok', version: '0.1.0' } },
    ],
  }),
  route<Whoami>({
    function: 'whoami',
    method: 'GET',
    path: '/v1/whoami',
    tag: 'Contract',
    summary: 'Ask who the caller is, and what it may call',
    description:
      'Tells the caller as whom the service knows it, the version of the deployment, and what each call needs. The scopes of a JWT decide what it may call. What IAM allows is in policies that the service does not read, so it is null.',
    request: request(z.strictObject({}), { id: 'WhoamiRequest', description: 'It takes no fields.', fields: {} }),
    success: { 200: { description: 'The caller.', answer: whoamiAnswer } },
    errors: [],
    examples: [
      {
        name: 'iam',
        summary: 'A role (the list of calls is cut)',
        request: {},
        status: 200,
        answer: {
          version: '0.1.0',
          principal: 'arn:aws:sts::123456789012:assumed-role/operator/ann',
          authorizedBy: 'iam',
          namespaces: null,
          calls: [
            {
              operation: 'breakLease',
              route: 'POST /v1/leases/break',
              allowed: null,
              permission: 'execute-api:Invoke on <api>/$default/POST/v1/leases/break',
            },
          ],
        },
      },
    ],
  }),
];
