import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript';

/** Generates the files of src/ that follow from the contract. With --check, fails if they differ. */
const contract: OpenAPI3 = JSON.parse(await readFile(join(import.meta.dirname, '../../contract/openapi.json'), 'utf8'));
/** The client has an option for the namespace, so the calls of a namespace need no types. */
for (const path of Object.keys(contract.paths ?? {})) if (path.startsWith('/v1/ns/')) delete contract.paths?.[path];
delete contract.components?.parameters;
/** The names of the calls by GET. */
const READS = /^(read|who)/;

const HEAD = '// Written from contract/openapi.json by npm run contract.\n\n';

const types = await openapiTypescript(contract, { alphabetize: true, defaultNonNullable: false });
const files = { 'contract.ts': HEAD + astToString(types), 'routes.ts': HEAD + routes() };

for (const [file, text] of Object.entries(files)) {
  const path = join(import.meta.dirname, 'src', file);
  if (!process.argv.includes('--check')) await writeFile(path, text);
  else if (text !== (await readFile(path, 'utf8').catch(() => ''))) {
    console.error(
      `clients/typescript/src/${file} is not what the contract says: run npm run contract, and commit what it writes`,
    );
    process.exitCode = 1;
  }
}

function routes(): string {
  const lines = Object.entries(contract.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, route]) => route.operationId)
      .map(([method, { operationId }]) => {
        if (READS.test(operationId) !== (method === 'get')) throw new Error(`${operationId} is no ${method}`);
        return `  ${operationId}: '${path.startsWith('/v1/') ? path.slice(4) : `..${path}`}',\n`;
      }),
  );
  return `/** Where each call is, from /v1/. */\nexport const ROUTES = {\n${lines.join('')}};\n\n/** The calls by GET; all others are POST. */\nexport const READS = ${READS};\n`;
}
