import { afterEach, beforeEach, vi } from 'vitest';

/** What the functions write to standard output and error during each test of a file or `describe`. */
export function capturedLog(): string[] {
  const written: string[] = [];
  beforeEach(() => {
    written.length = 0;
    for (const stream of [process.stdout, process.stderr])
      vi.spyOn(stream, 'write').mockImplementation((chunk) => {
        written.push(String(chunk));
        return true;
      });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    vi.resetModules(); // the logger reads its level when it is loaded
  });
  return written;
}
