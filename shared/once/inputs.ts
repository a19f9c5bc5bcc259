import * as z from 'zod/mini';
import { callersName, json, must, name, whole } from '../fields.ts';
import { keyOrPage } from '../listings/key-or-page.ts';
import { executionArn } from '../locks/calls/inputs.ts';
import type { NameFields } from '../namespace.ts';
import { MAX_PERIOD_SECONDS } from '../periods.ts';
import { ONCE_PERIOD_RULE, termsFault, ZONE_RULE } from './terms.ts';

/** The highest number of bytes of a key. With its prefix, the key of the record then has at most 1,024. */
export const MAX_ONCE_KEY_BYTES = 1010;

const key = () => callersName(MAX_ONCE_KEY_BYTES);

export const beginInput = () =>
  z
    .strictObject({
      key: key(),
      holder: name(256),
      /**
       * The slot. Without `slot` and `per`, the key has a single slot. With `per`, this is the slot in `retryWith` of
       * an earlier call.
       */
      slot: z.optional(name(256)),
      /** The length of slots that are periods by the clock of the service. */
      per: z.optional(
        z.string(must('a string')).check(z.regex(/^[1-9][0-9]{0,7}[smhdw]$/, { error: ONCE_PERIOD_RULE, abort: true })),
      ),
      zone: z.optional(
        z.string(must('a string')).check(z.regex(/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/, { error: ZONE_RULE, abort: true })),
      ),
      ttlSeconds: z._default(whole(2, 86_400), 60),
      waitSeconds: z._default(whole(0, 20), 0),
      /** Identifies one acquisition. A repeat receives the same grant. */
      requestId: z.optional(name(256)),
      keepSeconds: z.optional(whole(2, 2 * MAX_PERIOD_SECONDS)),
      /** A text that changes with the input of the work. */
      inputHash: z.optional(name(128)),
      /** What every reader sees while the caller works. */
      data: z.optional(json()),
      /** The ARN of the execution that works. When the execution ends, the slot becomes free. */
      execution: z.optional(executionArn()),
    })
    .check(
      z.check((ctx) => {
        const [field, message] = termsFault(ctx.value) ?? [];
        if (field) ctx.issues.push({ code: 'custom', path: [field], message, input: field });
      }),
    );
export type BeginInput = z.infer<ReturnType<typeof beginInput>>;

export const completeInput = () =>
  z.strictObject({
    key: key(),
    leaseId: name(256),
    /** What later callers of the slot receive. */
    result: z.optional(json()),
  });
export type CompleteInput = z.infer<ReturnType<typeof completeInput>>;

export const forgetInput = () => z.strictObject({ key: key(), fence: whole(0, Number.MAX_SAFE_INTEGER) });
export type ForgetInput = z.infer<ReturnType<typeof forgetInput>>;

export const readOnceInput = () => keyOrPage(MAX_ONCE_KEY_BYTES);
export type ReadOnceInput = z.infer<ReturnType<typeof readOnceInput>>;

export const ONCE_NAME_FIELDS: NameFields = { stored: ['key'], answered: ['key', 'actual.key'] };
