import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { type BuildOptions, build, type Plugin } from 'rolldown';
import { type MinifyOptions, minify } from 'rolldown/utils';
import { bundleProgram, inputsOf } from '../build/bundle.ts';
import { type BundledPackage, packagesOf } from '../build/licences.ts';
import { bundlePage } from '../console/bundle.ts';
import { SEARCH_FILE } from './src/aws/file.ts';

/**
 * Writes the program that searches for AWS credentials with the AWS providers. The command starts it only if its environment has no credentials.
 * @returns the npm packages whose code is in the program
 */
export const bundleSearch = (folder: string): Promise<BundledPackage[]> =>
  bundleProgram(join(import.meta.dirname, 'src/aws/main.ts'), join(folder, SEARCH_FILE));

/**
 * Writes the command as one file that runs without any package. It contains the code and the page as one Brotli stream, which is a seventh smaller than gzip,
 * and which Node unpacks in two milliseconds.
 * @param isSmall true to spend a second more on the smallest file
 * @returns the npm packages whose code is in the command
 */
export async function bundle(outfile: string, { isSmall = true } = {}): Promise<BundledPackage[]> {
  const [verbs, page] = await Promise.all([bundleVerbs(), bundlePage(shortened(`${OWN_OF_PAGE} ${OWN_OF_PREACT}`))]);
  const packages = await packagesOf([...verbs.inputs, ...page.inputs]);
  const { code } = await minify('verbs.js', verbs.code, { module: true, ...shortened(OWN_OF_VERBS) });
  const whole = [page.style, code, page.script].join(BETWEEN);
  await mkdir(dirname(outfile), { recursive: true });
  const packed = (await (isSmall ? smallest(whole) : compressed(whole))).toString('base64');
  await writeFile(outfile, unpacking(packed, packages.map(noticeOf).join('')));
  await chmod(outfile, 0o755);
  return packages;
}

const BETWEEN = '\0';

/** Two parameters of Brotli for the distances between repeated texts. Only trying shows which are best. */
const DISTANCES = [0, 1, 2, 3].flatMap((postfix) => [0, 4, 12].map((direct) => [postfix, direct << postfix] as const));

async function smallest(text: string): Promise<Buffer> {
  const tried = DISTANCES.map(([postfix, direct]) =>
    compressed(text, {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
      [constants.BROTLI_PARAM_LGWIN]: 18,
      [constants.BROTLI_PARAM_NPOSTFIX]: postfix,
      [constants.BROTLI_PARAM_NDIRECT]: direct,
    }),
  );
  return (await Promise.all(tried)).reduce((best, one) => (one.length < best.length ? one : best));
}

const compressed = (text: string, params: Record<number, number> = { [constants.BROTLI_PARAM_QUALITY]: 4 }) =>
  promisify(brotliCompress)(text, { params });

/**
 * Our own property names that the minifier shortens. The minifier cannot tell whose a property is, so none of them may also be a property of the service, the
 * command line, the credential providers, the parts of Node and browsers that we use, or the JSON that we print.
 */
export const OWN_OF_VERBS =
  'acquireAll after arguments assertHeld beatAtMs beating cancelTimer cells choices command complaint confirmed ' +
  'connect controller example exited fail failures fields findings forbidden foreground forwardTo graceMs group ' +
  'hasMore hasTerminal held inLine isAlive isJson isLocal isLost isOnce lastsMs leftMs line linked lost lostTry ' +
  'maxHoldMs mayBeDone mayContinue misuse monotonic noAnswer noTimeout notExecutable notFound note notes number ' +
  'onEvent onLost onRetry output parent progress readKey readLease refused releaseTimeoutMs remove say ' +
  'sayToProgram sentAt settings show staged summary takesCommand takesKey takesLimit terminate tick transport ' +
  'underRates usage uuid waitUntil waitingFor wall wasSignalled whole withinMs word words written';
