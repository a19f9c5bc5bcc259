import { cleanInput, readReportInput, reportInput } from '../../shared/expiry/inputs.ts';
import { KINDS } from '../../shared/expiry/kinds.ts';
import { MEANING } from '../meanings.ts';
import { cursor, limit, request } from './request.ts';

const reportId = () => ({ description: `${MEANING.reportId} Without it, the last complete report.` });

export const reportRequest = request(reportInput(), {
  id: 'ReportRequest',
  description: 'Reports what has expired. The call takes no fields.',
  fields: {},
});

export const readExpiredRequest = request(readReportInput(), {
  id: 'ReadExpiredRequest',
  description: 'Reads a report.',
  fields: {
    reportId: reportId(),
    kind: { description: 'Only records of this kind.' },
    limit: limit(),
    cursor: cursor(),
  },
});

export const cleanRequest = request(cleanInput(), {
  id: 'CleanRequest',
  description: 'Deletes reported records that have not changed since the report.',
  fields: {
    reportId: reportId(),
    kinds: {
      description: 'Only records of these kinds.',
      type: 'array',
      minItems: 1,
      items: { type: 'string', enum: [...KINDS] },
    },
    olderThanSeconds: { description: 'Only records that expired at least this long ago, in seconds.' },
    dryRun: { description: 'If true, the call deletes nothing, and answers what it would delete.' },
    neverDeletable: {
      description: "If true, the call also deletes records that DynamoDB's TTL can never delete.",
    },
    cursor: cursor(),
  },
});
