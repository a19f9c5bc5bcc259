import type { Names } from '../namespace.ts';

export const COMMIT_NAMES: Names = {
  stored: ['fence.key', 'expectedFence.key'],
  paths: ['path'],
  answered: ['fence.key'],
};

export const COMMIT_LISTS: Names = { listed: { of: 'paths' } };
