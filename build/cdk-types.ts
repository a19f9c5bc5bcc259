import type { Parameter } from '../infrastructure/parameters/kinds.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';

/** The construct itself sets these parameters. */
const OF_CODE = ['codeBucket', 'codePrefix'];

/** Prints the interface `HoldfastParameters` of the CDK construct, as TypeScript. */
process.stdout.write(cdkTypes());

function cdkTypes(): string {
  const fields = Object.entries(PARAMETERS)
    .filter(([name]) => !OF_CODE.includes(name))
    .map(([name, parameter]) => `  ${docOf(parameter)}\n  readonly ${name}${mark(parameter)}: ${typeOf(parameter)};\n`);
  return [
    '// Written by `npm run verify -- cdk-types`.\n',
    '/** The parameters of the template. A parameter that you leave out has its default. */',
    `export interface HoldfastParameters {\n${fields.join('')}}\n`,
  ].join('\n');
}

function mark({ default: usual }: Parameter): string {
  return usual === undefined ? '' : '?';
}

function docOf({ description, default: usual }: Parameter): string {
  return `/** ${description}${usual ? ` @default ${usual}` : ''} */`;
}

function typeOf({ allowed, min, pattern }: Parameter): string {
  if (allowed?.includes('true')) return 'boolean';
  if (allowed?.every((value) => /^\d+$/.test(value))) return 'number';
  if (allowed) return allowed.map((value) => `'${value}'`).join(' | ');
  return min !== undefined || /^\^\[0-9\]\{\d,\d+\}\$$/.test(pattern ?? '') ? 'number' : 'string';
}
