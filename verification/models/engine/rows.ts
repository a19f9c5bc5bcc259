import type { Condition, Config, Item, Op } from './types.ts';

// Conditions of both protocols, and the rows of their lines.

export const all = (...parts: (string | undefined)[]) =>
  parts
    .filter(Boolean)
    .map((part) => `(${part})`)
    .join(' AND ');
export const both = (...parts: Condition[]): Condition => ({
  condition: all(...parts.map(({ condition }) => condition)),
  values: Object.assign({}, ...parts.map(({ values }) => values)),
});

export const isCall = (row: Item): boolean => row.token === undefined;
export const deleteRow = (key: string, ticket: string): Op => ({ op: 'deleteRow', key, ticket });
/** A row whose time is over, unless its owner has come back meanwhile. */
export const deleteOverdue = (row: Item, config: Config): Op => ({
  ...deleteRow(row.key, row.ticket),
  condition: config.bugs?.overdueUnguarded ? undefined : 'deadline = :seen',
  values: { ':seen': row.deadline },
});
/** The row of a grant, by a call of its request, unless the request was withdrawn. */
export const leaveRow = (key: string, ticket: string): Op => ({
  ...deleteRow(key, ticket),
  condition: 'attribute_not_exists(cancelled_at)',
  values: {},
});
