import { type Entry, isUnknown } from '../history.ts';

export interface DeletedRecord {
  kind: string;
  key: Record<string, string>;
  expiredAt: string;
}

interface Cleaned {
  deleted: { records: DeletedRecord[] };
  stoppedBy: string | null;
}

/** What the answer of a clean-up says that it deleted. */
export const deletedBy = ({ outcome, body, input }: Entry): DeletedRecord[] =>
  outcome === 'ok' && input.dryRun !== true ? (body as unknown as Cleaned).deleted.records : [];

/** The clean-ups that deleted the record of a key, or may have. */
export const cleaningsOf = (entries: readonly Entry[], key: string): Entry[] =>
  entries
    .filter(({ call, input }) => call === 'clean' && input.dryRun !== true)
    .flatMap((entry) => cleaningOf(entry, key));

function cleaningOf(entry: Entry, key: string): Entry[] {
  const deleted = deletedBy(entry).some((record) => record.kind.endsWith('Lease') && record.key.key === key);
  const isCut = entry.outcome === 'ok' && (entry.body as unknown as Cleaned).stoppedBy !== null;
  const mayHave = isUnknown(entry) || isCut || entry.outcome !== 'ok' || entry.faults.length > 0;
  if (!deleted && !mayHave) return [];
  return [{ ...entry, input: { key }, body: { deleted } }];
}
