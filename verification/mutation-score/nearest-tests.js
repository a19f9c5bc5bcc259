import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { strykerPlugins as theirs } from '@stryker-mutator/vitest-runner';

/**
 * Stryker's runner for vitest. It tries each mutant only with the few tests that are likely to catch it.
 *
 * @typedef {{ status: string, killedBy?: string[], errorMessage?: string, failureMessage?: string, nrOfTests?: number }} Result
 * @typedef {{ activeMutant: { id: string }, testFilter?: string[] }} MutantRun
 * @typedef {{
 *   times: Record<string, number>, loads: Record<string, number>,
 *   covered: Record<string, string[]>, early: Record<string, string[]>, loaded: string[]
 * }} Coverage how long each test takes, and each file to load; the mutants that a test runs, a file outside of its tests, and a module
 */

/** Keeps the coverage of the dry run, because Stryker starts this process again after a mutant that hangs. */
const COVERAGE = 'nearest-tests.json';

/** The most tests tried on a mutant, counted in tests of the usual length. `npm run verify -- mutation-score --open` tries the survivors with all tests. */
const MOST = Number(process.env.MUTATION_TESTS ?? Number.POSITIVE_INFINITY);

/** Mutants are numbered from 0. */
const NO_MUTANT = '-1';

/** Mutants are numbered by their place in the source. A mutant within this many numbers is near. */
const NEAR = 12;

/** For how long a passed test is trusted. If its emulator then fails, or other tests leave something there, it would catch every later mutant. */
const TRUSTED_MS = 60_000;

class NearestTests {
  /** @type {Coverage | undefined} */
  #coverage;
  /** Tests, and first the one that caught a mutant last. */
  #killers = /** @type {string[]} */ ([]);
  /** Whether a test passed alone, and when. */
  #passing = /** @type {Map<string, { passes: boolean, at: number }>} */ (new Map());
  /** How the next run loads what it tests. */
  #mode = { isEarly: false, reloads: false };

  /** @param inner Stryker's own runner, whose `ctx` is vitest */
  constructor(inner) {
    this.inner = inner;
  }

  capabilities = () => this.inner.capabilities();
  init = () => this.inner.init();
  dispose = () => this.inner.dispose();

  async dryRun(options) {
    this.#provide({ isEarly: false, reloads: false });
    const result = await this.inner.dryRun(options);
    // A file with only types has no mutants.
    if (result.status !== 'complete' || !result.mutantCoverage) return result;
    /** @type {Coverage} */
    const coverage = { times: {}, loads: {}, covered: {}, early: {}, loaded: [] };
    for (const { id, timeSpentMs } of result.tests) coverage.times[id] = timeSpentMs;
    for (const [test, mutants] of Object.entries(result.mutantCoverage.perTest))
      coverage.covered[test] = Object.keys(mutants);
    for (const { name, meta, collectDuration } of this.inner.ctx.state.getFiles()) {
      coverage.loads[name] = collectDuration ?? 0;
      coverage.early[name] = meta.early ?? [];
      if (meta.loaded) coverage.loaded = meta.loaded;
    }
    writeFileSync(COVERAGE, JSON.stringify(coverage));
    this.#coverage = coverage;
    return result;
  }

