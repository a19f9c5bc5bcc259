import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { aFew } from '../time/rounds.ts';
import { type ConsoleWorld, consoleWorld } from '../worlds/console.ts';
import { chromiumIn } from './browser.ts';

/** The path of Chromium. Tests of the page run only with it. */
export const executablePath = chromiumIn();

interface OpenOptions extends BrowserContextOptions {
  /** Whether the test wants refused calls. Chromium reports each one as an error. */
  expectsRefusals?: boolean;
  /** The server of the page, if it is not the service itself. */
  url?: string;
}

/**
 * One browser for the tests of a file, and a service. Every error or warning of a page fails its test.
 * @param shareTab whether the tests share one tab. After each test, what its pages stored is cleared. A browser takes a second to begin another tab.
 */
export function pageTests({ shareTab = false } = {}) {
  let browser: Browser;
  let world: ConsoleWorld;
  let tab: Page | undefined;
  const expectsErrors = new WeakSet<Page>();
  const complaints: string[] = [];
  beforeAll(async () => {
    if (!executablePath) return;
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    world = await consoleWorld();
  });
  afterAll(async () => {
    await browser?.close();
    await world?.stop();
  });
  afterEach(async () => {
    if (tab?.url().startsWith('http')) await tab.evaluate('sessionStorage.clear(); localStorage.clear();');
    await tab?.goto('about:blank');
    for (const context of browser?.contexts() ?? []) if (context !== tab?.context()) await context.close();
    expect(complaints.splice(0)).toEqual([]);
  });
  const newTab = async (context: BrowserContextOptions) => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, ...context });
    page.setDefaultTimeout(60_000);
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('dialog', async (dialog) => {
      complaints.push(`a dialog: ${dialog.message()}`);
      await dialog.dismiss(); // nothing else in the page goes on before
    });
    page.on('console', (message) => {
      if (message.type() === 'error' && !expectsErrors.has(page)) complaints.push(message.text());
    });
    return page;
  };
  return {
    get world() {
      return world;
    },
    /** A tab with the page, at one of its places. */
    open: async (fragment = '', { expectsRefusals, url, ...context }: OpenOptions = {}): Promise<Page> => {
      if (tab && Object.keys(context).length > 0) throw new Error('a shared tab is as the first test opened it');
      const page = tab ?? (await newTab(context));
      if (shareTab) tab = page;
      if (expectsRefusals) expectsErrors.add(page);
      else expectsErrors.delete(page);
      await page.goto(`${url ?? world.url}/${fragment}`);
      return page;
    },
  };
}

let axe: Promise<string> | undefined;

/** What axe finds wrong. The debugger injects it, because the page's own policy refuses scripts from elsewhere. */
export async function violations(page: Page): Promise<string[]> {
  axe ??= readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(await axe);
  const found = (await page.evaluate('axe.run(document)')) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}

/** The elements that make the page scroll sideways. There must not be any. */
export const beyond = (page: Page): Promise<unknown> =>
  page.evaluate(`[...document.querySelectorAll('body *')]
    .filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.outerHTML.slice(0, 200))`);

/** Takes a picture for docs/console.md, in the folder that `npm run verify -- pictures` names. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  const taken = await page.screenshot({ path: join(process.env.PICTURES, `console-${name}.png`) });
  expect(taken.length).toBeGreaterThan(5000);
}

/** The screens of a desk and of a phone, by day and by night. */
export const SCREENS = [
  ['wide', 'light', { width: 1280, height: 760 }],
  ['wide', 'dark', { width: 1280, height: 760 }],
  ['phone', 'light', { width: 390, height: 844 }],
  ['phone', 'dark', { width: 390, height: 844 }],
] as const;

/** One screen, which the seed chooses, unless everything is tested. Axe needs half a second for each. */
const screens = process.env.PICTURES ? SCREENS : aFew(1, SCREENS);

/** What axe finds on the screens, and what makes a screen scroll sideways. */
export async function faults(page: Page, name: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const [device, colorScheme, viewport] of screens) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    found.push(...(await violations(page)), ...((await beyond(page)) as unknown[]));
    await picture(page, `${name}-${device}-${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(SCREENS[0][2]);
  return found;
}
