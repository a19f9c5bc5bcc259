import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';
import type { Failure, Report } from './report.ts';

/** Writes BUSY_REPORT: Vitest's own JSON leaves out causes, by which alone a poll says that its time ran out. */
export default class BusyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const failures: Failure[] = unhandled.map((error) => ({ test: 'outside of tests', messages: messagesOf(error) }));
    let passed = 0;
    for (const module of modules) {
      const add = (test: string, errors: readonly SerializedError[] = []) => {
        if (errors.length > 0)
          failures.push({ test: `${module.moduleId} > ${test}`, messages: errors.flatMap(messagesOf) });
      };
      add('the file', module.errors());
      for (const suite of module.children.allSuites()) add(suite.fullName, suite.errors());
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        if (state === 'passed') passed++;
        add(test.fullName, state === 'failed' ? errors : []);
      }
    }
    const report: Report = { passed, failures };
    writeFileSync(process.env.BUSY_REPORT ?? '', JSON.stringify(report));
  }
}

/** Of an error and its causes. */
function messagesOf(error: SerializedError): string[] {
  const cause = error.cause as SerializedError | undefined;
  return [String(error.message), ...(cause ? messagesOf(cause) : [])];
}
