import type { PageFiles } from './serve.ts';

let files: Promise<PageFiles> | undefined;

/** The page, bundled when it is first asked for. The bundle of `holdfast` has the finished files in place of this module. */
export function pageFiles(): Promise<PageFiles> {
  files ??= import('./bundle.ts').then(({ bundlePage }) => bundlePage());
  return files;
}
