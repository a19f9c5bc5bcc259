import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../../build/bundle.ts';
import { aFew } from '../support/time/rounds.ts';

const SOURCES = ['functions/leases/acquire.ts', 'functions/nameservice/publish.ts', 'functions/expiry/report.ts'];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-start-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Prints the exports of a module, and the files and the modules of Node that an import of the module loads. */
const LOADER = `
  import { registerHooks } from 'node:module';
  const files = [];
  registerHooks({ load: (url, context, next) => { if (url.startsWith('file:')) files.push(url); return next(url, context); } });
  const { default: _, ...exported } = await import(process.argv[1]);
  console.log(JSON.stringify({ exported: Object.keys(exported), files, ofNode: process.moduleLoadList }));
`;

describe.each(aFew(1, SOURCES))('the bundle of %s', (source) => {
  it('a function loads one file beside index.mjs, and does not load node:util', async () => {
    const target = join(folder, source);
    await bundle(source, target);
    const args = ['--input-type=module', '--eval', LOADER, join(target, 'index.mjs')];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { exported, files, ofNode } = JSON.parse(stdout) as Record<'exported' | 'files' | 'ofNode', string[]>;
    // The code of the bundler may be a third file. The hash in a name may have hyphens.
    const names = files.map((file) => file.replace(/.*\//, '').replace(/-[\w-]{8}\.mjs$/, ''));
    expect(names.filter((name) => name !== 'rolldown-runtime')).toEqual(['index.mjs', 'start']);
    expect(exported.sort()).toEqual([source.replace(/.*\/|\.ts$/g, ''), 'handler'].sort());
    // An import of named exports of node:util also loads this module, which takes 3 ms of every cold start.
    expect(ofNode).not.toContain('NativeModule worker_threads');
  });
});
