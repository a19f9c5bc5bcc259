/** Fails on a basename that two files of shared/ have for different things, and on a folder that is too deep there. */
import { execFileSync } from 'node:child_process';
import { basename, dirname } from 'node:path';

const ROOT = 'shared';

/** Folders below shared/: a capability, and one part of it. */
const MAX_DEPTH = 2;

/** Names that mean the same in sibling capabilities. */
const ALIKE = [
  // What each capability has.
  ...['conditions', 'dependencies', 'environment', 'expired', 'inputs', 'names', 'read', 'record', 'views', 'write'],
  // What leases and permits have.
  ...['acquire', 'acquire-or-park', 'break', 'first-try', 'heartbeat', 'lock', 'previous', 'release'],
  // What a lease and a permit do for their line, and what the line does for both.
  ...['cancel', 'claim', 'deliver', 'execution-ended', 'grace', 'hand-off', 'join', 'leave', 'marks', 'next', 'pace'],
  ...['park', 'race', 'repair', 'wait', 'withdraw'],
  // What a capability is asked for, which fields that has, and its listings.
  ...['request', 'fields', 'list'],
];

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', `${ROOT}/*.ts`], {
  encoding: 'utf8',
});
const deleted = execFileSync('git', ['ls-files', '--deleted', ROOT], { encoding: 'utf8' }).trim().split('\n');
const files = listed
  .trim()
  .split('\n')
  .filter((file) => !deleted.includes(file));

const complaints: string[] = [];
const seen = new Map<string, string>();
for (const file of files) {
  const name = basename(file, '.ts');
  const other = seen.get(name);
  if (other && !ALIKE.includes(name)) complaints.push(`${file} has the name of ${other}, and means something else.`);
  seen.set(name, file);
  const depth = dirname(file).split('/').length - 1;
  if (depth > MAX_DEPTH) complaints.push(`${file} is ${depth} folders deep. It may be ${MAX_DEPTH}.`);
}
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exitCode = 1;
