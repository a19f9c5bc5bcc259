import type { PageFiles } from './serve.ts';

/** The page, bundled when it is first asked for. The bundle of `holdfast` has the finished files in place of this module. */
export async function pageFiles(): Promise<PageFiles> {
  const { bundlePage } = await import('./bundle.ts');
  return bundlePage();
}
