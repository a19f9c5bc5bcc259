import type { Names } from '../namespace.ts';

export const LEASE_NAMES: Names = { stored: ['key'], answered: ['key', 'actual.key'] };

export const LEASE_LISTS: Names = {
  stored: ['key'],
  listed: { unless: 'key', of: 'stored' },
  answered: ['key', 'leases.*.key'],
};