export const OWN_OF_PAGE =
  'act announce answeredAt cell changes columns compare did empty everyMs filters fingerprint head idOf instant ' +
  'isProblemShown isReversed isSpare label lease leaseKey lifts more needsAttention nextAt noticedChanges noun ' +
  'onAct onChoices onData onDone onHelp onSkip openId over polled problem query refresh refusal saw settings step ' +
  'subject texts total view what who wholeMs wide';
/** The private fields of Preact, which it has shortened already except for their two underscores. */
const OWN_OF_PREACT = '__\\w?';

const shortened = (names: string): MinifyOptions => ({
  mangleProps: { include: new RegExp(`^(${names.replaceAll(' ', '|')})$`), quoted: true },
});

/**
 * The first lines of the command, which unpack the others. They listen to SIGUSR1, because otherwise it opens a debugger. The code is the body of a function,
 * which receives `require`, `self` and `page`: `require` is faster than an import, which reads each export of a Node module.
 */
const unpacking = (packed: string, notice: string): string => `#!/usr/bin/env node
${notice}import{createRequire as c}from"node:module"
process.on("SIGUSR1",_=>_)
const s=import.meta.url,r=c(s),[y,f,p]=\`\${r("node:zlib").brotliDecompressSync(Buffer.from("${packed}","base64"))}\`.split("\\0")
Function("require","self","page",f)(r,s,{script:p,style:y})
`;

/** The owner of a package, in a line. The whole licence is in LICENSES.txt, which `npm run build` writes beside the command. */
function noticeOf({ name, version, license, texts }: BundledPackage): string {
  const [owner = ''] = /^Copyright .*$/m.exec(texts.join('\n')) ?? [];
  return `// ${name} ${version} (${license}) ${owner}\n`;
}

async function bundleVerbs(): Promise<{ code: string; inputs: string[] }> {
  const { output } = await build({
    ...PROGRAM,
    cwd: import.meta.dirname,
    input: 'src/main.ts',
    transform: { ...PROGRAM.transform, define: { 'import.meta.url': 'self' } },
    plugins: [inOneFile],
  });
  // No function that is imported from Node reads `this`.
  const code = output[0].code.replace(/\(0, (node_\w+\.\w+)\)\(/g, '$1(');
  return { code, inputs: [...inputsOf(output).keys()] };
}

const PROGRAM = {
  platform: 'node',
  transform: { target: 'node20' },
  logLevel: 'warn',
  write: false,
  output: { format: 'cjs', codeSplitting: false },
} as const satisfies BuildOptions;

/** Modules that the build replaces. */
const REPLACED: [file: RegExp, code: (path: string) => Promise<string> | string][] = [
  [/console\/files\.ts$/, () => 'export const pageFiles = async () => page;'],
  // The guard becomes a text for `node -e`, so that the command stays one file.
  [
    /guard\/program\.ts$/,
    async (path) => {
      const input = join(dirname(path), 'main.ts');
      const { output } = await build({ ...PROGRAM, input, output: { ...PROGRAM.output, minify: true } });
      return `export const GUARD_ARGS = ${JSON.stringify(['-e', output[0].code.trim()])};`;
    },
  ],
  // The shell does not need the indentation of its script.
  [/guard\/terminal-job\.ts$/, async (path) => (await readFile(path, 'utf8')).replace(/^ +/gm, '')],
  // The command always contains the signer, so it needs no code that loads it later.
  [
    /clients\/typescript\/src\/http\.ts$/,
    async (path) =>
      `import { signed } from './sigv4.ts';${(await readFile(path, 'utf8')).replace(/const \{ signed \} = await import.*/, '')}`,
  ],
  [/src\/load\.ts$/, () => 'export const load = require;'],
  [/src\/aws\/program\.ts$/, async (path) => (await readFile(path, 'utf8')).replace('./main.ts', `./${SEARCH_FILE}`)],
];

const inOneFile: Plugin = {
  name: 'in one file',
  load: (path) => REPLACED.find(([file]) => file.test(path))?.[1](path),
};
