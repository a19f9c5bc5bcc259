import { cleanInput, readInput, reportInput } from '../../shared/expiry/inputs.ts';
import { KINDS } from '../../shared/expiry/kinds.ts';
import { cursor, limit, request } from './request.ts';

const reportId = () => ({ description: 'The report. The last complete one where it is not given.' });

export const reportRequest = request(reportInput(), {
  id: 'ReportRequest',
  description: 'Reports what has expired. It takes no fields.',
  fields: {},
});

export const readExpiredRequest = request(readInput(), {
  id: 'ReadExpiredRequest',
  description: 'Reads the rows of a report.',
  fields: {
    reportId: reportId(),
    kind: { description: 'Only records of this kind.' },
    limit: limit(),
    cursor: cursor(),
  },
});

export const cleanRequest = request(cleanInput(), {
  id: 'CleanRequest',
  description: 'Deletes reported records that are still the very ones reported.',
  fields: {
    reportId: reportId(),
    kinds: {
      description: 'Only records of these kinds.',
      type: 'array',
      minItems: 1,
      items: { type: 'string', enum: [...KINDS] },
    },
    olderThanSeconds: { description: 'Only records that expired at least so long ago, in seconds.' },
    dryRun: { description: 'Whether to say only what would be deleted.' },
    neverDeletable: { description: 'Whether to delete records too that the TTL of DynamoDB can never delete.' },
    cursor: cursor(),
  },
});
