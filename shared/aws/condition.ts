import type { Item } from './dynamodb.ts';

/**
 * A condition of DynamoDB with the names and values that it uses, and no others: DynamoDB refuses a request with a name or
 * a value that no expression uses.
 */
export interface Condition {
  /** Without outer parentheses: DynamoDB refuses doubled ones. */
  expression: string;
  names?: Record<string, string>;
  values?: Item;
}

/** True if all of the conditions are. */
export const all = (...conditions: [Condition, ...Condition[]]): Condition => joined(' AND ', conditions);

/** True if any of the conditions is. */
export const any = (...conditions: [Condition, ...Condition[]]): Condition => joined(' OR ', conditions);

/** True if the condition is not. */
export const not = ({ expression, ...rest }: Condition): Condition => ({ expression: `NOT (${expression})`, ...rest });

/** A condition that writes each attribute name with a #, because many names are reserved words. */
export const aliased = (expression: string, values?: Item): Condition => ({
  expression,
  names: Object.fromEntries([...expression.matchAll(/#(\w+)/g)].map(([alias, name]) => [alias, String(name)])),
  ...(values && { values }),
});

/**
 * The condition's part of a command, together with the names and values of its other expressions.
 * @throws Error if one placeholder would stand for two values: a programming error that DynamoDB could not detect
 */
export function conditionFields(condition: Condition, more: Pick<Condition, 'names' | 'values'> = {}) {
  const names = merged(condition.names, more.names);
  const values = merged(condition.values, more.values);
  return {
    ConditionExpression: condition.expression,
    ...(hasAny(names) && { ExpressionAttributeNames: names }),
    ...(hasAny(values) && { ExpressionAttributeValues: values }),
  };
}

/** DynamoDB refuses empty ones. */
const hasAny = (placeholders: object = {}): boolean => Object.keys(placeholders).length > 0;

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
    if (placeholder in left && !isSameJson(left[placeholder], value))
      throw new Error(`${placeholder} stands for two things in one expression`);
  return { ...left, ...right };
}

/** Compares by JSON, because an import of node:util loads many modules of Node, and takes 3 ms of every cold start. */
const isSameJson = (left: unknown, right: unknown): boolean =>
  left === right || JSON.stringify(left) === JSON.stringify(right);
