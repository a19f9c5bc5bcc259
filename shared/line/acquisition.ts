import { text } from '../aws/attributes.ts';
import { all, type Condition } from '../aws/condition.ts';

/** One acquisition: the request of a holder, sent by an authenticated caller. */
export interface Acquisition {
  requestId: string;
  holder: string;
  principal?: string | undefined;
}

/** Callers can read other request ids. So only request, holder and authenticated caller together prove whose a record or a ticket is. */
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

/** True if a record or a ticket that was read belongs to this acquisition: the same rule as `isOf`. */
export const isOwnOf = (record: Named, { requestId, holder, principal }: Named): boolean =>
  record.requestId === requestId && record.holder === holder && record.principal === principal;

/** How often a first try starts again because a duplicate call has changed the grant of the request. Each duplicate usually changes the grant once. */
export const MAX_DUPLICATE_CONFLICTS = 20;
