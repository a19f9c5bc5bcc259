import type { Claimant } from './intents.ts';

/**
 * Without records: S3's own conditions decide alone, for buckets that only this service and writers with such
 * conditions write. A replacement looks first, because it must learn whether the object is fenced; a staged upload,
 * because its source may be gone when it is repeated.
 */
export const nativeClaims: Claimant = ({ expectedEtag, body }) => ({
  looksFirst: expectedEtag !== null || 'uploadId' in body,
  claim: async () => ({ state: 'won', sendBefore: Number.POSITIVE_INFINITY, abandon: async () => {} }),
  triedBefore: async () => false,
});
