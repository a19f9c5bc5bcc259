/** Fails on a basename that two files of shared/ have for different things, and on a folder that is too deep there. */
import { execFileSync } from 'node:child_process';
import { basename, dirname } from 'node:path';

const ROOT = 'shared';

/** Folders below shared/: a capability, and one part of it. */
const MAX_DEPTH = 2;

/** Names that mean the same in each of these folders. Everywhere else a name stands once. */
const ALIKE = [
  {
    folders: ['leases', 'permits', 'locks', 'once', 'commits', 'nameservice', 'expiry', 'callers'],
    names: ['conditions', 'dependencies', 'environment', 'expired', 'inputs', 'names', 'read', 'record', 'write'],
  },
  { folders: ['line'], names: ['expired'] },
  {
    folders: ['leases', 'permits', 'locks', 'once'],
    names: [
      // The calls.
      ...['acquire', 'break', 'execution-ended', 'first-try', 'heartbeat', 'release', 'repair', 'withdraw'],
      // What a lease and a permit do for their line.
      ...[
        'bound',
        'bound-end',
        'deliver',
        'grace',
        'hand-off',
        'holder-look',
        'lock',
        'marks',
        'next',
        'pace',
        'previous',
        'quick-release',
        'views',
      ],
    ],
  },
];

/** Files that have such a name elsewhere: the interface of the locks, and what every call on a lease or a pool depends on. At most four. */
const EXCEPTIONS = ['shared/line/lock.ts', 'shared/line/dependencies.ts'];
const MAX_EXCEPTIONS = 4;

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', `${ROOT}/*.ts`], {
  encoding: 'utf8',
});
const deleted = execFileSync('git', ['ls-files', '--deleted', ROOT], { encoding: 'utf8' }).trim().split('\n');
// During a merge, git lists a file more than once.
const files = [...new Set(listed.trim().split('\n'))].filter((file) => !deleted.includes(file));

const complaints: string[] = [];
const namesakes = Map.groupBy(
  files.filter((file) => !EXCEPTIONS.includes(file)),
  (file) => basename(file, '.ts'),
);
for (const [name, [first = '', ...others]] of namesakes) {
  const folders = ALIKE.flatMap((alike) => (alike.names.includes(name) ? alike.folders : []));
  const isAlike = (file: string) => folders.includes(dirname(file).slice(ROOT.length + 1));
  for (const file of others)
    if (!isAlike(first) || !isAlike(file))
      complaints.push(`${file} has the name of ${first}, and means something else.`);
}
if (EXCEPTIONS.length > MAX_EXCEPTIONS)
  complaints.push(`There are ${EXCEPTIONS.length} exceptions. ${MAX_EXCEPTIONS} are allowed.`);
for (const file of files) {
  const depth = dirname(file).split('/').length - 1;
  if (depth > MAX_DEPTH) complaints.push(`${file} is ${depth} folders deep. It may be ${MAX_DEPTH}.`);
}
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exitCode = 1;
