import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readOptions } from '../local/options.ts';
import packageJson from '../package.json' with { type: 'json' };
import { openapi } from './openapi.ts';
import { pythonModule } from './python/module.ts';
import { referencePages } from './reference/pages.ts';
import { capabilityScope } from './routes/route.ts';
import { ROUTES } from './routes.ts';

const HELP = `node contract/generate.ts (in npm run contract): writes the files that follow from the contract.

  contract/openapi.json                     the OpenAPI document
  contract/calls.json                       the routes with their scopes, for GET /v1/whoami
  shared/surroundings/version.ts            the version, which every answer names
  docs/api/                                 the reference of all calls and errors
  clients/python/src/holdfast/contract.py   the types, the errors and the calls of the Python client

  --check     write nothing, and exit with 1 if a file is out of date
  --release   also write the document to contract/released, under the version of package.json. Later documents are compared with it`;

const document = () => `${JSON.stringify(openapi(), null, 2)}\n`;

const calls = () => ({
  routes: ROUTES.map((route) => ({
    ...{ function: route.function, method: route.method, path: route.path },
    scope: route.scope ?? null,
    family: capabilityScope(route) ?? null,
  })),
});

const version = `// Written from package.json by npm run contract.
export const VERSION = '${packageJson.version}';
`;

const ROOT = join(import.meta.dirname, '..');

async function main(): Promise<boolean> {
  const { values } = readOptions({
    check: { type: 'boolean' },
    release: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) console.log(HELP);
  else
    for (const { file, text } of [
      { file: 'contract/openapi.json', text: document() },
      { file: 'contract/calls.json', text: `${JSON.stringify(calls(), null, 2)}\n` },
      { file: 'shared/surroundings/version.ts', text: version },
      { file: 'clients/python/src/holdfast/contract.py', text: pythonModule() },
      ...Object.entries(referencePages()).map(([name, text]) => ({ file: `docs/api/${name}`, text })),
      ...(values.release ? [{ file: `contract/released/${packageJson.version}.json`, text: document() }] : []),
    ]) {
      const path = join(ROOT, file);
      const current = await readFile(path, 'utf8').catch(() => '');
      if (!values.check) {
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, text);
      } else if (text !== current) {
        console.error(`${file} is out of date: run npm run contract, and commit what it writes`);
        return false;
      }
    }
  return true;
}

main().then(
  (passed) => {
    process.exitCode = passed ? 0 : 1;
  },
  (error: Error) => {
    console.error(`npm run contract: ${error.message}`);
    process.exitCode = 2;
  },
);
