import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { executablePath, faults, pageTests, SCREENS } from '../support/programs/console-page.ts';
import { isFull } from '../support/time/rounds.ts';

const site = pageTests({ shareTab: true });

const OPERATOR = 'arn:aws:sts::123456789012:assumed-role/Operator/ann';
const DESK = { width: 1440, height: 900 };
const PHONE = SCREENS[3][2];

/** Opens the list, refreshes it twice, and scrolls. @returns the milliseconds of the processor that the longest task of the page took */
async function longestTask(page: Page): Promise<number> {
  const browser = page.context().browser();
  await browser?.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline'] });
  await page.evaluate("location.hash = '#/keys'");
  // The search of Playwright for an element would be a long task itself.
  await page.waitForTimeout(5000);
  for (const at of [12_000, 33_000]) {
    await page.evaluate(`scrollTo(0, ${at})`);
    await page.waitForTimeout(700);
  }
  const trace = JSON.parse(String(await browser?.stopTracing())) as { traceEvents: TraceEvent[] };
  const threads = trace.traceEvents.filter(({ args }) => args?.name === 'CrRendererMain').map(({ tid }) => tid);
  const tasks = trace.traceEvents.filter(({ name, tid }) => name.endsWith('RunTask') && threads.includes(tid));
  return Math.max(...tasks.map(({ tdur = 0 }) => tdur / 1000));
}

/** An event of Chromium's trace. Times are in microseconds. */
interface TraceEvent {
  name: string;
  tid: number;
  tdur?: number;
  args?: { name?: string };
}

