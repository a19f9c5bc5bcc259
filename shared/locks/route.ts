import type { Call } from '../aws/call.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { ONCE_IDS } from '../leases/memory.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type Kind, OtherKind, otherKind } from '../line/kind.ts';

type Run<Input, Answer> = (input: Input, call: Call) => Promise<Answer>;

/** The code of a call for each kind. */
interface Meanings<Input, OfLease, OfPermit> {
  lease(dependencies: LeaseDependencies): Run<Input, OfLease>;
  /** Imports what only pools need. Each call writes this import itself, so that no function bundles the code of another. */
  permit(): Promise<(dependencies: LeaseDependencies) => Run<NoInfer<Input>, OfPermit>>;
}

/** Passes each request to the code of a lease, or to the code of a pool, by what the request says. @throws OtherKind if the record has the other kind */
export function byRequest<Input, OfLease, OfPermit>(
  dependencies: LeaseDependencies,
  { isForPermit, lease, permit }: Meanings<Input, OfLease, OfPermit> & { isForPermit(input: NoInfer<Input>): boolean },
): Run<Input, OfLease | OfPermit> {
  const forLease = lease(dependencies);
  return async (input, call) => {
    if (!isForPermit(input)) return forLease(input, call);
    const forPermit = await permit();
    return forPermit(dependencies)(input, call);
  };
}

interface Guess<Input> {
  /** The kind that the record probably has. The code of that kind is tried first. */
  likely?(input: Input): Kind;
}

/**
 * Passes each request to the code of a lease, or to the code of a pool if that is `likely`. If that code meets a record of the other kind, passes the
 * request to the code of that kind.
 * @throws HoldfastError Unavailable if callers keep changing the kind of the key; OutcomeUnknown if a write without an answer may have landed before the key changed its kind
 */
export function byRecord<Input extends { key: string }, OfLease, OfPermit>(
  dependencies: LeaseDependencies,
  { lease, permit, likely = () => 'lease' }: Meanings<Input, OfLease, OfPermit> & Guess<NoInfer<Input>>,
): Run<Input, OfLease | OfPermit> {
  const forLease = lease(dependencies);
  const forPermit: Run<Input, OfPermit> = async (input, call) => (await permit())(dependencies)(input, call);
  return async (input, call) => {
    const first = likely(input) === 'lease' ? 0 : 1;
    for (let changes = 0; ; changes++) {
      const run: Run<Input, OfLease | OfPermit> = (first + changes) % 2 === 0 ? forLease : forPermit;
      try {
        return await run(input, call);
      } catch (error) {
        // The write may have landed, and the other kind does not remember what the write ended.
        if (error instanceof OtherKind && error.unanswered)
          throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key: input.key });
        otherKind(error, changes);
      }
    }
  };
}

/** A request with a limit or a mode is for a permit. */
export const hasTerms = ({ limit, mode }: { limit?: number | undefined; mode?: string | undefined }): boolean =>
  limit !== undefined || mode !== undefined;

/** Passes a request with a lease id of `once` to that record, by the code of a lease, and all others to `run`. */
export function byLeaseId<Input extends { key: string; leaseId: string }, Answer extends { key: string }>(
  ofLease: Run<Input, Answer>,
  run: Run<Input, Answer>,
): Run<Input, Answer> {
  return async (input, call) => {
    if (!input.leaseId.startsWith(ONCE_IDS)) return run(input, call);
    const { onRow } = await import('../once/row-key.ts');
    return onRow(ofLease)(input, call);
  };
}

/** Permits have lease ids of their own (permits/identity.ts). Those of leases are UUIDs. */
export const hasPermitId = ({ leaseId }: { leaseId: string }): boolean => /^[bp]\./.test(leaseId);
