import type { Item } from './dynamodb.ts';

/**
 * A condition of DynamoDB with exactly the names and values that it uses. DynamoDB refuses a request with a name or a
 * value that no expression uses.
 */
export interface Condition {
  /** Does not have outer parentheses: `all` and `any` add them, and DynamoDB refuses doubled ones. */
  expression: string;
  names?: Record<string, string>;
  values?: Item;
}

export const all = (...conditions: [Condition, ...Condition[]]): Condition => joined(' AND ', conditions);

export const any = (...conditions: [Condition, ...Condition[]]): Condition => joined(' OR ', conditions);

export const not = ({ expression, ...rest }: Condition): Condition => ({ expression: `NOT (${expression})`, ...rest });

/** A condition whose expression writes attribute names with a #, because many names are reserved words of DynamoDB. */
export const aliased = (expression: string, values?: Item): Condition => ({
  expression,
  names: Object.fromEntries([...expression.matchAll(/#(\w+)/g)].map(([alias, name]) => [alias, String(name)])),
  ...(values && { values }),
});

/**
 * The fields of a command for its condition, with the names and values of its other expressions too.
 * @throws Error if one placeholder would stand for two values: a mistake in the code that DynamoDB could not detect
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

/** DynamoDB refuses an empty map of names or values. */
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

/** Compares JSON texts, because importing node:util would take 3 ms of every cold start. */
const isSameJson = (left: unknown, right: unknown): boolean =>
  left === right || JSON.stringify(left) === JSON.stringify(right);
