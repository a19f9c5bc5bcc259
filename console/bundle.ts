import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { type MinifyOptions, minify } from 'rolldown/utils';
import { inputsOf } from '../build/bundle.ts';
import type { PageFiles } from './serve.ts';
import { compileTemplates } from './templates.ts';

const FOLDER = join(import.meta.dirname, 'page');

/**
 * Bundles the script and the style of the page, each into one file.
 * @param options the options of the minifier
 * @returns the files, and the source files of the script
 */
export async function bundlePage(options: MinifyOptions = {}): Promise<PageFiles & { inputs: string[] }> {
  const { output } = await build({
    cwd: FOLDER,
    input: 'main.ts',
    platform: 'browser',
    transform: { target: 'es2023' },
    logLevel: 'warn',
    plugins: [withoutHtm, withoutClasses],
    write: false,
    output: { format: 'esm', codeSplitting: false },
  });
  const { code } = await minify('page.js', compileTemplates(output[0].code), { module: true, ...options });
  return { script: code, style: await style(), inputs: [...inputsOf(output).keys()] };
}

/** Joins the files that the style sheet imports, without comments and unnecessary blanks. */
async function style(): Promise<string> {
  const sheet = await readFile(join(FOLDER, 'style.css'), 'utf8');
  const files = [...sheet.matchAll(/@import "(.*)";/g)].map(([, file = '']) => readFile(join(FOLDER, file), 'utf8'));
  return (await Promise.all(files))
    .join('')
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?|(:) /g, '$1$2')
    .replaceAll(';}', '}')
    .trim();
}

/** Leaves out the package htm, because the templates are compiled into calls of `h`. */
const withoutHtm: Plugin = {
  name: 'without htm',
  load: (id) => (id.endsWith('page/html.ts') ? "import { h } from 'preact'; export const html = h;" : undefined),
};

/** The page has no class components. Without Preact's check for them, the minifier drops the code that only they need. */
const withoutClasses: Plugin = {
  name: 'without classes',
  transform(code, id) {
    if (!id.endsWith('preact/dist/preact.mjs')) return undefined;
    const asks = code.match(/\(\w+=\w+\.prototype\)&&\w+\.render/g) ?? [];
    if (asks.length !== 1) throw new Error(`${id} asks ${asks.length} times whether a component is a class`);
    return code.replace(asks[0] ?? '', '!1');
  },
};
