import { type Group, SWITCH, TABLE } from './kinds.ts';

export const STORAGE: Group = {
  leasesTable: {
    default: '',
    description: 'An existing table to use for leases and permits. Empty: the stack creates holdfast-<stage>-leases.',
    ...TABLE,
    fixed: true,
  },
  waitersTable: {
    default: '',
    description: 'An existing table to use for waiters. Empty: the stack creates holdfast-<stage>-waiters.',
    ...TABLE,
    fixed: true,
  },
  commitsTable: {
    default: '',
    description: 'An existing table to use for commits. Empty: the stack creates holdfast-<stage>-commits.',
    ...TABLE,
    fixed: true,
  },
  nameserviceTable: {
    default: '',
    description: 'An existing table to use for the nameservice. Empty: the stack creates holdfast-<stage>-nameservice.',
    ...TABLE,
    fixed: true,
  },
  bucket: {
    default: '',
    description: 'An existing bucket to use. Empty: the stack creates holdfast-<stage>-<account>-<region>.',
    pattern: '^([a-z0-9.-]{3,63})?$',
    constraint: 'must be the name of a bucket, or empty',
    fixed: true,
  },
  deletionProtection: {
    default: 'true',
    description:
      'Whether DynamoDB refuses to delete the tables that this stack creates. pending: the deploy command sets true as its last step.',
    allowed: [...SWITCH, 'pending'],
  },
  noncurrentVersionDays: {
    default: '',
    description: 'After how many days S3 deletes a version of an object that a commit has replaced. Empty: never.',
    pattern: '^([1-9][0-9]{0,3})?$',
    constraint: 'must be a number of days, or empty',
  },
};
