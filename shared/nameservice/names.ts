import type { Names } from '../namespace.ts';

const STORED = ['alias', 'dependencies.*'];

export const ALIAS_NAMES: Names = {
  stored: STORED,
  answered: ['alias', 'current.alias', 'current.name', 'current.dependencies.*'],
};

export const ALIAS_LISTS: Names = {
  stored: STORED,
  listed: { unless: 'alias', of: 'stored' },
  answered: [
    ...(['alias', 'name', 'dependencies.*'] as const),
    ...(['records.*.alias', 'records.*.name', 'records.*.dependencies.*'] as const),
  ],
};
