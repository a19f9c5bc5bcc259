import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/**
 * The template of the release 0.2.0, and the code of the functions that the tests call or that AWS invokes by itself: acquire, heartbeat, release,
 * repairQueues and executionEnded. Recorded so that a clone without history has them, and packed without the zips of `release/`, because the functions
 * share most of their code. Made at the commit 05986d9, whose contract is contract/released/0.2.0.json:
 *
 *     npm install && npm run release
 *     for name in acquire heartbeat release repairQueues executionEnded; do
 *       unzip -q release/holdfast-0.2.0/functions/$name-*.zip -d packed/functions/$name
 *     done
 *     cp release/holdfast-0.2.0/template.json packed
 *     tar --create --directory=packed --sort=name --mtime=2000-01-01 template.json functions | xz -9e >holdfast-0.2.0.tar.xz
 */
const ARCHIVE = resolve('verification/deployment/support/holdfast-0.2.0.tar.xz');

/** For every function of the template that is not recorded. Nothing invokes such a function. */
const STAND_IN = 'acquire';

export interface RecordedRelease {
  template: string;
  /** By the name that the template appends to the prefix of the code. */
  zips: Map<string, Buffer>;
}

export async function recordedRelease(): Promise<RecordedRelease> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-recorded-'));
  try {
    // Python unpacks and packs: the emulator needs it anyway.
    await python(['tarfile', '--extract', ARCHIVE, folder], folder);
    const template = await readFile(join(folder, 'template.json'), 'utf8');
    const recorded = await readdir(join(folder, 'functions'));
    const code = new Map<string, Buffer>();
    for (const name of recorded) {
      const zip = join(folder, `${name}.zip`);
      await python(['zipfile', '--create', zip, 'dist'], join(folder, 'functions', name));
      code.set(name, await readFile(zip));
    }
    const names = [...template.matchAll(/\$\{codePrefix\}((\w+)-\w+\.zip)/g)];
    const zips = names.map(([, zip, name]) => [String(zip), code.get(String(name)) ?? code.get(STAND_IN)] as const);
    return { template, zips: new Map(zips as [string, Buffer][]) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

const python = ([module = '', ...args]: string[], cwd: string) =>
  promisify(execFile)(resolve('.venv-ministack/bin/python'), ['-m', module, ...args], { cwd });
