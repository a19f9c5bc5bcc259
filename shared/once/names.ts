import type { Names } from '../namespace.ts';

export const ONCE_NAMES: Names = { stored: ['key'], answered: ['key', 'actual.key'] };

export const ONCE_LISTS: Names = {
  stored: ['key'],
  listed: { unless: 'key', of: 'stored' },
  answered: ['key', 'keys.*.key'],
};
