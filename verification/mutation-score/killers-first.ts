import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from 'vitest/node';

/** Files of tests, and first the one that caught a mutant last. */
let killers: string[] = [];

/** One failing test is enough. The next mutant is usually in the next line, so the test that caught the last one probably catches it too. */
export class KillersFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      killers.includes(moduleId) ? killers.indexOf(moduleId) : killers.length;
    return files.toSorted((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}

export const noteKillers: Reporter = {
  onTestModuleEnd(module: TestModule): void {
    if (module.state() === 'failed') killers = [module.moduleId, ...killers.filter((one) => one !== module.moduleId)];
  },
};
