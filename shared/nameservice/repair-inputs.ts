import * as z from 'zod/mini';
import { oneOf } from '../fields.ts';
import {
  configChangeFields,
  counter,
  expectedPointer,
  expectedStatus,
  object,
  operation,
  statusChangeFields,
  unknownOperation,
} from './inputs.ts';
import { RECORD_KINDS } from './items.ts';

const pointer = () =>
  expectedPointer().check(
    z.refine(({ address, t }) => address !== null || t === 0, { path: ['t'], error: 'must be 0 without an address' }),
  );

/**
 * Checks that a repair does not raise a counter. Publishing raises counters, and does not need an operator's
 * permission.
 */
const lowers = <Change extends z.ZodMiniType<{ expected: object; next: object }>>(
  change: Change,
  counterName: 't' | 'v',
) =>
  change.check(
    z.refine(
      ({ expected, next }) => Number(Reflect.get(next, counterName)) <= Number(Reflect.get(expected, counterName)),
      {
        path: ['next', counterName],
        error: `must be at most expected.${counterName}`,
      },
    ),
  );

/** The record as the operator saw it with `GET /v1/nameservice?alias=`, without the parts that never change. */
const seenRecord = () =>
  object(
    {
      kind: oneOf(RECORD_KINDS),
      commit: z.optional(expectedPointer()),
      index: expectedPointer(),
      status: expectedStatus(),
      config: object({ v: counter() }),
    },
    'a JSON object or null',
  ).check(
    z.refine(({ kind, commit }) => (kind === 'ledger') === (commit !== undefined), {
      path: ['commit'],
      error: 'must be given for a ledger, and not for a graph source',
    }),
  );
export type SeenRecord = z.infer<ReturnType<typeof seenRecord>>;

const repairOperations = () =>
  [
    lowers(
      operation('resetRef', { ref: oneOf(['commit', 'index']), expected: expectedPointer(), next: pointer() }),
      't',
    ),
    lowers(operation('resetStatus', statusChangeFields()), 'v'),
    lowers(operation('resetConfig', configChangeFields()), 'v'),
    operation('unretract', { expected: object({ kind: oneOf(RECORD_KINDS) }) }),
    operation('purge', { expected: z.nullable(seenRecord()) }),
  ] as const;

export const repairAliasInput = () => {
  const options = repairOperations();
  const ops = options.flatMap(({ def }) => def.shape.op.def.values);
  return z.discriminatedUnion('op', options, unknownOperation(ops));
};
export type RepairAliasInput = z.infer<ReturnType<typeof repairAliasInput>>;
