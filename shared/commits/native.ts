import type { Intent, Intents } from './intents.ts';
import type { CommitRequest } from './request.ts';

/**
 * Without records: S3's own conditions decide alone, for buckets that only this service and writers with such
 * conditions write. A replacement looks first, because it must learn whether the object is fenced. A staged upload looks
 * first, because its source may be gone when it is repeated.
 */
export class UnrecordedIntents implements Intents {
  readonly readsFirst: boolean;

  constructor({ expectedEtag, body }: CommitRequest) {
    this.readsFirst = expectedEtag !== null || 'uploadId' in body;
  }

  async declare(): Promise<Intent> {
    return { won: true, sendBefore: Number.POSITIVE_INFINITY, abandon: async () => {} };
  }

  async triedBefore(): Promise<boolean> {
    return false;
  }
}
