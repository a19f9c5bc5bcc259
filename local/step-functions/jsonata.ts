import jsonata from 'jsonata';
import { StatesError } from './errors.ts';
import type { Json } from './json.ts';

/** The value of `$states` in the expressions of a state. */
interface States {
  input: Json;
  context: Json;
}

const EXPRESSION = /^\{% (.+) %\}$/s;

/**
 * Evaluates a value of a JSONata state. Each string in `{% %}`, at any depth, is an expression.
 * @throws StatesError States.QueryEvaluationError
 */
export async function evaluate(value: Json, states: States): Promise<Json> {
  if (Array.isArray(value)) return Promise.all(value.map((item) => evaluate(item, states)));
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value).map(async ([name, item]) => [name, await evaluate(item, states)]);
    return Object.fromEntries(await Promise.all(entries));
  }
  const [, expression] = EXPRESSION.exec(String(value)) ?? [];
  return expression === undefined ? value : run(expression, states);
}

async function run(expression: string, states: States): Promise<Json> {
  try {
    const result: unknown = await jsonata(expression).evaluate(undefined, { states, parse: JSON.parse });
    if (result === undefined) throw new Error('the expression is undefined');
    return JSON.parse(JSON.stringify(result)); // this drops the properties that the library adds to arrays
  } catch (error) {
    throw new StatesError('States.QueryEvaluationError', `${expression}: ${(error as Error).message}`);
  }
}
