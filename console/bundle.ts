import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import type { Program } from 'estree';
import { type MinifyOptions, minify } from 'terser';
import type { PageFiles } from './serve.ts';
import { compileTemplates } from './templates.ts';

const FOLDER = join(import.meta.dirname, 'page');

/**
 * The page's script and style, each as one file, and the files that they were made of.
 * @param options how small the script is to be made
 */
export async function bundlePage(options: MinifyOptions): Promise<PageFiles & { inputs: string[] }> {
  const [page, sheet] = await Promise.all([
    bundled({ entryPoints: ['main.ts'], minifySyntax: true, plugins: [withoutHtm, withoutClasses] }),
    bundled({ entryPoints: ['style.css'], minify: true }),
  ]);
  const program = await syntaxTree(page.text);
  compileTemplates(program);
  const { code: script = '' } = await minify(program as never, { ...options, parse: { spidermonkey: true } as never });
  // esbuild leaves these blanks, which could be a part of the value.
  const style = sheet.text.replace(/(--[\w-]+:) /g, '$1');
  return { script, style, inputs: [...page.inputs, ...sheet.inputs] };
}

/** @returns what is bundled, and of which files */
async function bundled(options: BuildOptions): Promise<{ text: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: FOLDER,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2023',
    write: false,
    metafile: true,
    logLevel: 'warning',
    ...options,
  });
  const [file] = Object.values(metafile?.outputs ?? {});
  return {
    text: outputFiles?.[0]?.text ?? '',
    inputs: Object.keys(file?.inputs ?? {}).map((one) => join(FOLDER, one)),
  };
}

/** The templates are compiled, so what they become is all that is left of `html`. */
const withoutHtm: Plugin = {
  name: 'without htm',
  setup: (setup) => {
    setup.onLoad({ filter: /page\/html\.ts$/ }, () => ({
      contents: "import { h } from 'preact'; export const html = h;",
      loader: 'js',
    }));
  },
};

/** The page has no component that is a class. Without Preact's check for one, Terser drops what only classes need. */
const withoutClasses: Plugin = {
  name: 'without classes',
  setup: (setup) => {
    setup.onLoad({ filter: /preact\/dist\/preact\.mjs$/ }, async ({ path }) => {
      const code = await readFile(path, 'utf8');
      const asks = code.match(/\(\w+=\w+\.prototype\)&&\w+\.render/g) ?? [];
      if (asks.length !== 1) throw new Error(`${path} asks ${asks.length} times whether a component is a class`);
      return { contents: code.replace(asks[0] ?? '', '!1'), loader: 'js' };
    });
  },
};

/** Only without blanks: to shorten names and code takes some seconds. */
export const QUICK: MinifyOptions = { module: true, compress: false, mangle: false };

/** As ESTree has it. */
async function syntaxTree(code: string): Promise<Program> {
  const format = { ast: true, code: false, spidermonkey: true } as never;
  const result = await minify(code, { ...QUICK, format });
  return (result as { ast?: unknown }).ast as Program;
}
