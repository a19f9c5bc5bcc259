import { integer, text } from '../aws/attributes.ts';
import { hasStatus } from './conditions.ts';
import type { StatusInput } from './inputs.ts';
import { RECORD_KINDS } from './items.ts';
import { type Status, statusOf } from './record.ts';
import { asRead, mapAttribute } from './values.ts';
import type { VersionedChange } from './versioned.ts';

export function statusChange({ expected, next }: Pick<StatusInput, 'expected' | 'next'>): VersionedChange<Status> {
  const { state, v } = next;
  const extra = asRead(next.extra);
  const hasExtra = Object.keys(extra).length > 0;
  const update = {
    concern: 'status' as const,
    condition: hasStatus(expected),
    set: `#status = :state, status_v = :v${hasExtra ? ', status_meta = :extra' : ''}`,
    remove: hasExtra ? [] : ['status_meta'],
    names: { '#status': 'status' },
    values: { ':state': text(state), ':v': integer(v), ...(hasExtra && { ':extra': mapAttribute(extra) }) },
    kinds: RECORD_KINDS,
  };
  return { what: 'status', wanted: { state, v, extra }, update, read: statusOf };
}
