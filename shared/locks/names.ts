import type { Names } from '../lambda/names.ts';
import { SEALED_CURSORS as cursors } from '../lambda/sealed-cursor.ts';

export const LEASE_NAMES: Names = { stored: ['key'], answered: ['key', 'actual.key'] };

export const LEASE_LISTS: Names = {
  stored: ['key'],
  listed: { unless: 'key', of: 'stored' },
  cursors,
  answered: ['key', 'leases.*.key'],
};
