import type { Tag } from '@aws-sdk/client-cloudformation';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import { Refusal } from './failure.ts';
import { checkName, parseParameters, type Values } from './values.ts';

/** A deployment as the operator has typed it. */
export interface Request {
  stage: string;
  /** Each as name=value. All other parameters keep their values. */
  parameters: string[];
  /** Names of parameters that go back to their defaults. */
  reset: string[];
  /** Each as key=value, for every resource. All other tags stay. */
  tags: string[];
  /** Keys of tags to remove. */
  untag: string[];
  /** Names of fixed parameters that may change. */
  allowedChanges: string[];
  /** Whether the stack may be created if there is none. */
  mayCreate: boolean;
  /** Whether only to show what would change. */
  isPlan: boolean;
  /** The role that CloudFormation assumes. Without one, CloudFormation uses the role of the stack, or else the rights of the operator. */
  roleArn?: string | undefined;
}

/** A request whose texts are parsed. */
export interface ParsedRequest {
  stage: string;
  given: Values;
  reset: string[];
  tags: Tag[];
  untag: string[];
  allowedChanges: string[];
  mayCreate: boolean;
  isPlan: boolean;
  roleArn?: string | undefined;
}

/** @throws Refusal that names what is wrong. AWS is not asked yet */
export function readRequest({ Parameters = {} }: CloudFormationTemplate, request: Request): ParsedRequest {
  const { stage, reset, allowedChanges, mayCreate, isPlan, roleArn } = request;
  if (!new RegExp(PARAMETERS.stage?.pattern ?? '').test(stage))
    throw new Refusal(`the stage ${PARAMETERS.stage?.constraint}, not '${stage}'`);
  const given = parseParameters(request.parameters, { Parameters });
  if ('stage' in given) throw new Refusal('set the stage with --stage, not with --param');
  if ('allowChange' in given)
    throw new Refusal('name the parameters that may change with --allow-change, not with --param');
  for (const name of [...reset, ...allowedChanges]) checkName(name, Parameters);
  if (reset.includes('stage')) throw new Refusal('the stage has no default');
  const both = reset.find((name) => name in given);
  if (both) throw new Refusal(`the parameter ${both} is in both --param and --reset`);
  const free = allowedChanges.find((name) => name === 'stage' || !PARAMETERS[name]?.fixed);
  if (free === 'stage') throw new Refusal('the stage of a stack can never change');
  if (free) throw new Refusal(`the parameter ${free} may always change: leave out --allow-change ${free}`);
  if (roleArn !== undefined && !ROLE.test(roleArn))
    throw new Refusal(`--role-arn must be an ARN like arn:aws:iam::111122223333:role/name, not '${roleArn}'`);
  const { untag } = request;
  const tags = parseTags(request.tags);
  const contradicted = tags.find(({ Key }) => untag.includes(String(Key)));
  if (contradicted) throw new Refusal(`the tag ${contradicted.Key} is in both --tag and --untag`);
  return { stage, given, reset, allowedChanges, tags, untag, mayCreate, isPlan, roleArn };
}

const ROLE = /^arn:[a-z-]+:iam::\d{12}:role\/[!-~]{1,512}$/;

/** The most tags that CloudFormation accepts for a stack. */
const MAX_TAGS = 50;

/** The characters that are allowed by every service which has a resource in the stack. */
const TAG_TEXT = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;

function parseTags(given: string[]): Tag[] {
  const tags = new Map<string, string>();
  for (const text of given) {
    const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (key === undefined || value === undefined) throw new Refusal(`a tag is written key=value, and not '${text}'`);
    const fault = faultOfTag(key, value);
    if (fault) throw new Refusal(`the tag ${key.slice(0, 128)} ${fault}`);
    if (tags.has(key) && tags.get(key) !== value) throw new Refusal(`the tag ${key} is given twice`);
    tags.set(key, value);
  }
  return [...tags].map(([Key, Value]) => ({ Key, Value }));
}

function faultOfTag(key: string, value: string): string | undefined {
  if (/^aws:/i.test(key)) return 'begins with aws:, which only AWS may give';
  if (key.length > 128) return 'has a key of more than 128 characters';
  if (value.length > 256) return 'has a value of more than 256 characters';
  if (!TAG_TEXT.test(key) || !TAG_TEXT.test(value))
    return 'has a character other than letters, digits, spaces and _ . : / = + - @';
  return undefined;
}

/**
 * The tags of a stack, with the given ones added and others removed.
 * @throws Refusal if there are too many, or the stack does not have a tag that is to be removed
 */
export function mergedTags(previous: Tag[], { tags: given, untag }: Pick<ParsedRequest, 'tags' | 'untag'>): Tag[] {
  const tags = new Map([...previous, ...given].map(({ Key, Value }) => [String(Key), Value ?? '']));
  for (const key of new Set(untag))
    if (!tags.delete(key)) throw new Refusal(`the stack has no tag '${key}': leave out --untag ${key}`);
  if (tags.size > MAX_TAGS)
    throw new Refusal(`the stack would have ${tags.size} tags, and may have at most ${MAX_TAGS}`);
  return [...tags].map(([Key, Value]) => ({ Key, Value }));
}
