import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { VARIES } from '../../../contract/examples/replay.ts';

/** A line before each answer, which separates the answers of one shell. */
const SEPARATOR = '--- answer of the next command ---';

/**
 * Pastes all console blocks of a document, in their order, into one empty shell, and compares the answers with the
 * written ones. Compares what varies from run to run by its type. A block has a command in its first line, which may go on after a
 * backslash, and further commands after further `$ `. The lines in between are answers.
 * @param url of the API, which the document has at port 3000
 * @param files that the shell's working directory holds
 * @returns how many commands there were
 */
export async function runExamples(markdown: string, url: string, files: string[] = []): Promise<number> {
  const examples = [...markdown.matchAll(/^```console\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
    commandsOf(block),
  );
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-examples-'));
  for (const file of files) await cp(file, join(folder, basename(file)));
  try {
    const script = examples.map(({ command }) => `echo '${SEPARATOR}'\n${command}\n`).join('');
    const answers = (await inEmptyShell(script.replaceAll('http://127.0.0.1:3000', url), folder)).split(
      `${SEPARATOR}\n`,
    );
    for (const [at, { command, answer }] of examples.entries())
      expect(shape(answers[at + 1] ?? ''), command).toEqual(shape(answer));
  } finally {
    await rm(folder, { recursive: true });
  }
  return examples.length;
}

function commandsOf(block: string): { command: string; answer: string }[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const end = /(?<!\\)\n/.exec(part)?.index ?? part.length;
      return { command: part.slice(0, end), answer: part.slice(end + 1) };
    });
}

async function inEmptyShell(script: string, folder: string): Promise<string> {
  const env = { PATH: process.env.PATH ?? '', HOME: folder };
  const shell = spawn('bash', ['--noprofile', '--norc'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
  shell.stdin.end(script);
  return text(shell.stdout);
}

/** The text without the space around it. In JSON, the type stands for each value that varies. */
function shape(answer: string): unknown {
  const trimmed = answer.trim();
  if (!trimmed.startsWith('{')) return trimmed;
  return JSON.parse(trimmed, (name, value) =>
    VARIES.includes(name) && value !== null && typeof value !== 'object' ? typeof value : value,
  );
}
