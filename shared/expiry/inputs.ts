import * as z from 'zod/mini';
import { wholeNumber } from '../aws/variables.ts';
import { cursorText, flag, limit, listOf, oneOf, whole } from '../fields.ts';
import type { NameFields } from '../namespace.ts';
import { KINDS } from './kinds.ts';

// The schemas are functions, so that each Lambda function builds only its own.

const reportId = () => z.string('must be a string').check(z.regex(/^[\w-]{1,64}$/, 'must be the id of a report'));

export const reportInput = () => z.strictObject({});

export const readReportInput = () =>
  z.strictObject({
    reportId: z.optional(reportId()),
    kind: z.optional(oneOf(KINDS)),
    limit: z.optional(limit()),
    cursor: z.optional(cursorText()),
  });
export type ReadReportInput = z.infer<ReturnType<typeof readReportInput>>;

/** A hundred years. An age that was given in milliseconds by mistake is usually longer, and is refused. */
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
 * The payload of the clean-up that the event of a report starts, in a deployment that cleans automatically. It deletes
 * only records that DynamoDB would delete too, from the age AUTO_CLEAN_OLDER_THAN_SECONDS on.
 */
export function eventInput({ detail }: { detail: unknown }): unknown {
  const { reportId } = detail as { reportId?: unknown };
  const olderThanSeconds = wholeNumber('AUTO_CLEAN_OLDER_THAN_SECONDS', 86_400, process.env);
  return { reportId, olderThanSeconds, dryRun: false };
}

/**
 * The names in answers. The domain itself limits the rows to the namespace, because it depends on the kind of a row
 * which field has the name.
 */
const answered = [
  ...(['rows.*.key.key', 'rows.*.key.pk'] as const),
  ...(['deleted.records.*.key.key', 'deleted.records.*.key.pk'] as const),
  ...(['spared.records.*.key.key', 'spared.records.*.key.pk'] as const),
];

export const REPORT_NAME_FIELDS: NameFields = { answered };
