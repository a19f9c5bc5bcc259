import { text } from '../aws/attributes.ts';
import { all, type Condition } from '../aws/condition.ts';

/** One acquisition: the request of a holder, sent by an authenticated caller. */
export interface Acquisition {
  requestId: string;
  holder: string;
  principal?: string | undefined;
}

/** Callers can read the ids of others. So only the request, the holder and the authenticated caller together prove a record or a ticket. */
export const isOf = ({ requestId, holder, principal }: Acquisition): Condition =>
  all(
    {
      expression: 'request_id = :request AND holder = :holder',
      values: { ':request': text(requestId), ':holder': text(holder) },
    },
    principal === undefined
      ? { expression: 'attribute_not_exists(principal)' }
      : { expression: 'principal = :principal', values: { ':principal': text(principal) } },
  );

type Named = { [Field in keyof Acquisition]?: string | undefined };

/** Whether a record or a ticket, as it was read, belongs to this acquisition: the same rule as `isOf`. */
export const isOwnOf = (record: Named, { requestId, holder, principal }: Named): boolean =>
  record.requestId === requestId && record.holder === holder && record.principal === principal;

/** A first try meets the grant of its request again if a duplicate call has changed it first. Each of them does so once, as a rule. */
export const MAX_DUPLICATE_CONFLICTS = 20;
