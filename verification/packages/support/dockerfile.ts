import { cp, mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** A Dockerfile that only copies files, as far as a test can play it without Docker. */
export async function dockerfile(path: string, context: string) {
  const instructions = (await readFile(path, 'utf8'))
    .split('\n')
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => line.split(' '));
  const wordsOf = (name: string) => instructions.filter(([first]) => first === name).map(([, ...words]) => words);
  const [entryPoint = ''] = wordsOf('ENTRYPOINT').map((words) => words.join(' '));
  return {
    names: [...new Set(instructions.map(([name]) => name))].sort(),
    wordsOf,
    /** The program of the entry point, with its arguments. */
    entryPoint: JSON.parse(entryPoint) as string[],
    /** What Docker does for each COPY. @param root the root folder of the image */
    copyTo: async (root: string): Promise<void> => {
      for (const words of wordsOf('COPY')) {
        const target = join(root, words.at(-1) ?? '');
        const isFolder = `${words.at(-1)}`.endsWith('/');
        await mkdir(isFolder ? target : dirname(target), { recursive: true });
        for (const source of words.slice(0, -1))
          await cp(join(context, source), isFolder ? join(target, basename(source)) : target, { recursive: true });
      }
    },
  };
}
