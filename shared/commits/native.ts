import type { Intent, Intents } from './intents.ts';
import type { CommitRequest } from './request.ts';

/**
 * Intents without records: only S3's conditions decide. For buckets in which every writer uses such conditions. A
 * replacement reads the object first, because the object may have a fence. A commit of a staged upload reads the object
 * first, because a repeat must see that the commit has landed even if the upload is gone.
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
