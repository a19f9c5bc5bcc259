import { beginInput, completeInput, forgetInput, MAX_ONCE_KEY_BYTES, readOnceInput } from '../../shared/once/inputs.ts';
import { MEANING } from '../meanings.ts';
import { bytes, cursor, json, limit, request } from './request.ts';

const key = () => ({
  description:
    'The name of the work, such as `nightly-report`: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent.',
  ...bytes(MAX_ONCE_KEY_BYTES),
});

export const onceBeginRequest = request(beginInput(), {
  id: 'OnceBeginRequest',
  description: 'Begins the work for a slot of a key.',
  fields: {
    key: key(),
    holder: { description: MEANING.holder, ...bytes(256) },
    slot: {
      description:
        'The name of the slot, such as the time for which a schedule started the program. Slots are ordered as text, by their bytes. With `per`, send a `slot` only if `retryWith` of an earlier answer has one. Without `slot` and `per`, the slot is `-`, the only slot of the key.',
      ...bytes(256),
    },
    per: {
      description:
        'For work that runs once in a period: the length of the period, a number and `s`, `m`, `h`, `d` or `w`, at most 366 days. The slot is the current period by the clock of the service, counted from 1970-01-01T00:00Z. Its name is a date for whole days, and an instant otherwise. Weeks begin on Monday, and have the name of their first week, such as `2026-W48`. A period begins 2.5 seconds early, or a tenth of the period if that is less.',
    },
    zone: {
      description:
        'The time zone of `per`, an IANA name such as `Europe/Berlin`. Days and weeks then begin at midnight of that zone. The default is UTC. Only with a `per` of days or weeks.',
    },
    ttlSeconds: { description: 'How long the caller may work without a heartbeat, in seconds.' },
    waitSeconds: {
      description:
        'How long the call waits while another caller works for the slot, in seconds. A deployment may allow less (`maxWaitSeconds`).',
    },
    requestId: {
      description: `${MEANING.requestId} A retry with the same id, holder and authenticated caller receives the grant of the first try while that grant lasts.`,
      ...bytes(256),
    },
    keepSeconds: {
      description:
        'How long the result is kept after the work, in seconds: at least `ttlSeconds`, and at least two periods of `per`. The default is a day, or this minimum if it is longer.',
    },
    inputHash: {
      description:
        'A text that differs if the input of the work differs, such as a hash of the input. If the slot is done with another `inputHash`, the call fails with `Conflict`, so that no caller receives the result of other input.',
      ...bytes(128),
    },
    data: json(`${MEANING.data} Up to 4 KiB and 32 levels.`),
    execution: {
      description:
        'The ARN of the execution that will do the work. When it ends, the grant ends too. It must be an execution of a Standard workflow or of a durable function, in the account and region of the deployment.',
      ...bytes(320),
    },
  },
});

export const onceCompleteRequest = request(completeInput(), {
  id: 'OnceCompleteRequest',
  description: 'Stores the result of the slot for which the caller works, and ends the grant.',
  fields: {
    key: key(),
    leaseId: { description: `${MEANING.leaseId} From the answer of \`begin\`.`, ...bytes(256) },
    result: json(
      'The result that every later caller of the slot receives: JSON of up to 4 KiB and 32 levels. The default is null.',
    ),
  },
});

export const onceForgetRequest = request(forgetInput(), {
  id: 'OnceForgetRequest',
  description: 'Forgets the slot that is done.',
  fields: { key: key(), fence: { description: 'The fence of the key that the operator has read.' } },
});

export const readOnceRequest = request(readOnceInput(), {
  id: 'ReadOnceRequest',
  description: 'Reads one key of `once`, or a page of these keys.',
  fields: {
    key: { ...key(), description: `${key().description} Without a key, the answer is a page of keys.` },
    prefix: { description: 'Only keys that begin with this text. Not with `key`.', ...bytes(MAX_ONCE_KEY_BYTES) },
    limit: { ...limit(), description: `${limit().description} Not with \`key\`.` },
    cursor: { ...cursor(), description: `${cursor().description} Not with \`key\`.` },
  },
});
