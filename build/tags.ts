import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readOptions } from '../local/options.ts';

const HELP = `npm run verify -- tags: checks that each version in CHANGELOG.md has its git tag, such as v1.0.0.

  --check VERSION    check that a commit can be released as this version, and print its part of the changelog
  --create VERSION   check the same, and tag the commit. The release workflow does this
  --commit COMMIT    the commit (HEAD)

A commit can be released if
- each package.json, the Python client and the contract have the version
- the changelog has a heading for it
- contract/released has its contract (npm run verify -- contract-release)
- no other commit has the tag

The exit code is 1 if a commit cannot be released, a version lacks its tag, or a tag lacks its version.`;

const PYTHON = 'clients/python/src/holdfast/contract.py';

const git = (...args: string[]): string =>
  execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 }).trim();
const tagOf = (version: string): string => `v${version}`;

/** The versions of a changelog with their texts, the newest first. @throws Error if they are not in this order */
function versions(changelog: string): Map<string, string> {
  const parts = changelog.split(/^## /m).slice(1);
  const found = parts.flatMap((part): [string, string][] => {
    const [heading = '', ...lines] = part.split('\n');
    const [version] = /^\d+\.\d+\.\d+/.exec(heading) ?? [];
    return version ? [[version, lines.join('\n').trim()]] : [];
  });
  for (const [at, [version]] of found.entries()) {
    const before = found[at - 1]?.[0];
    if (before && before.localeCompare(version, undefined, { numeric: true }) <= 0)
      throw new Error(`CHANGELOG.md has ${version} behind ${before}`);
  }
  return new Map(found);
}

/** @returns undefined if the commit has no such file */
function fileOf(commit: string, path: string): string | undefined {
  try {
    return git('show', `${commit}:${path}`);
  } catch {
    return undefined;
  }
}

/**
 * @returns the part of the changelog about the version
 * @throws Error if the commit has another version, or the contract that was written for the release is out of date
 */
function notesOf(version: string, commit: string): string {
  for (const file of ['package.json', 'clients/typescript/package.json', 'cli/package.json', 'local/package.json']) {
    const { version: stated } = JSON.parse(git('show', `${commit}:${file}`));
    if (stated !== version) throw new Error(`${file} of ${commit} has the version ${stated}`);
  }
  const python = git('show', `${commit}:${PYTHON}`);
  if (!python.split('\n').includes(`VERSION = "${version}"`))
    throw new Error(`${PYTHON} of ${commit} has another version`);
  const notes = versions(git('show', `${commit}:CHANGELOG.md`)).get(version);
  if (notes === undefined) throw new Error(`CHANGELOG.md of ${commit} has no ${version}`);
  const contract = git('show', `${commit}:contract/openapi.json`);
  const { info } = JSON.parse(contract);
  if (info.version !== version) throw new Error(`contract/openapi.json of ${commit} has the version ${info.version}`);
  if (contract !== fileOf(commit, `contract/released/${version}.json`))
    throw new Error(
      `contract/released/${version}.json of ${commit} is not its contract: npm run verify -- contract-release`,
    );
  return notes;
}

/** @returns the commit that has the tag of a version, or undefined */
function taggedCommit(version: string): string | undefined {
  const isThere = git('tag', '--list', tagOf(version)) !== '';
  return isThere ? git('rev-parse', `refs/tags/${tagOf(version)}^{commit}`) : undefined;
}

/**
 * A tag never moves to another commit, because packages may have been published from the first one.
 * @returns the part of the changelog about the version
 * @throws Error as `notesOf`, or if another commit has the tag
 */
function check(version: string, commit: string): string {
  const notes = notesOf(version, commit);
  const tagged = taggedCommit(version);
  if (tagged && tagged !== git('rev-parse', `${commit}^{commit}`))
    throw new Error(`${tagOf(version)} is at ${tagged}, another commit than ${commit}`);
  return notes;
}

/** Keeps a tag that the commit already has, so that a release that stopped halfway can run again. @throws Error as `check` */
function create(version: string, commit: string): void {
  const notes = check(version, commit);
  if (!taggedCommit(version)) tag(version, commit, notes);
  console.log(`${tagOf(version)} is at ${git('rev-parse', '--short', commit)}`);
}

function tag(version: string, commit: string, notes: string): void {
  git(
    'tag',
    '--annotate',
    tagOf(version),
    commit,
    '--cleanup=verbatim',
    '--message',
    `Holdfast ${version}\n\n${notes}`,
  );
}

function faults(): string[] {
  const wanted = new Set([...versions(readFileSync('CHANGELOG.md', 'utf8')).keys()].map(tagOf));
  const current = new Set(git('tag', '--list', 'v*').split('\n').filter(Boolean));
  return [
    ...[...wanted].filter((tag) => !current.has(tag)).map((tag) => `there is no tag ${tag}`),
    ...[...current].filter((tag) => !wanted.has(tag)).map((tag) => `CHANGELOG.md has no version for the tag ${tag}`),
  ];
}

const { values } = readOptions({
  create: { type: 'string' },
  check: { type: 'string' },
  commit: { type: 'string', default: 'HEAD' },
  help: { type: 'boolean', short: 'h' },
});
try {
  if (values.help) console.log(HELP);
  else if (values.create) create(values.create, values.commit);
  else if (values.check) console.log(check(values.check, values.commit));
  else
    for (const fault of faults()) {
      console.error(fault);
      process.exitCode = 1;
    }
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
