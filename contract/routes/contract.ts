import * as z from 'zod/mini';
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
];
