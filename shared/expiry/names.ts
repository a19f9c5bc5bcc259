import type { Names } from '../namespace.ts';

/** Rows are confined by the domain, which knows what each one is about. */
const answered = [
  ...(['rows.*.key.key', 'rows.*.key.pk'] as const),
  ...(['deleted.records.*.key.key', 'deleted.records.*.key.pk'] as const),
  ...(['spared.records.*.key.key', 'spared.records.*.key.pk'] as const),
];

export const REPORT_NAMES: Names = { answered };
