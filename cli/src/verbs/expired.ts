import { setTimeout as sleep } from 'node:timers/promises';
import type { components } from '../../../clients/typescript/src/contract.ts';
import type { AnswerOf } from '../../../clients/typescript/src/transport.ts';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import type { Option } from '../syntax.ts';
import type { Verb } from '../verb.ts';
import { agoText, duration } from './texts.ts';

type Kind = components['schemas']['ExpiredRecord']['kind'];

const KINDS: readonly Kind[] = [
  'abandonedLease',
  'releasedLease',
  'abandonedPermit',
  'holderEnded',
  'holderUnknown',
  'abandonedRun',
  'endedRun',
  'commit',
  'firstSight',
  'waiter',
  'upload',
  'nameserviceRow',
];

const REPORT: Option = { value: 'ID', help: 'the report to use (the last complete one)' };

/** How many times a clean-up without progress is tried again, and after how many milliseconds. */
const MAX_TRIES = 5;
const PAUSE_MS = 1000;

export const report: Verb = {
  summary: 'create a report of expired records now',
  usage: '',
  words: [0, 0],
  options: {},
  example: 'holdfast report',
  async run({ output, connect }) {
    const { progress } = output;
    progress.show('scanning tables and bucket');
    const answer = await connect().call('report', {});
    progress.end();
    if (output.isJson) {
      output.json(answer);
      return 0;
    }
    const { reportId, complete, stoppedBy, scanned, readUnits, neverDeletable, location } = answer;
    output.fields({ reportId, complete, stoppedBy, scanned, readUnits, neverDeletable, location });
    output.line('');
    output.table(
      ['KIND', 'EXPIRED', 'OLDEST'],
      Object.entries(answer.expired).map(([kind, { count, oldestAgeSeconds }]) => [
        kind,
        count,
        count > 0 ? duration(oldestAgeSeconds * 1000) : null,
      ]),
    );
    return 0;
  },
};

export const expired: Verb = {
  summary: 'list the records of the last report',
  usage: '',
  words: [0, 0],
  options: { kind: { value: 'KIND', help: 'only records of this kind', choices: KINDS }, report: REPORT },
  example: 'holdfast expired --kind abandonedLease',
  async run({ arguments: args, output, connect }) {
    const kind = args.text('kind') as Kind | undefined;
    const reportId = args.text('report');
    const filter = { ...(kind && { kind }), ...(reportId && { reportId }) };
    const rows = [];
    let finishedAt: string | null = null;
    const rowsOf = (page: AnswerOf<'readExpired'>) => {
      finishedAt = page.finishedAt;
      return page.rows;
    };
    for await (const row of connect().rows('readExpired', filter, rowsOf)) {
      if (output.isJson) output.json(row);
      else rows.push(row);
    }
    if (output.isJson) return 0;
    output.table(
      ['KIND', 'RECORD', 'HOLDER', 'EXPIRED', 'AGE', 'WHY'],
      rows.map(({ kind, key, holder, expiredAt, reason }) => [
        kind,
        recordName(key),
        holder,
        expiredAt,
        agoText(expiredAt),
        reason,
      ]),
    );
    output.note(`from the report of ${finishedAt} (${agoText(finishedAt)} ago)`);
    return 0;
  },
};

export const clean: Verb = {
  summary: 'list the records that a clean-up would delete, and delete them with --yes',
  usage: '',
  words: [0, 0],
  options: {
    yes: { help: 'delete the records, instead of only listing them', short: 'y' },
    kind: { value: 'KIND', help: 'only records of this kind; may be repeated', choices: KINDS, multiple: true },
    'older-than': { value: 'DURATION', help: 'only records that expired at least this long ago (1h)' },
    'never-deletable': { help: 'also records that DynamoDB never deletes' },
    report: REPORT,
  },
  example: 'holdfast clean --kind abandonedLease --older-than 1d',
  async run({ arguments: args, output, connect }) {
    const service = connect();
    const kinds = args.all('kind') as Kind[];
    const olderThanSeconds = args.seconds('older-than', { min: 0, whole: true });
    let reportId = args.text('report');
    const dryRun = !args.is('yes');
    const request = {
      dryRun,
      ...(kinds.length > 0 && { kinds }),
      ...(olderThanSeconds !== undefined && { olderThanSeconds }),
      ...(args.is('never-deletable') && { neverDeletable: true }),
    };
    const { progress } = output;
    const pages: AnswerOf<'clean'>[] = [];
    let cursor: string | null = null;
    let tries = 0;
    do {
      const page: AnswerOf<'clean'> = await service.call('clean', {
        ...request,
        ...(reportId && { reportId }),
        ...(cursor && { cursor }),
      });
      reportId = page.reportId; // a newer report must not come between two pages
      if (output.isJson) output.json(page);
      pages.push(page);
      progress.show(`${dryRun ? 'checked' : 'cleaned'} ${count(pages)} records`);
      const isStuck = page.nextCursor === cursor && page.stoppedBy !== null;
      tries = isStuck ? tries + 1 : 0;
      if (tries > MAX_TRIES) throw new Failure(`the clean-up makes no progress (${page.stoppedBy})`, EXIT.noAnswer);
      if (page.stoppedBy && page.stoppedBy !== 'time') await sleep(PAUSE_MS);
      cursor = page.nextCursor;
    } while (cursor !== null);
    progress.end();
    if (output.isJson) return 0;
    const rows = pages.flatMap(({ deleted, spared }) => [
      ...deleted.records.map((record) => [...cells(record), dryRun ? 'would be deleted' : 'deleted']),
      ...spared.records.map((record) => [...cells(record), `spared: ${record.why}`]),
    ]);
    if (rows.length > 0) output.table(['KIND', 'RECORD', 'HOLDER', 'EXPIRED', 'OUTCOME'], rows);
    const deleted = pages.reduce((sum, page) => sum + page.deleted.count, 0);
    output.line(`${deleted} ${dryRun ? 'would be deleted' : 'deleted'}, ${count(pages) - deleted} spared`);
    const young = pages.find(({ spared }) => spared.by.tooYoung);
    if (young)
      output.note(`tooYoung: expired within ${duration(young.olderThanSeconds * 1000)}: see --older-than (1h)`);
    if (dryRun && deleted > 0) output.note('nothing was deleted: add --yes to delete');
    return 0;
  },
};

const count = (pages: AnswerOf<'clean'>[]): number =>
  pages.reduce((sum, { deleted, spared }) => sum + deleted.count + spared.count, 0);

const cells = ({ kind, key, holder, expiredAt }: components['schemas']['CleanedRecord']) => [
  kind,
  recordName(key),
  holder,
  expiredAt,
];

/** The name of a record: its key attributes, or the key of an object. */
const recordName = (key: Record<string, string>): string => Object.values(key).join(' ');
