import { beginInput, completeInput, forgetInput, MOST_KEY_BYTES, readOnceInput } from '../../shared/once/inputs.ts';
import { MEANING } from '../meanings.ts';
import { bytes, cursor, json, limit, request } from './request.ts';

const key = () => ({
  description:
    'The name of the work: 1 to 1,010 bytes of UTF-8 that do not begin with `holdfast:`. A lease of the same key is independent.',
  ...bytes(MOST_KEY_BYTES),
});

export const onceBeginRequest = request(beginInput(), {
  id: 'OnceBeginRequest',
  description: 'Begins the work for a slot of a key.',
  fields: {
    key: key(),
    holder: { description: MEANING.holder, ...bytes(256) },
    slot: {
      description:
        'The name of the slot, such as the time for which a schedule started the program. Slots compare as text, by their bytes. With `per`, send only the `slot` that `retryWith` of an earlier call had. Without `slot` and `per`, the slot is `-`, the only slot of the key.',
      ...bytes(256),
    },
    per: {
      description:
        'The length of a slot: a number and `s`, `m`, `h`, `d` or `w`, at most 366 days. The slot is the present period by the clock of the service, counted from 1970-01-01T00:00Z: a date for whole days, otherwise an instant. Weeks begin on Monday, and have the name of their first week, such as `2026-W48`. A period begins 2.5 seconds early, or a tenth of the period if that is less.',
    },
    zone: {
      description:
        'The time zone of `per`, an IANA name such as `Europe/Berlin`. Days and weeks then begin at midnight of that zone. The default is UTC. Only with a `per` of days or weeks.',
    },
    ttlSeconds: { description: 'How long the caller may work without a heartbeat, in seconds.' },
    waitSeconds: {
      description:
        'How long the call waits while another caller works for the slot, in seconds. The parameter `maxWaitSeconds` of a deployment may cut the wait short.',
    },
    requestId: {
      description: `${MEANING.requestId} A retry with the same id, holder and authenticated caller receives the grant of the first try while that grant lasts.`,
      ...bytes(256),
    },
    keepSeconds: {
      description:
        'How long the result is kept after the work, in seconds: at least `ttlSeconds`, and two periods of `per`. The default is a day, or that minimum if the minimum is longer.',
    },
    inputHash: {
      description:
        'A text that differs if the input of the work differs. If the slot is done with another `inputHash`, the call fails with `Conflict`.',
      ...bytes(128),
    },
    data: json(`${MEANING.data} Up to 4 KiB and 32 levels deep.`),
    execution: {
      description:
        'The ARN of the execution that will work, of a Standard workflow or of a durable function, in the account and region of the deployment. The end of the execution ends the grant.',
      ...bytes(320),
    },
  },
});

export const onceCompleteRequest = request(completeInput(), {
  id: 'OnceCompleteRequest',
  description: 'Stores the result of the slot for which the caller works, and ends the grant.',
  fields: {
    key: key(),
    leaseId: { description: `${MEANING.leaseId} From the response of \`begin\`.`, ...bytes(256) },
    result: json(
      'What every later caller of the slot receives: up to 4 KiB of JSON and 32 levels deep. The default is null.',
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
  description: 'Reads one key of `once`, or a page of such keys.',
  fields: {
    key: { ...key(), description: `${key().description} Without a key, the answer is a page of keys.` },
    prefix: { description: 'Only keys that begin with this text. Not with `key`.', ...bytes(MOST_KEY_BYTES) },
    limit: { ...limit(), description: `${limit().description} Not with \`key\`.` },
    cursor: { ...cursor(), description: `${cursor().description} Not with \`key\`.` },
  },
});
