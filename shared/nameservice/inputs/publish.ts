import * as z from 'zod/mini';
import { name, oneOf, whole } from '../../fields.ts';
import { jsonObject, jsonText } from '../fields.ts';
import { alias } from './common.ts';

const MOST_DEPENDENCIES = 100;

const address = name(1024);
/** A watermark or version. */
const counter = whole(0, Number.MAX_SAFE_INTEGER);

const mustBe = (what: string) => ({
  error: (issue: { code?: string; input?: unknown }) => {
    if (issue.code !== 'invalid_type') return undefined;
    return issue.input === undefined ? 'is missing' : `must be ${what}`;
  },
});
const object = <Shape extends z.core.$ZodLooseShape>(shape: Shape, what = 'a JSON object') =>
  z.strictObject(shape, mustBe(what));

const target = object({ address, t: counter });

/** An unborn ref is at t 0 and has no address. */
const expectedPointer = object({ address: z.nullable(address), t: counter }, 'a JSON object or null').check(
  z.refine((pointer) => pointer.address !== null || pointer.t === 0, {
    path: ['address'],
    error: 'must not be null where t is above 0',
  }),
);

const operation = <const Op extends string, Shape extends z.core.$ZodLooseShape>(op: Op, shape: Shape) =>
  z.strictObject({ op: z.literal(op), alias, requestId: z.optional(name(256)), ...shape });

const pushStatus = operation('pushStatus', {
  expected: object({ state: name(256), v: counter }),
  next: object({ state: name(256), v: counter, extra: z.optional(jsonObject) }),
});
export type StatusInput = z.infer<typeof pushStatus>;

const pushConfig = operation('pushConfig', {
  expected: object({ v: counter }),
  next: object({
    v: counter,
    payload: z.nullable(
      object({ defaultContextAddress: z.optional(address), extra: z.optional(jsonObject) }, 'a JSON object or null'),
    ),
  }),
});
export type ConfigInput = z.infer<typeof pushConfig>;

const operations = [
  operation('initLedger', {}),
  operation('publishCommit', { address, t: counter }),
  operation('publishIndex', { address, t: counter, allowEqual: z._default(z.boolean(mustBe('true or false')), false) }),
  operation('retract', {}),
  operation('compareAndSetRef', {
    ref: oneOf(['commit', 'index']),
    expected: z.nullable(expectedPointer),
    next: target,
  }),
  operation('fastForwardCommit', { address, t: counter, maxRetries: z._default(whole(0, 20), 5) }),
  pushStatus,
  pushConfig,
  operation('publishGraphSource', {
    sourceType: name(256),
    config: jsonText,
    dependencies: z
      .array(alias, mustBe('a list of aliases'))
      .check(z.maxLength(MOST_DEPENDENCIES, `must be at most ${MOST_DEPENDENCIES} aliases`)),
  }),
  operation('publishGraphSourceIndex', { address, t: counter }),
  operation('retractGraphSource', {}),
] as const;

const OPS = operations.flatMap(({ _zod }) => _zod.def.shape.op._zod.def.values);

export const publishInput = z.discriminatedUnion('op', operations, {
  error: ({ code, input }) => {
    if (code !== 'invalid_union') return undefined;
    const missing = (input as { op?: unknown }).op === undefined;
    return missing ? 'is missing' : `must be one of ${OPS.join(', ')}`;
  },
});
export type PublishInput = z.infer<typeof publishInput>;
