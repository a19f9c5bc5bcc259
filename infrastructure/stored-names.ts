import { choose, type Json, ref, sub } from './cloudformation.ts';
import type { ParameterName } from './parameters/kinds.ts';

/** The names that the template makes up where a parameter is empty. */
export const NAMES: Record<ParameterName, Json> = {
  leasesTable: choose('CreateLeasesTable', sub(`holdfast-\${stage}-leases`), ref('leasesTable')),
  waitersTable: choose('CreateWaitersTable', sub(`holdfast-\${stage}-waiters`), ref('waitersTable')),
  commitsTable: choose('CreateCommitsTable', sub(`holdfast-\${stage}-commits`), ref('commitsTable')),
  nameserviceTable: choose('CreateNameserviceTable', sub(`holdfast-\${stage}-nameservice`), ref('nameserviceTable')),
  bucket: choose('CreateBucket', sub(`holdfast-\${stage}-\${AWS::AccountId}-\${AWS::Region}`), ref('bucket')),
};
