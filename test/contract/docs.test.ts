import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type * as z from 'zod/mini';
import { ROUTES } from '../../contract/routes.ts';

const api = await readFile('docs/api.md', 'utf8');

/** The fields of an object, or of every member of a union. */
function fieldsOf(schema: z.core.$ZodType): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === 'object') return Object.keys(def.shape);
  return def.type === 'union' ? [...new Set(def.options.flatMap(fieldsOf))] : [];
}

const answerOf = (name: string) => ROUTES.find((route) => route.function === name)?.success[200]?.answer;

/** What a row says in two words. */
const IN_WORDS = {
  'the commit': answerOf('resetFence'),
  'the grant': answerOf('heartbeat'),
  'the summary': answerOf('report'),
};

/** What docs/nameservice.md and docs/commits.md tell instead. */
const ELSEWHERE: Record<string, { request?: boolean; answer?: string[] }> = {
  publish: { request: true },
  repairNames: { request: true },
  readNames: {
    answer: fieldsOf(ROUTES.find(({ function: name }) => name === 'readNames')?.success[200]?.answer as never),
  },
  commit: { answer: ['currentEtag'] },
  readCommit: { answer: ['versionId'] },
};

describe('the table of calls in docs/api.md', () => {
  it.each(ROUTES)('has a row of $method $path with every field that it takes and answers', (route) => {
    const rows = api.split('\n').filter((line) => line.startsWith(`| \`${route.method} ${route.path}`));
    const isOwn = (row: string) => /^[?`]/.test(row.slice(`| \`${route.method} ${route.path}`.length));
    const named = new Set(
      [
        ...rows
          .filter(isOwn)
          .join()
          .matchAll(/`(\w+)`/g),
      ].map(([, name]) => name),
    );
    for (const [words, schema] of Object.entries(IN_WORDS))
      if (schema && rows.join().includes(words)) for (const field of fieldsOf(schema)) named.add(field);
    const { request, answer = [] } = ELSEWHERE[route.function] ?? {};
    const answered = Object.values(route.success).flatMap((success) => fieldsOf(success.answer));
    const fields = [...(request ? ['op', 'alias', 'requestId'] : fieldsOf(route.request.schema)), ...answered];
    expect(rows.filter(isOwn).length).toBeGreaterThan(0);
    expect(fields.filter((field) => !named.has(field) && !answer.includes(field))).toEqual([]);
  });
});