describe.runIf(executablePath)('the list', () => {
  it('the list begins with what needs attention, under a heading with its number', async () => {
    const hold = (key: string, holder: string, more: object = {}) =>
      site.world.acquire(key, { holder, ttlSeconds: 900, ...more });
    await hold('nightly-report', 'etl@ip-10-0-3-17/4711');
    for (let at = 0; at < 11; at++) await site.world.park('nightly-report', `waiter-${at}`, { parkSeconds: 900 });
    await hold('billing/eu', 'billing-2');
    await site.world.capAs(OPERATOR, { key: 'billing/eu', limit: 0, reason: 'the database is down' });
    await site.world.abandon('etl/customers', 'etl@ip-10-0-3-18/991');
    for (let at = 1; at <= 5; at++) await hold('render', `render-${at}@gpu-${at}`, { limit: 5 });
    for (let at = 0; at < 2; at++) await site.world.park('render', `waiter-${at}`, { limit: 5, parkSeconds: 900 });
    await hold('catalog', 'query-1', { mode: 'shared' });
    await hold('deploy/prod/eu-west-1', 'ann@laptop-7/8812');
    const page = await site.open();
    await page.getByRole('row', { name: 'Needs attention 3' }).waitFor();
    const heads = async () => (await page.locator('.rows tbody th').allInnerTexts()).map((text) => text.trim());
    expect(await heads()).toEqual([
      ...['Needs attention 3', 'nightly-report', 'billing/eu', 'etl/customers'],
      ...['Others', 'catalog', 'deploy/prod/eu-west-1', 'render'],
    ]);
    await page.getByRole('row', { name: /etl\/customers expired ended 3 h ago etl@/ }).waitFor();
    expect(await faults(page, 'list')).toEqual([]);
    // A list that is sorted by a column does not have headings.
    await page.getByRole('columnheader', { name: 'Key' }).getByRole('link').click();
    const byKey = ['billing/eu', 'catalog', 'deploy/prod/eu-west-1', 'etl/customers', 'nightly-report', 'render'];
    await expect.poll(heads).toEqual(byKey);
  });

  it.runIf(isFull)('the row of a shared key shows how full the key is', async () => {
    for (const holder of ['first', 'second', 'third'])
      await site.world.acquire('full/shared', { holder, limit: 4, ttlSeconds: 600 });
    await site.world.acquire('full/alone', { ttlSeconds: 600 });
    const page = await site.open('#/keys?q=full/');
    const row = page.getByRole('row', { name: /full\/shared held 3 of 4 first and 2 more/ });
    expect(await row.locator('.bar span').getAttribute('style')).toBe('transform: scaleX(0.75);');
    const colour = () => page.evaluate("getComputedStyle(document.querySelector('.danger')).color");
    await page.evaluate("location.hash = '#/keys/full/alone'");
    await page.getByRole('button', { name: 'Break lease…' }).waitFor();
    const ofLease = await colour();
    await page.evaluate("location.hash = '#/keys/full/shared'");
    await page.getByRole('button', { name: 'Break… the permit of first' }).waitFor();
    expect(await colour()).toBe(ofLease);
    expect(await faults(page, 'shared-key')).toEqual([]);
  });

  it.runIf(isFull)('the page says how old its data is, and fades during an outage', async () => {
    await site.world.acquire('age', { ttlSeconds: 600 });
    const page = await site.open('#/keys?q=age', { expectsRefusals: true });
    const age = page.getByRole('banner').getByText(/^updated \d+ s ago$/);
    await age.waitFor();
    const styles = () =>
      page.evaluate(
        "[['.age', 'color'], ['.rows', 'filter']].map(([one, what]) => getComputedStyle(document.querySelector(one))[what])",
      ) as Promise<string[]>;
    const [calm, colours] = await styles();
    expect(colours).toBe('none');
    await page.route('**/v1/leases?*', (route) => route.abort());
    await page.getByRole('alert').getByText('The page shows the last answer.').waitFor();
    await expect.poll(async () => (await styles())[1]).toBe('grayscale(1)');
    expect((await styles())[0]).not.toBe(calm);
    expect(await faults(page, 'outage')).toEqual([]);
    await page.unroute('**/v1/leases?*');
    await expect.poll(styles, { timeout: 20_000 }).toEqual([calm, 'none']);
  });

  it.runIf(isFull)('a page without keys shows the command that holds the first one', async () => {
    const page = await site.open('#/history');
    await page.route('**/v1/*?limit=1000', (route) =>
      route.fulfill({ json: { leases: [], keys: [], nextCursor: null } }),
    );
    for (const [view, command] of [
      ['keys', 'npx holdfast run hello --endpoint http://127.0.0.1:3000 -- sleep 60'],
      ['once', 'npx holdfast run hello --once-per 1d --endpoint http://127.0.0.1:3000 -- date'],
      ['rates', 'npx holdfast run hello --rate 10/1m --endpoint http://127.0.0.1:3000 -- date'],
    ]) {
      await page.evaluate(`location.hash = '#/${view}'`);
      await page.getByText(String(command), { exact: true }).waitFor();
    }
    expect(await faults(page, 'empty')).toEqual([]);
    await page.unroute('**/v1/*?limit=1000');
  });

  it('the list keeps the beginning and the end of a key in one line', async () => {
    const key = `tenants/0123456789/exports/${'x'.repeat(13)}`;
    const long = `tenants/${'0123456789'.repeat(12)}/part-000017.parquet`;
    for (const one of [key, long]) await site.world.acquire(one, { holder: 'exporter@ip-10-0-3-17', ttlSeconds: 600 });
    const page = await site.open('#/keys?q=tenants/');
    await page.setViewportSize(DESK);
    const cell = page.getByRole('row', { name: key }).locator('.ends');
    await cell.waitFor();
    /** For each key the height of its line, and whether its beginning and its end are cut. */
    const lines = () =>
      page.evaluate(`[...document.querySelectorAll('.rows .ends')].map((ends) => [
        ends.clientHeight,
        ...[...ends.children].map(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
      ])`) as Promise<[number, boolean, boolean][]>;
    const line = expect.closeTo(18, -1);
    expect(await lines()).toEqual([
      [line, false, false],
      [line, true, false],
    ]);
    expect(await page.locator('.ends span').last().textContent()).toBe(long.slice(-12));
    // The list still shows what is in use while a key is open beside it.
    await page.getByRole('link', { name: key }).click();
    await page.getByRole('region', { name: key }).getByText('exporter@ip-10-0-3-17').waitFor();
    for (const name of ['Key', 'State', 'In use', 'In line', 'Holder'])
      expect(await page.getByRole('columnheader', { name }).isVisible()).toBe(true);
    for (const [height] of await lines()) expect(height).toEqual(line);
  });

  it('a phone shows all filters, and the sort order in one row', async () => {
    await site.world.acquire('phone', { ttlSeconds: 600 });
    const page = await site.open('#/keys');
    await page.setViewportSize(PHONE);
    await page.getByRole('link', { name: 'phone', exact: true }).waitFor();
    const tops = async (selector: string) => {
      const boxes = await Promise.all((await page.locator(selector).all()).map((one) => one.boundingBox()));
      for (const box of boxes) expect((box?.x ?? 999) + (box?.width ?? 999)).toBeLessThanOrEqual(PHONE.width);
      return new Set(boxes.map((box) => Math.round(box?.y ?? 0)));
    };
    expect((await tops('.banner nav a')).size).toBe(1);
    expect((await tops('.filters a')).size).toBe(1);
    expect((await tops('.rows thead a')).size).toBe(1);
    await page.setViewportSize(SCREENS[0][2]);
  });

  it.runIf(isFull)('the page draws only the rows near the screen, and searches all keys', async () => {
    await site.world.hold(1000);
    const page = await site.open('#/history');
    await page.setViewportSize(DESK);
    // Under 100 ms on a quiet machine. All rows at once took 300.
    const longest = await longestTask(page);
    expect(longest).toBeGreaterThan(5);
    expect(longest).toBeLessThan(process.env.PICTURES ? 100 : 200);
    await page.evaluate('scrollTo(0, 0)');
    await page.getByRole('link', { name: 'many/0000' }).waitFor();
    const drawn = () => page.locator('.rows tbody tr').count();
    expect(await drawn()).toBeLessThan(150);
    const head = page.getByRole('columnheader', { name: 'Holder' });
    for (const at of [400, 999, 200]) {
      const link = page.getByRole('link', { name: `many/${String(at).padStart(4, '0')}` });
      await page.evaluate(`scrollTo(0, ${at} * document.body.scrollHeight / 1000)`);
      await link.waitFor();
      expect(await drawn()).toBeLessThan(150);
      expect((await head.boundingBox())?.y).toBeGreaterThanOrEqual(40);
    }
    await page.getByRole('searchbox').fill('many/0987');
    await page.getByRole('status').getByText('1 key shown').waitFor({ state: 'attached' });
    await page.getByRole('link', { name: 'many/0987' }).waitFor();
    await page.getByRole('searchbox').fill('');
    expect(await faults(page, 'thousand')).toEqual([]);
  });
});