  /** @param {MutantRun} options @returns {Promise<Result>} */
  async mutantRun(options) {
    this.#coverage ??= /** @type {Coverage} */ (JSON.parse(readFileSync(COVERAGE, 'utf8')));
    const { id } = options.activeMutant;
    const reloads = this.#coverage.loaded.includes(id);
    // If code outside of tests runs a mutant, Stryker names files in the place of tests.
    const isEarly = !options.testFilter?.some((test) => test.includes('#'));
    this.#provide({ isEarly, reloads });
    const tests = isEarly ? this.#meeting(id, reloads) : (options.testFilter ?? []);
    const known = this.#killers.filter((test) => tests.includes(test) && this.#isQuick(test)).slice(0, 4);
    const others = this.#nearest(
      id,
      tests.filter((test) => !known.includes(test)),
    );
    let nrOfTests = 0;
    for (const some of [known, others]) {
      if (some.length === 0) continue;
      const result = await this.#confirmed({ ...options, testFilter: some });
      if (result.status === 'killed') this.#note(result.killedBy ?? []);
      if (result.status !== 'survived') return result;
      nrOfTests += result.nrOfTests ?? 0;
    }
    return { status: 'survived', nrOfTests };
  }

  /** The tests whose file, or a module that they import, runs the mutant while it loads. */
  #meeting(id, reloads) {
    const { times, covered, early } = /** @type {Coverage} */ (this.#coverage);
    const tests = Object.keys(times);
    if (reloads) return tests;
    return tests.filter((test) => covered[test]?.includes(id) || early[fileOf(test)]?.includes(id));
  }

  #isQuick(test) {
    const { times, loads } = /** @type {Coverage} */ (this.#coverage);
    return times[test] + loads[fileOf(test)] < 10 * this.#usual();
  }

  /** How long half of the tests take at most, in ms. */
  #usual() {
    const times = Object.values(/** @type {Coverage} */ (this.#coverage).times).toSorted((a, b) => a - b);
    return times[times.length >> 1] || 1;
  }

  /** The tests that run mostly code near the mutant, best value for their time first, until the time is used up. */
  #nearest(id, tests) {
    const { covered, times, loads } = /** @type {Coverage} */ (this.#coverage);
    const usual = this.#usual();
    const worth = (test) => {
      const all = covered[test] ?? [];
      const near = all.filter((other) => Math.abs(Number(other) - Number(id)) <= NEAR).length;
      return (1 + near) / (all.length + NEAR) / (times[test] + loads[fileOf(test)] / 4 + usual);
    };
    const worths = new Map(tests.map((test) => [test, worth(test)]));
    const loaded = new Set();
    let left = usual * MOST;
    return tests
      .toSorted((a, b) => worths.get(b) - worths.get(a))
      .filter((test) => {
        if (left <= 0) return false;
        left -= times[test] + (loaded.has(fileOf(test)) ? 0 : loads[fileOf(test)]);
        loaded.add(fileOf(test));
        return true;
      });
  }

  /**
   * A mutant is caught by a test that fails alone as well, and that passes alone without the mutant. Otherwise the machine may be the reason, or
   * what another test has left behind.
   */
  async #confirmed(options) {
    const result = await this.#outcome(options);
    if (result.status !== 'killed') return result;
    const [test] = /** @type {string[]} */ (result.killedBy);
    const again = await this.#outcome({ ...options, testFilter: [test] });
    if (again.status === 'timeout' || (again.status === 'killed' && (await this.#passesWithout(test, options))))
      return again;
    return this.#confirmed({ ...options, testFilter: options.testFilter.filter((other) => other !== test) });
  }

  /** @param {string} test @param {MutantRun} options @returns {Promise<boolean>} whether the test passes alone where no mutant is active */
  async #passesWithout(test, options) {
    const known = this.#passing.get(test);
    if (known && Date.now() - known.at < TRUSTED_MS) return known.passes;
    const mode = this.#mode;
    this.#provide({ isEarly: false, reloads: false });
    const result = await this.#outcome({
      ...options,
      activeMutant: { ...options.activeMutant, id: NO_MUTANT },
      testFilter: [test],
    });
    this.#provide(mode);
    const passes = result.status === 'survived';
    if (!passes) appendFileSync(process.env.MUTATION_DOUBTS, `${test}: ${result.failureMessage}\n`);
    this.#passing.set(test, { passes, at: Date.now() });
    return passes;
  }

  /** What fails before its first test is caught, too. */
  async #outcome(options) {
    if (options.testFilter.length === 0) return { status: 'survived', nrOfTests: 0 };
    const result = await this.inner.mutantRun({ ...options, mutantActivation: 'runtime' });
    if (result.status !== 'error') return result;
    const [test] = options.testFilter;
    return { status: 'killed', killedBy: [test], failureMessage: result.errorMessage, nrOfTests: 1 };
  }

  #note(tests) {
    this.#killers = [...tests, ...this.#killers.filter((test) => !tests.includes(test))];
  }

  #provide(values) {
    this.#mode = values;
    for (const [name, value] of Object.entries(values)) this.inner.ctx.provide(name, value);
  }
}

const fileOf = (test) => test.split('#')[0] ?? '';

create.inject = ['$injector'];
function create(injector) {
  const [vitest] = theirs;
  return new NearestTests(vitest.factory(injector));
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'nearest-tests', factory: create }];
