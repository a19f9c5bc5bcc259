import { type Group, SWITCH, TABLE } from './kinds.ts';

export const STORAGE: Group = {
  leasesTable: {
    default: '',
    description: 'An existing table of leases and permits to use. Empty: holdfast-<stage>-leases is created.',
    ...TABLE,
    fixed: true,
  },
  waitersTable: {
    default: '',
    description: 'An existing table of waiters to use. Empty: holdfast-<stage>-waiters is created.',
    ...TABLE,
    fixed: true,
  },
  commitsTable: {
    default: '',
    description: 'An existing table of commits to use. Empty: holdfast-<stage>-commits is created.',
    ...TABLE,
    fixed: true,
  },
  nameserviceTable: {
    default: '',
    description: 'An existing table of the nameservice to use. Empty: holdfast-<stage>-nameservice is created.',
    ...TABLE,
    fixed: true,
  },
  bucket: {
    default: '',
    description: 'An existing bucket to use. Empty: holdfast-<stage>-<account>-<region> is created.',
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
    description:
      'Days after which S3 deletes versions of objects that a commit replaced. Empty: it keeps them without end.',
    pattern: '^([1-9][0-9]{0,3})?$',
    constraint: 'must be a number of days, or empty',
  },
};
