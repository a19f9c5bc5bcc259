export type ParameterName = string;

/** A parameter of a deployment. serverless.yml uses the default, and the released template everything else. */
export interface Parameter {
  /** Empty means off, or that the template chooses a value. A parameter without a default is required. */
  default?: string;
  description: string;
  /** A regular expression that the whole value matches. */
  pattern?: string;
  /** What the pattern means, in words. */
  constraint?: string;
  allowed?: string[];
  min?: number;
  max?: number;
  /** A change on a running stack would move callers to other records, or shut them out. The change check refuses it. */
  fixed?: true;
  /** The parameter limits what callers or functions may do. An update that forgets it would widen the limit, or take rights from callers. */
  limit?: true;
  /** The parameter exists only in the released template, and not in serverless.yml. */
  releasedOnly?: true;
}

export type Group = Record<ParameterName, Parameter>;

export const SWITCH = ['true', 'false'];
export const TABLE = { pattern: '^([a-zA-Z0-9_.-]{3,255})?$', constraint: 'must be the name of a table, or empty' };
/** The ARN of a resource of an account, or of AWS itself. @param kind what the last part of the ARN begins with */
export const ARN = (service: string, kind = '') => ({
  pattern: `^(arn:[a-z-]+:${service}:[a-z0-9-]*:([0-9]{12}|aws):${kind}[!-~]+)?$`,
  constraint: `must be an ARN like arn:aws:${service}:${service === 'iam' ? '' : 'eu-west-1'}:111122223333:${kind}name, or empty`,
});
export const WHOLE = { pattern: '^[0-9]{1,15}$', constraint: 'must be a whole number' };
export const COUNT = { pattern: '^[0-9]{0,5}$', constraint: 'must be a whole number, or empty' };
export const SCOPE = { pattern: '^[!-~]{1,256}$', constraint: 'must be a scope of OAuth 2.0', limit: true } as const;
export const IDS = (prefix: string) => ({
  pattern: `^(${prefix}-[0-9a-f]+(,${prefix}-[0-9a-f]+)*)?$`,
  constraint: `must be ids ${prefix}-... with commas between them, or empty`,
});
