import { isDeepStrictEqual } from 'node:util';
import type { Item } from './dynamodb.ts';

/**
 * A condition of DynamoDB with the names and values that it speaks of, and no others: DynamoDB refuses a request that
 * brings a name or a value which no expression uses.
 */
export interface Condition {
  /** Without outer parentheses: DynamoDB refuses doubled ones. */
  expression: string;
  names?: Record<string, string>;
  values?: Item;
}

/** */
export const all = (...conditions: [Condition, ...Condition[]]): Condition => joined(' AND ', conditions);

/** */
export const any = (...conditions: [Condition, ...Condition[]]): Condition => joined(' OR ', conditions);

/** */
export const not = ({ expression, ...rest }: Condition): Condition => ({ expression: `NOT (${expression})`, ...rest });

/** A condition whose attributes have a # before their names, as many of them are reserved words. */
export const aliased = (expression: string, values?: Item): Condition => ({
  expression,
  names: Object.fromEntries([...expression.matchAll(/#(\w+)/g)].map(([alias, name]) => [alias, String(name)])),
  ...(values && { values }),
});

/**
 * The condition's part of a command, together with the names and values of its other expressions.
 * @throws Error where one placeholder would stand for two things: a mistake of ours, which DynamoDB could not see
 */
export function conditionFields(condition: Condition, more: Pick<Condition, 'names' | 'values'> = {}) {
  const names = merged(condition.names, more.names);
  const values = merged(condition.values, more.values);
  return {
    ConditionExpression: condition.expression,
    ...(names && { ExpressionAttributeNames: names }),
    ...(values && { ExpressionAttributeValues: values }),
  };
}

function joined(operator: string, conditions: [Condition, ...Condition[]]): Condition {
  const [first, ...others] = conditions;
  if (others.length === 0) return first;
  const names = conditions.map((condition) => condition.names).reduce(merged, undefined);
  const values = conditions.map((condition) => condition.values).reduce(merged, undefined);
  return {
    expression: conditions.map(({ expression }) => `(${expression})`).join(operator),
    ...(names && { names }),
    ...(values && { values }),
  };
}

function merged<T>(
  left: Record<string, T> | undefined,
  right: Record<string, T> | undefined,
): Record<string, T> | undefined {
  if (!left || !right) return left ?? right;
  for (const [placeholder, value] of Object.entries(right))
    if (placeholder in left && !isDeepStrictEqual(left[placeholder], value))
      throw new Error(`${placeholder} stands for two things in one expression`);
  return { ...left, ...right };
}
