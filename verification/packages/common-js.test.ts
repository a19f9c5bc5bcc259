import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { emptyFolder, run } from './support/run.ts';
import { toolIn } from './support/tools.ts';

const OLDEST_NODE = toolIn('oldest-node/bin/node');
const NODES = Object.entries({ 'this Node': process.execPath, 'Node 20.3': OLDEST_NODE }).filter(([, path]) =>
  existsSync(path),
);
if (NODES.length === 1) console.log('skipped: npm has Node 20.3 only for Linux on x64');

/** Uses each entry, and each part that the ES module loads later. It ends with 0 if all of them work, and with the error otherwise. */
const PROGRAM = `import { strict as assert } from 'node:assert';
import { Holdfast, HoldfastError, isHoldfastError, type Lease } from 'holdfast-client';
import { directTransport } from 'holdfast-client/direct';
import { withLease } from 'holdfast-client/durable';
import { leased } from 'holdfast-client/handlers';
import { lambdaTransport } from 'holdfast-client/lambda';
import { nodeCronCoordinator } from 'holdfast-client/node-cron';
import { MemoryService } from 'holdfast-client/testing';

export async function main(): Promise<void> {
  const service = new MemoryService();
  const holdfast = new Holdfast({ transport: service.transport, holder: 'test' });
  const fence: number = await holdfast.withLease('a', (lease: Lease) => lease.fence);
  assert.ok(fence > 0);
  await holdfast.withLeases([{ key: 'b' }, { key: 'c' }], (held) => held.assertHeld());
  await holdfast.once('d', () => 1);
  await holdfast.rate('e', { limit: 1, per: '1s' });
  service.hold('held', { holder: 'other' });
  const context = { getRemainingTimeInMillis: () => 60_000 };
  assert.equal(await leased({ holdfast, key: 'held', onHeld: 'skip' })(() => 1)({}, context), undefined);
  const coordinator = nodeCronCoordinator(holdfast);
  assert.equal(await coordinator.shouldRun('f:2026-01-01T00:00:00.000Z', 1000), true);
  await coordinator.onComplete('f:2026-01-01T00:00:00.000Z');
  for (const one of [directTransport, lambdaTransport, withLease]) assert.equal(typeof one, 'function');
  try {
    await holdfast.acquire('held');
    assert.fail();
  } catch (error) {
    assert.ok(isHoldfastError(error, 'LeaseHeld') && error instanceof HoldfastError);
    assert.equal(error.holder, 'other');
  }
}
`;

const TEST = `import { main } from './program';
declare function test(title: string, work: () => Promise<void>): void;
test('the program works', main);
`;

/** Loads both modules of the client in one program. */
const BOTH = `const assert = require('node:assert/strict');
const required = { ...require('holdfast-client'), ...require('holdfast-client/handlers') };
async function main() {
  const imported = { ...await import('holdfast-client'), ...await import('holdfast-client/handlers') };
  const { MemoryService } = await import('holdfast-client/testing');
  assert.notEqual(required.HoldfastError, imported.HoldfastError);
  for (const [one, other] of [[required, imported], [imported, required]]) {
    const error = one.refusal(404, 'gone');
    assert.ok(other.isHoldfastError(error, 'Refused'));
    assert.ok(error instanceof other.HoldfastError);
    assert.ok(!other.isHoldfastError(new TypeError()) && !(null instanceof other.HoldfastError));
    const holdfast = new one.Holdfast({ transport: new MemoryService().transport, holder: 'test' });
    const context = { getRemainingTimeInMillis: () => 60_000 };
    await other.middyLease({ holdfast, key: 'a' }).before({ event: {}, context, internal: {} });
    assert.equal(one.leaseOf(context).key, 'a');
    await one.leaseOf(context).release();
  }
}
main();
`;

const STRICT = {
  ...{ target: 'es2022', lib: ['es2022', 'dom', 'esnext.disposable'], strict: true, skipLibCheck: true },
  ...{ types: ['node'], typeRoots: [resolve('node_modules/@types')], outDir: 'built' },
};

let project: Awaited<ReturnType<typeof emptyFolder>>;
let tarballs: string;
const write = (file: string, text: string | object) =>
  writeFile(join(project.folder, file), typeof text === 'string' ? text : JSON.stringify(text));

beforeAll(async () => {
  tarballs = await mkdtemp(join(tmpdir(), 'holdfast-tarball-'));
  const args = ['pack', '--workspace', 'holdfast-client', '--json', '--pack-destination', tarballs];
  const packed: { filename: string }[] | Record<string, { filename: string }> = JSON.parse(
    (await run('npm', args)).stdout,
  );
  const [{ filename = '' } = {}] = Object.values(packed);
  project = await emptyFolder('http://127.0.0.1:9');
  await write('package.json', { private: true });
  await write('program.ts', PROGRAM);
  await write('program.test.ts', TEST);
  await write('both.js', BOTH);
  const { exitCode, output } = await project.run('npm', ['install', '--offline', join(tarballs, filename)]);
  expect(exitCode, output).toBe(0);
  await mkdir(join(project.folder, 'node_modules'), { recursive: true });
  await symlink(resolve('node_modules/@aws-sdk'), join(project.folder, 'node_modules/@aws-sdk'));
});
afterAll(async () => {
  await project.remove();
  await rm(tarballs, { recursive: true, force: true });
});

const compile = async (compilerOptions: object, compiler = 'clients/typescript/node_modules/typescript') => {
  await write('tsconfig.json', { compilerOptions: { ...STRICT, ...compilerOptions }, files: ['program.ts'] });
  return project.run(process.execPath, [resolve(compiler, 'bin/tsc')]);
};

it.each([
  { module: 'commonjs', moduleResolution: 'node10' },
  { module: 'node16', skipLibCheck: false, exactOptionalPropertyTypes: true },
  { module: 'node18' },
  { module: 'node20' },
  { module: 'nodenext' },
  { module: 'preserve', moduleResolution: 'bundler', noEmit: true },
])('a CommonJS project of TypeScript 5.9 compiles with $module', async (options) => {
  expect(await compile(options)).toMatchObject({ exitCode: 0, output: '' });
});

it.each(NODES)('a compiled CommonJS project runs on %s, with each entry of the client', async (_, node) => {
  expect(await compile({ module: 'node16' })).toMatchObject({ exitCode: 0, output: '' });
  const ran = await project.run(node, ['-e', "require('./built/program.js').main()"]);
  expect(ran).toMatchObject({ exitCode: 0, output: '' });
});

it.each(NODES)('errors and leases pass between the ES module and the CommonJS module on %s', async (_, node) => {
  expect(await project.run(node, ['both.js'])).toMatchObject({ exitCode: 0, output: '' });
});

it.each(NODES)('ts-jest tests a CommonJS project on %s', async (_, node) => {
  await write('tsconfig.json', { compilerOptions: { ...STRICT, module: 'commonjs', moduleResolution: 'node10' } });
  const config = { rootDir: '.', testMatch: ['**/*.test.ts'], transform: { '\\.ts$': toolIn('ts-jest') } };
  const args = [toolIn('jest/bin/jest.js'), '--config', JSON.stringify(config)];
  const { exitCode, output } = await project.run(node, args);
  expect(exitCode, output).toBe(0);
});
