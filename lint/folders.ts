/** Fails on a basename that two files of shared/ have for different things, and on a folder that is too deep there. */
import { execFileSync } from 'node:child_process';
import { basename, dirname } from 'node:path';

const ROOT = 'shared';

/** Folders below shared/: a capability, and one part of it. */
const MAX_DEPTH = 2;

/** Names that mean the same in each capability. Everywhere else a name stands once. */
const ALIKE = ['conditions', 'dependencies', 'environment', 'expired', 'inputs', 'names', 'read', 'record', 'write'];

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', `${ROOT}/*.ts`], {
  encoding: 'utf8',
});
const deleted = execFileSync('git', ['ls-files', '--deleted', ROOT], { encoding: 'utf8' }).trim().split('\n');
// During a merge, git lists a file more than once.
const files = [...new Set(listed.trim().split('\n'))].filter((file) => !deleted.includes(file));

const capabilityOf = (file: string) => file.split('/')[1];

const complaints: string[] = [];
const byName = Map.groupBy(files, (file) => basename(file, '.ts'));
for (const [name, namesakes] of byName)
  for (const [nth, file] of namesakes.entries()) {
    const other = namesakes
      .slice(0, nth)
      .find((one) => !ALIKE.includes(name) || capabilityOf(one) === capabilityOf(file));
    if (other) complaints.push(`${file} has the name of ${other}, and means something else.`);
  }
for (const file of files) {
  const depth = dirname(file).split('/').length - 1;
  if (depth > MAX_DEPTH) complaints.push(`${file} is ${depth} folders deep. It may be ${MAX_DEPTH}.`);
}
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exitCode = 1;
