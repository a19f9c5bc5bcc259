import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { build, type Plugin } from 'esbuild';
import { type MinifyOptions, minify } from 'terser';
import { bundlePage } from '../console/bundle.ts';

/**
 * Writes the command as one file that runs without any package. The code and the page are in it as one Brotli stream, which takes a
 * seventh less than their gzip would, and which Node takes apart in two milliseconds.
 */
export async function bundle(outfile: string): Promise<void> {
  const [code, page] = await Promise.all([bundleVerbs(), bundlePage()]);
  const [small, script] = await Promise.all([minified(code), minified(page.script)]);
  const whole = [small, withoutIndents(script), page.style].join(BETWEEN);
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: whole.length, [constants.BROTLI_PARAM_LGWIN]: 18 };
  await mkdir(dirname(outfile), { recursive: true });
  await writeFile(outfile, unpacking(brotliCompressSync(whole, { params }).toString('base64')));
  await chmod(outfile, 0o755);
}

const BETWEEN = '\0';

/** As a function's body, the code sees `require`, `self` and `page`. It must require what is a part of Node: an import reads each export. */
const unpacking = (packed: string): string => `#!/usr/bin/env node
import{createRequire}from"node:module";
const self=import.meta.url,require=createRequire(self),[code,script,style]=require("node:zlib").brotliDecompressSync(Buffer.from("${packed}","base64")).toString().split("\\0");
Function("require","self","page",code)(require,self,{script,style});
`;

async function bundleVerbs(): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: import.meta.dirname,
    entryPoints: ['src/main.ts'],
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    banner: { js: '"use strict";' },
    define: { 'import.meta.url': 'self' },
    plugins: [inOneFile],
    write: false,
    logLevel: 'warning',
  });
  return outputFiles[0]?.text ?? '';
}

const inOneFile: Plugin = {
  name: 'in one file',
  setup: (setup) => {
    setup.onLoad({ filter: /console\/files\.ts$/ }, () => ({
      contents: 'export const pageFiles = async () => page;',
      loader: 'js',
    }));
    // What the client loads when it is needed is here anyway.
    setup.onLoad({ filter: /client\/src\/http\.ts$/ }, async ({ path }) => {
      const imports: string[] = [];
      const contents = (await readFile(path, 'utf8')).replace(/await import\((.*?)\)/g, (_, file) => {
        const name = `part${imports.length}`;
        imports.push(`import * as ${name} from ${file};`);
        return name;
      });
      return { contents: imports.join('') + contents, loader: 'ts' };
    });
  },
};

/** Chosen by what is smallest after Brotli. */
const SMALL: MinifyOptions = {
  module: true,
  ecma: 2020,
  compress: { ecma: 2020, passes: 3, inline: 2, pure_getters: true, unsafe_arrows: true, unsafe_methods: true },
};

async function minified(code: string): Promise<string> {
  return (await minify(code, SMALL)).code ?? '';
}

/** Of what is marked up in a template. */
const withoutIndents = (code: string): string => code.replace(/\n\s+/g, '\n').replaceAll('>\n<', '><');
