import type { JsonSchema } from '../openapi/json-schema.ts';
import { openapi } from '../openapi.ts';
import type { Components } from '../reference/schema.ts';
import { type Operation, PythonCalls } from './calls.ts';
import { docstring, fieldDocstring, snake } from './layout.ts';
import { PythonTypes } from './types.ts';

type Fields = Record<string, JsonSchema>;

/** Errors that only the client raises. */
const OF_THE_CLIENT: Record<string, { description: string; fields: Fields }> = {
  Refused: { description: 'The gateway refused the caller (401 or 403), or the call itself.', fields: {} },
  Unreachable: {
    description:
      'The service did not answer: the connection broke, the time ran out, or a gateway failed. A write may still have taken effect, unless `sent` is false.',
    fields: { sent: { type: 'boolean' } },
  },
};

/** The reasons for which the client itself ends a lease. */
const REASONS = ['deadline', 'maxHold', 'forked'];

/** The service always sends these fields, but the client raises the same error without them. */
const MAY_BE_MISSING = ['LeaseLost.holder'];

/** Fields that the base class already declares. */
const OF_EACH = ['type', 'title', 'status', 'code', 'detail', 'traceId', 'retryAfterMs', 'retryWith'];

const IMPORTS = `from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypedDict, cast, overload

from .arguments import OMITTED, Omitted, given, sent
from .errors import HoldfastError
from .pages import apaged, paged
`;

/** The module \`contract\` of the Python client. */
export function pythonModule(): string {
  const document = openapi() as {
    info: { version: string };
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Components };
  };
  const { schemas } = document.components;
  const types = new PythonTypes(schemas);
  // The namespace is an option of the client, so the routes in a namespace need no methods.
  const routes = Object.entries(document.paths)
    .filter(([path]) => !path.startsWith('/v1/ns/'))
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));
  // The client has its own method for `acquire`, so no call here would declare its answers.
  for (const name of ['AcquiredGrant', 'Parked']) types.component(name);
  const errors = errorClasses(schemas, types);
  const calls = new PythonCalls(types, schemas).classes(routes.map(({ operation }) => operation));
  const table = routes.map(
    ({ path, method, operation }) =>
      `    "${operation.operationId}": ("${method.toUpperCase()}", "${path.startsWith('/v1/') ? path.slice(4) : `..${path}`}"),\n`,
  );
  return [
    `"""Written from contract/ by npm run contract."""\n\n${IMPORTS}\n`,
    `VERSION = "${document.info.version}"\n\n`,
    `# The method of each call, and its path below /v1/.\nROUTES: dict[str, tuple[str, str]] = {\n${table.join('')}}\n\n`,
    `${types.declarations}${errors}${calls}`,
  ]
    .join('')
    .replace(/\n{4,}/g, '\n\n\n');
}

function errorClasses(schemas: Components, types: PythonTypes): string {
  const codes = (schemas.Problem?.properties as { code: { enum: string[] } } | undefined)?.code.enum ?? [];
  const classes = [...codes, ...Object.keys(OF_THE_CLIENT)].map((code) => errorClass(code, schemas, types));
  const all = [...codes, ...Object.keys(OF_THE_CLIENT)].sort();
  const table = all.map((code) => `    "${code}": ${code},\n`);
  const names = all.map((code) => `    "${code}",\n`);
  return `${classes.join('')}\n\nERRORS: dict[str, type[HoldfastError]] = {\n${table.join('')}}\n\n# The errors, which \`holdfast\` exports too.\n__all__ = [\n${names.join('')}]\n`;
}

function errorClass(code: string, schemas: Components, types: PythonTypes): string {
  const own = OF_THE_CLIENT[code];
  const [, ofCode] = (schemas[code]?.allOf ?? []) as JsonSchema[];
  const { properties = own?.fields ?? {}, required = [] } = ofCode ?? {};
  const fields = Object.entries(properties as Fields).filter(([field]) => !OF_EACH.includes(field));
  const lines = fields.map(([field, schema]) => {
    const values = field === 'reason' ? { ...schema, enum: [...(schema.enum as string[]), ...REASONS] } : schema;
    const type = types.of(values, field === 'reason' ? 'LossReason' : `${code}${field}`);
    const isAlways = (required as string[]).includes(field) && !MAY_BE_MISSING.includes(`${code}.${field}`);
    const text = isAlways ? type : `${type.replace(/ \| None$/, '')} | None = None`;
    return `    ${snake(field)}: ${text}\n${fieldDocstring(String(schema.description ?? ''), '    ')}`;
  });
  const doc = docstring(String(own?.description ?? schemas[code]?.description), '    ');
  return `\n\nclass ${code}(HoldfastError):\n${doc}${lines.length > 0 ? `\n${lines.join('')}` : ''}`;
}
