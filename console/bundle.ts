import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { type MinifyOptions, minify } from 'rolldown/utils';
import { inputsOf } from '../build/bundle.ts';
import type { PageFiles } from './serve.ts';
import { compileTemplates } from './templates.ts';

const FOLDER = join(import.meta.dirname, 'page');

/**
 * The page's script and style, each as one file, and the files that the script was made of.
 * @param options how far the script is minified
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

/** The files that the style sheet imports, one after the other, without comments and needless blanks. */
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

/** The templates are compiled, so what they become is all that is left of `html`. */
const withoutHtm: Plugin = {
  name: 'without htm',
  load: (id) => (id.endsWith('page/html.ts') ? "import { h } from 'preact'; export const html = h;" : undefined),
};

/** The page has no component that is a class. Without Preact's check for one, the minifier drops what only classes need. */
const withoutClasses: Plugin = {
  name: 'without classes',
  transform(code, id) {
    if (!id.endsWith('preact/dist/preact.mjs')) return undefined;
    const asks = code.match(/\(\w+=\w+\.prototype\)&&\w+\.render/g) ?? [];
    if (asks.length !== 1) throw new Error(`${id} asks ${asks.length} times whether a component is a class`);
    return code.replace(asks[0] ?? '', '!1');
  },
};
