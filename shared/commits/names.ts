import type { Names } from '../lambda/names.ts';
import { SEALED_CURSORS as cursors } from '../lambda/sealed-cursor.ts';

export const COMMIT_NAMES: Names = {
  stored: ['fence.key', 'expectedFence.key'],
  paths: ['path'],
  answered: ['fence.key'],
};

export const COMMIT_LISTS: Names = { listed: { of: 'paths' }, cursors };
