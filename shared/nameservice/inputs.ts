import * as z from 'zod/mini';
import { cursorText, flag, limit, listOf, must, name, oneOf, sharedSchema, whole } from '../fields.ts';
import type { NameFields } from '../namespace.ts';
import { aliasText, parseAlias } from './alias.ts';
import { RECORD_KINDS } from './items.ts';
import { jsonObject, jsonText } from './json-fields.ts';

// The schemas are functions, so that each Lambda function builds only its own.

/** The longest sort key of DynamoDB: the alias is a sort key of the index. */
const MAX_ALIAS_BYTES = 1024;
const MAX_DEPENDENCIES = 100;

/**
 * The largest payload of a publish: all dependencies at their longest, with six bytes of JSON for a character, and 64
 * KiB for the other fields.
 */
export const MAX_PUBLISH_BYTES = MAX_DEPENDENCIES * MAX_ALIAS_BYTES * 6 + 64 * 1024;

/** An alias as text: `name:branch`, or a name for its branch `main`. */
const alias = sharedSchema(() =>
  z
    .pipe(
      name(MAX_ALIAS_BYTES).check(
        z.refine(
          (text) => parseAlias(text) !== undefined,
          'must be name or name:branch, without empty parts or further colons',
        ),
      ),
      z.transform((text) => parseAlias(text) ?? { name: text, branch: '' }),
    )
    .check(
      z.refine(
        (alias) => Buffer.byteLength(aliasText(alias)) <= MAX_ALIAS_BYTES,
        'must be at most 1,024 bytes of UTF-8 with its branch',
      ),
    ),
);

const address = () => name(1024);
/** A t or a version. */
export const counter = () => whole(0, Number.MAX_SAFE_INTEGER);

export const object = <Shape extends z.core.$ZodLooseShape>(shape: Shape, what = 'a JSON object') =>
  z.strictObject(shape, must(what));

const target = () => ({ address: address(), t: counter() });

/**
 * The state of a ref. An unborn ref does not have an address. Its t is usually 0, but rows of other clients may have
 * another t.
 */
export const expectedPointer = () => object({ address: z.nullable(address()), t: counter() }, 'a JSON object or null');

export const operation = <const Op extends string, Shape extends z.core.$ZodLooseShape>(op: Op, shape: Shape) =>
  z.strictObject({ op: z.literal(op), alias: alias(), requestId: z.optional(name(256)), ...shape });

export const expectedStatus = () => object({ state: name(256), v: counter() });

export const statusChangeFields = () => ({
  expected: expectedStatus(),
  next: object({ state: name(256), v: counter(), extra: z.optional(jsonObject()) }),
});

const pushStatus = () => operation('pushStatus', statusChangeFields());
export type StatusInput = z.infer<ReturnType<typeof pushStatus>>;

export const configChangeFields = () => ({
  expected: object({ v: counter() }),
  next: object({
    v: counter(),
    payload: z.nullable(
      object(
        { defaultContextAddress: z.optional(address()), extra: z.optional(jsonObject()) },
        'a JSON object or null',
      ),
    ),
  }),
});

const pushConfig = () => operation('pushConfig', configChangeFields());
export type ConfigInput = z.infer<ReturnType<typeof pushConfig>>;

const graphSource = () => ({
  sourceType: name(256),
  config: jsonText(),
  dependencies: listOf(alias(), MAX_DEPENDENCIES, 'aliases'),
});

const operations = () =>
  [
    operation('initLedger', {}),
    operation('publishCommit', target()),
    operation('publishIndex', { ...target(), allowEqual: z._default(flag(), false) }),
    operation('retract', {}),
    operation('compareAndSetRef', {
      ref: oneOf(['commit', 'index']),
      expected: z.nullable(expectedPointer()),
      next: object(target()),
    }),
    operation('fastForwardCommit', { ...target(), maxRetries: z._default(whole(0, 20), 5) }),
    pushStatus(),
    pushConfig(),
    operation('publishGraphSource', graphSource()),
    operation('publishGraphSourceIndex', target()),
    operation('retractGraphSource', {}),
  ] as const;

export const unknownOperation = (ops: string[]) => ({
  error: ({ code, input }: { code?: string; input?: unknown }) => {
    if (code !== 'invalid_union') return undefined;
    const missing = (input as { op?: unknown }).op === undefined;
    return missing ? 'is missing' : `must be one of ${ops.join(', ')}`;
  },
});

export const publishInput = () => {
  const options = operations();
  const ops = options.flatMap(({ def }) => def.shape.op.def.values);
  return z.discriminatedUnion('op', options, unknownOperation(ops));
};
export type PublishInput = z.infer<ReturnType<typeof publishInput>>;

export const readNamesInput = () =>
  z
    .strictObject({
      alias: z.optional(alias()),
      kind: z.optional(oneOf(RECORD_KINDS)),
      prefix: z.optional(name(MAX_ALIAS_BYTES)),
      limit: z.optional(limit()),
      cursor: z.optional(cursorText()),
    })
    .check(
      z.check((ctx) => {
        const { alias, ...rest } = ctx.value;
        for (const field of Object.keys(rest))
          if (alias !== undefined)
            ctx.issues.push({ code: 'custom', path: [field], message: 'cannot be combined with alias', input: field });
      }),
    );
export type ReadNamesInput = z.infer<ReturnType<typeof readNamesInput>>;

const STORED = ['alias', 'dependencies.*'];

export const ALIAS_NAME_FIELDS: NameFields = {
  stored: STORED,
  answered: ['alias', 'current.alias', 'current.name', 'current.dependencies.*'],
};

export const ALIAS_LIST_FIELDS: NameFields = {
  stored: STORED,
  listed: { unless: 'alias', of: 'stored' },
  answered: [
    ...(['alias', 'name', 'dependencies.*'] as const),
    ...(['records.*.alias', 'records.*.name', 'records.*.dependencies.*'] as const),
  ],
};
