import { choose, type Json, ref, sub } from './cloudformation.ts';
import type { ParameterName } from './parameters/kinds.ts';

/** The names of the tables and the bucket. If a parameter is empty, the template makes up the name. */
export const RESOURCE_NAMES: Record<ParameterName, Json> = {
  leasesTable: choose('CreateLeasesTable', sub(`holdfast-\${stage}-leases`), ref('leasesTable')),
  waitersTable: choose('CreateWaitersTable', sub(`holdfast-\${stage}-waiters`), ref('waitersTable')),
  commitsTable: choose('CreateCommitsTable', sub(`holdfast-\${stage}-commits`), ref('commitsTable')),
  nameserviceTable: choose('CreateNameserviceTable', sub(`holdfast-\${stage}-nameservice`), ref('nameserviceTable')),
  bucket: choose('CreateBucket', sub(`holdfast-\${stage}-\${AWS::AccountId}-\${AWS::Region}`), ref('bucket')),
};
