import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import openapiTypescript, { astToString } from 'openapi-typescript';

/** Writes src/contract.ts from the contract; with --check, fails where that would change it. */
const CONTRACT = new URL('../contract/openapi.json', import.meta.url);
const WRITTEN = join(import.meta.dirname, 'src/contract.ts');

const types = await openapiTypescript(CONTRACT, { alphabetize: true, defaultNonNullable: false });
const text = `// Written from contract/openapi.json by npm run types --workspace client.\n\n${astToString(types)}`;
if (!process.argv.includes('--check')) await writeFile(WRITTEN, text);
else if (text !== (await readFile(WRITTEN, 'utf8').catch(() => ''))) {
  console.error('client/src/contract.ts is not what the contract says: run npm run types --workspace client');
  process.exitCode = 1;
}
