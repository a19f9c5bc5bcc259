import * as z from 'zod/mini';
import { wholeNumber } from '../aws/variables.ts';
import { cursorText, flag, limit, listOf, oneOf, whole } from '../fields.ts';
import type { NameFields } from '../namespace.ts';
import { KINDS } from './kinds.ts';

// Functions and not constants, so that each Lambda function builds its own schema alone.

const reportId = () => z.string('must be a string').check(z.regex(/^[\w-]{1,64}$/, 'must be the id of a report'));

export const reportInput = () => z.strictObject({});

export const readInput = () =>
  z.strictObject({
    reportId: z.optional(reportId()),
    kind: z.optional(oneOf(KINDS)),
    limit: z.optional(limit()),
    cursor: z.optional(cursorText()),
  });
export type ReadInput = z.infer<ReturnType<typeof readInput>>;

/** A hundred years. An age in milliseconds is longer, and is refused. */
const MAX_SECONDS = 3_155_760_000;

export const cleanInput = () =>
  z.strictObject({
    reportId: z.optional(reportId()),
    kinds: z.optional(
      listOf(oneOf(KINDS), KINDS.length, 'kinds').check(z.refine((kinds) => kinds.length > 0, 'must not be empty')),
    ),
    olderThanSeconds: z._default(whole(0, MAX_SECONDS), 3600),
    dryRun: z._default(flag(), true),
    neverDeletable: z._default(flag(), false),
    cursor: z.optional(cursorText()),
  });
export type CleanInput = z.infer<ReturnType<typeof cleanInput>>;

/**
 * What the event of a report asks of the clean-up, in a deployment that cleans automatically: only rows that DynamoDB would
 * delete too, from the age AUTO_CLEAN_OLDER_THAN_SECONDS on.
 */
export function eventInput({ detail }: { detail: unknown }): unknown {
  const { reportId } = detail as { reportId?: unknown };
  const olderThanSeconds = wholeNumber('AUTO_CLEAN_OLDER_THAN_SECONDS', 86_400, process.env);
  return { reportId, olderThanSeconds, dryRun: false };
}

/** Rows are confined by the domain, which knows what each one is about. */
const answered = [
  ...(['rows.*.key.key', 'rows.*.key.pk'] as const),
  ...(['deleted.records.*.key.key', 'deleted.records.*.key.pk'] as const),
  ...(['spared.records.*.key.key', 'spared.records.*.key.pk'] as const),
];

export const REPORT_NAME_FIELDS: NameFields = { answered };
