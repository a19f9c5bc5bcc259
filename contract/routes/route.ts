import type * as z from 'zod/mini';
import type { ErrorCode } from '../../shared/errors.ts';
import type { Request } from '../requests/request.ts';

/** A call and its answer, which the document shows. The fuzz tests also start from it. */
export interface Example {
  /** Camel case: the key of the example in the document. */
  name: string;
  summary: string;
  request: Record<string, unknown>;
  status: number;
  answer: Record<string, unknown>;
}

interface Success<Answer> {
  description: string;
  answer: z.ZodMiniType<Answer>;
}

interface RouteContract<Answer> {
  /** The name of the function in the deployment, and the operationId of the route. */
  function: string;
  method: 'GET' | 'POST';
  path: string;
  tag: 'Leases' | 'Commits' | 'Nameservice' | 'Expired records' | 'Contract';
  summary: string;
  description: string;
  request: Request;
  /** The answers by status: 201 if something was created, otherwise 200. */
  success: { 200?: Success<Answer>; 201?: Success<Answer> };
  /** The error codes of this route, besides those of every route. */
  errors: readonly ErrorCode[];
  /** When this route answers an error, if contract/errors.ts does not say it well enough for this route. */
  when?: Partial<Record<ErrorCode, string>>;
  /** The parameter that names the scope which the JWT of an operator needs. With IAM, the permission on the route decides. */
  scope?: 'breakScope' | 'cleanScope' | 'repairScope' | 'resetFenceScope';
  examples: readonly Example[];
}

export type Route = RouteContract<unknown>;

/**
 * A route whose answers have the type that the use case returns, or it does not compile.
 * @example route<AnswerOf<typeof releaseGrant>>({ ... })
 */
export const route = <Answer>(contract: RouteContract<Answer>): Route => contract as Route;

/** The parameter that names the scope of the route's capability. Undefined if any token is enough. */
export const capabilityScope = ({ tag }: Pick<Route, 'tag'>) => CAPABILITY_SCOPES[tag];

/** The parameters that name the scopes which a JWT needs: on the route in a namespace, and on the route of the whole deployment. */
export function scopesOf({ tag, scope }: Pick<Route, 'tag' | 'scope'>) {
  const ofCapability = capabilityScope({ tag });
  if (ofCapability === undefined) return { inNamespace: [], whole: [] };
  return { inNamespace: [scope ?? ofCapability], whole: ['adminScope', ...(scope ? [scope] : [])] } as const;
}

const CAPABILITY_SCOPES = {
  Leases: 'leasesScope',
  Commits: 'commitsScope',
  Nameservice: 'namesScope',
  'Expired records': 'expiredScope',
  Contract: undefined,
} as const;

export const IN_NAMESPACE = '/v1/ns/{ns}';

/** The route of the same function for the callers of one namespace. */
export const pathInNamespace = ({ path }: Pick<Route, 'path'>): string =>
  `${IN_NAMESPACE}${path.replace(/^\/v1\//, '/')}`;

/** Every route can answer these, because they come from its input, from authentication, or from a failing store. */
export const COMMON_ERRORS = [
  'InvalidRequest',
  'Forbidden',
  'PayloadTooLarge',
  'Throttled',
  'Unavailable',
] as const satisfies readonly ErrorCode[];
