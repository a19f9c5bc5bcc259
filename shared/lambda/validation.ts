import type * as z from 'zod/mini';
import { type Issue, invalidRequest } from '../errors.ts';
import type { Invocation } from './adapters.ts';
import type { Middleware } from './middleware.ts';

/** How many issues an answer lists, so that a hostile request cannot make it large. */
const MAX_ISSUES = 20;
const MAX_PATH = 100;

/**
 * Checks the payload against the schema, and replaces it with the schema's output.
 * @throws HoldfastError InvalidRequest naming each wrong field
 */
export function validation(schema: z.ZodMiniType): Middleware {
  return {
    before: (request) => {
      const invocation = request.event as Invocation;
      const parsed = schema.safeParse(invocation.payload);
      if (!parsed.success) throw invalidRequest(parsed.error.issues.flatMap(issues).slice(0, MAX_ISSUES));
      request.internal.input = parsed.data;
      invocation.payload = parsed.data;
    },
  };
}

function issues(issue: z.core.$ZodIssue): Issue[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys')
    return issue.keys
      .slice(0, MAX_ISSUES)
      .map((key) => ({ path: dotted([...path, key]), message: 'is not a known field' }));
  if (path.length === 0) return [{ path: 'payload', message: 'must be a JSON object' }];
  return [{ path: dotted(path), message: issue.message }];
}

const dotted = (path: string[]) => path.join('.').slice(0, MAX_PATH).toWellFormed() || '(an empty name)';
