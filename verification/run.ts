import { spawnSync } from 'node:child_process';
import { delimiter, join, resolve } from 'node:path';

/** A check that takes longer than `npm test`, or a step of a release. Arguments of the caller go to its last command. */
interface Check {
  what: string;
  commands: string[];
  env?: Record<string, string>;
}

const vitest = (folder: string) => `vitest run --config verification/${folder}/vitest.config.ts`;

const CHECKS: Record<string, Check> = {
  faults: {
    what: 'histories under faults, checked against every promise',
    commands: ['node verification/histories/run.ts'],
  },
  campaign: { what: 'histories with seeds that no run has played', commands: ['node verification/campaign/run.ts'] },
  models: { what: 'the executable models of the protocols', commands: ['node verification/models/run.ts'] },
  mutations: {
    what: 'edits of the product that a history must show',
    commands: ['node verification/mutations/run.ts'],
  },
  'mutation-score': {
    what: 'small changes by Stryker that the tests must notice',
    commands: ['node verification/mutation-score/run.ts'],
  },
  fuzz: { what: 'requests of Schemathesis', commands: ['node verification/contract/fuzz.ts'] },
  clients: {
    what: 'clients generated from the contract in three languages',
    commands: ['node verification/contract/clients.ts'],
  },
  callers: { what: 'the examples of docs/callers.md', commands: ['node verification/contract/callers.ts'] },
  recipes: {
    what: 'the recipes of docs/recipes.md and docs/delta.md with Spark, dbt, deltalake and Jupyter',
    commands: [
      'python3 -m venv .venv-recipes && .venv-recipes/bin/pip install -q -r clients/python/test/recipes.txt',
      '.venv-recipes/bin/python -m pytest clients/python/test/test_recipes.py clients/python/test/test_delta.py',
    ],
  },
  packages: {
    what: 'the packages from a registry of this machine, the image, the workflows and the documents',
    commands: ['npm run build --workspaces', vitest('packages')],
  },
  deploy: { what: 'deployments to MiniStack, an emulator that checks IAM', commands: [vitest('deployment')] },
  terraform: {
    what: 'the same with the module for Terraform',
    commands: [vitest('deployment')],
    env: { TERRAFORM: '1' },
  },
  template: { what: 'the template by cfn-lint and checkov', commands: ['node verification/deployment/lint.ts'] },
  start: { what: 'how soon npm start answers', commands: ['node verification/start/start.ts'] },
  'cli-start': { what: 'what holdfast run adds to a start', commands: ['node verification/cli/start.ts'] },
  'cli-kill': {
    what: 'how soon a command ends when holdfast run is killed',
    commands: ["vitest run test/cli/races.full.test.ts -t 'if it is killed'"],
    env: { BARS: '1', RACES: 'full' },
  },
  chaos: { what: 'clients that stop over a faulty proxy', commands: ['node verification/client/chaos.ts'] },
  runtimes: {
    what: 'the client in Node 20 to 24, Bun, Deno and Chromium',
    commands: ['node verification/client/runtimes.ts'],
  },
  pictures: {
    what: 'the pictures of docs/console.md',
    commands: ['vitest run test/console'],
    env: { PICTURES: 'docs/pictures', RACES: 'full' },
  },
  'contract-release': {
    what: 'stores the contract of a release, with which later versions are compared',
    commands: ['node contract/generate.ts --release'],
  },
  'cdk-types': {
    what: 'writes the types of the parameters for CDK',
    commands: ['node build/cdk-types.ts > deployment/cdk/parameters.ts'],
  },
  'bench-libraries': { what: 'installs what npm run bench compares with', commands: ['node bench/libraries.ts'] },
  'bench-publish': { what: 'writes the figures on record into the documents', commands: ['node bench/publish.ts'] },
  'bench-scale': { what: 'the arithmetic of docs/scale.md', commands: ['node bench/scale-arithmetic.ts'] },
  'bench-waiting': { what: 'what callers that sleep cost, for docs/cost.md', commands: ['node bench/waiting-cost.ts'] },
  tags: { what: 'each version of the changelog has its tag', commands: ['node build/tags.ts'] },
};

const HELP = `npm run verify -- NAME [options]: checks that take longer than npm test, and the steps of a release. What is a test takes the options of Vitest, and most others have --help.

${Object.entries(CHECKS)
  .map(([name, { what }]) => `  ${name.padEnd(17)}${what}`)
  .join('\n')}`;

const ROOT = resolve(import.meta.dirname, '..');

/** Runs the commands of a check, as npm runs a script. @returns the exit code of the first command that fails */
function verify({ commands, env }: Check, args: string[]): number {
  const PATH = [join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  for (const [at, command] of commands.entries()) {
    const last = at === commands.length - 1;
    // The shell takes the arguments as they are, whatever characters they have.
    const { status, error } = spawnSync('sh', ['-c', last ? `${command} "$@"` : command, 'sh', ...args], {
      cwd: ROOT,
      stdio: 'inherit',
      env: { ...process.env, ...env, PATH },
    });
    if (error) throw error;
    if (status !== 0) return status ?? 1;
  }
  return 0;
}

const [name = '--help', ...args] = process.argv.slice(2);
const check = Object.hasOwn(CHECKS, name) ? CHECKS[name] : undefined;
if (check) process.exitCode = verify(check, args);
else {
  const isAsked = name === '--help' || name === '-h';
  (isAsked ? console.log : console.error)(isAsked ? HELP : `there is no check '${name}'\n\n${HELP}`);
  process.exitCode = isAsked ? 0 : 2;
}
