import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import manifest from '../../package.json' with { type: 'json' };

/**
 * `npm run verify -- template`: what two linters of others say of the released template. A finding that is not listed here fails, and so does
 * a reason without a finding. `-- --all` shows each finding. `npm run release` must have written the template.
 */
const KNOWN: Record<string, string> = {
  W3005: 'the framework writes DependsOn where a reference says the same; it changes nothing',
  E3601:
    'the rule reads the variable Partition of the state machine as text; CloudFormation replaces it (DefinitionSubstitutions)',
  W1028:
    'a table that the stack creates takes its name from the same expression as the functions, so one branch is idle',
  W1030: 'the empty default of a parameter is used only behind a condition that it is not empty',
  W1033: 'as W1030, for lists',
  CKV_AWS_115:
    'reserved concurrency is a parameter for the functions that compete for it; reserved for all, it would be taken from the account',
  CKV_AWS_116:
    'callers wait for most functions; what events start has a destination, or a schedule or queue that brings the work again',
  CKV_AWS_117:
    'vpcSubnetIds puts the functions of the service into a VPC; the change check stays outside, because its response goes to a bucket of CloudFormation',
  CKV_AWS_119: 'kmsKeyArn names a key; without it the key is that of AWS',
  CKV_AWS_18:
    "the access log names each commit with its caller; logs of the bucket are the platform's own choice (parameter bucket)",
  CKV_AWS_95: 'access logs are on by default (accessLogs), behind a condition that the rule does not evaluate',
};

const VENV = resolve('.venv-lint');
const template = join('release', `holdfast-${manifest.version}`, 'template.json');
if (!existsSync(template)) throw new Error(`there is no ${template}: npm run release writes it`);
const run = promisify(execFile);
const settings = { maxBuffer: 2 ** 26 };
if (!existsSync(join(VENV, 'bin', 'checkov'))) {
  await run('python3', ['-m', 'venv', VENV]);
  await run(join(VENV, 'bin', 'pip'), ['install', '--quiet', 'cfn-lint==1.58.0', 'checkov==3.3.30']);
}

/** Both linters exit with another code than 0 if they find something. */
const findings = async (command: string, args: string[]): Promise<string> =>
  (
    await run(join(VENV, 'bin', command), args, settings).catch((error) => {
      if (typeof error.code !== 'number' || !error.stdout) throw error;
      return error;
    })
  ).stdout;

const cfnLint: { Rule: { Id: string }; Message: string; Location: { Path: string[] | null } }[] = JSON.parse(
  await findings('cfn-lint', ['--template', template, '--regions', 'us-east-1', '--format', 'json']),
);
const checkov: { results: { failed_checks: { check_id: string; check_name: string; resource: string }[] } } =
  JSON.parse(
    await findings('checkov', ['--file', template, '--framework', 'cloudformation', '--output', 'json', '--quiet']),
  );
const found = [
  ...cfnLint.map(({ Rule: { Id }, Message, Location: { Path } }) => ({
    id: Id,
    text: `${Path?.join('/')}: ${Message}`,
  })),
  ...checkov.results.failed_checks.map(({ check_id: id, check_name, resource }) => ({
    id,
    text: `${resource}: ${check_name}`,
  })),
];
const showsAll = process.argv.includes('--all');
for (const [id, reason] of Object.entries(KNOWN)) {
  const ofRule = found.filter((one) => one.id === id);
  console.log(`${String(ofRule.length).padStart(4)} ${id}: ${reason}`);
  if (showsAll) for (const { text } of ofRule) console.log(`       ${text}`);
}
const unknown = found.filter(({ id }) => !(id in KNOWN));
for (const { id, text } of unknown) console.error(`${id} ${text}`);
const outdated = Object.keys(KNOWN).filter((id) => !found.some((one) => one.id === id));
for (const id of outdated) console.error(`${id} is listed, and not found any more`);
process.exitCode = unknown.length + outdated.length > 0 ? 1 : 0;
