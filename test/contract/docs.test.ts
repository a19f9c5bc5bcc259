import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../../contract/errors.ts';
import { referencePages } from '../../contract/reference/pages.ts';
import { ROUTES } from '../../contract/routes.ts';

const pages = referencePages();
const text = Object.values(pages).join('\n');

describe('the reference in docs/api', () => {
  it('the reference in docs/api is what the contract says, and has no other page', async () => {
    expect((await readdir('docs/api')).toSorted()).toEqual(Object.keys(pages).toSorted());
    for (const [name, page] of Object.entries(pages)) expect(await readFile(`docs/api/${name}`, 'utf8')).toBe(page);
  });

  it('the reference in docs/api has a section for each call, with its route and an example of its success', () => {
    for (const { summary, method, path } of ROUTES) {
      const [, section = ''] = text.split(`\n## ${summary}\n`);
      const [own = ''] = section.split('\n## ');
      expect(own).toContain(`\`${method} ${path}\``);
      expect(own, summary).toMatch(/Answer, `20[01]`:/);
    }
  });

  it('the reference in docs/api has a section for each error', () => {
    for (const error of ERROR_CODES) expect(pages['errors.md']).toContain(`\n### ${error}\n`);
  });

  it('the reference in docs/api says what each field means', () => {
    expect(text.match(/^\|.*\| {2}\|$/gm) ?? []).toEqual([]);
  });

  it('the reference in docs/api has pages of at most 3,200 words, without the marks of tables', () => {
    for (const [name, page] of Object.entries(pages))
      expect(page.split(/\s+/).filter((word) => word !== '|').length, name).toBeLessThanOrEqual(3200);
  });
});
