import type { PageFiles } from './serve.ts';

let files: Promise<PageFiles> | undefined;

/** The page, which is bundled at the first request. The build of `holdfast` replaces this module with the finished files. */
export function pageFiles(): Promise<PageFiles> {
  files ??= import('./bundle.ts').then(({ bundlePage }) => bundlePage());
  return files;
}
