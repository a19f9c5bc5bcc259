import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { beyond, executablePath, pageTests, picture, violations } from '../support/programs/console-page.ts';
import { isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';

const site = pageTests({ shareTab: true });

const OPERATOR = 'arn:aws:sts::123456789012:assumed-role/Operator/ann';
const LONG = `long/${'0123456789'.repeat(102)}`.slice(0, 1024);

/** A caller that waits for as long as it takes. */
function waitFor(key: string, options: { limit?: number } = {}) {
  const ended = new AbortController();
  const holdfast = new Holdfast({ endpoint: site.world.url, holder: 'patient' });
  const acquired = holdfast
    .acquire(key, { ...options, waitMs: Number.POSITIVE_INFINITY, signal: ended.signal })
    .catch(() => undefined);
  return {
    end: async () => {
      ended.abort();
      await (await acquired)?.release();
    },
  };
}

/** The screens of a desk and of a phone, by day and by night. */
const SCREENS = [
  ['wide', 'light', { width: 1280, height: 760 }],
  ['wide', 'dark', { width: 1280, height: 760 }],
  ['phone', 'light', { width: 390, height: 844 }],
  ['phone', 'dark', { width: 390, height: 844 }],
] as const;

/** The widest and the narrowest alone, unless everything is tested. */
const screens = isFull || process.env.PICTURES ? SCREENS : [SCREENS[0], SCREENS[3]];

/** What axe finds on each screen, and what makes the screen scroll sideways. */
async function faults(page: Page, name: string): Promise<unknown[]> {
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

describe.runIf(executablePath)('the page', () => {
  it('the page sorts the list by each column, and reverses the order at a second click', async () => {
    await site.world.acquire('sort/b', { holder: 'zoe', ttlSeconds: 300, limit: 2 });
    await site.world.acquire('sort/a', { holder: 'eve', ttlSeconds: 600 });
    await site.world.acquire('sort/c', { holder: 'ann', ttlSeconds: 900 });
    await site.world.park('sort/c', 'next', { parkSeconds: 90 });
    const page = await site.open('#/leases?q=sort/');
    const keys = async () =>
      (await page.locator('.leases tbody th').allInnerTexts()).map((key) => key.replace('sort/', '')).join('');
    const head = (name: string) => page.getByRole('columnheader', { name });
    await expect.poll(keys).toBe('abc');
    for (const [name, first, sorted] of [
      ['Time left', 'bac', 'ascending'],
      ['Held since', 'bac', 'ascending'],
      ['Holder', 'cab', 'ascending'],
      ['Kind', 'acb', 'ascending'],
      ['In line', 'cab', 'descending'],
      ['State', 'abc', 'ascending'],
      ['Key', 'abc', 'ascending'],
    ] as const) {
      await head(name).getByRole('link').click();
      await expect.poll(keys).toBe(first);
      expect(await head(name).getAttribute('aria-sort')).toBe(sorted);
      expect(await page.locator('th[aria-sort]').count()).toBe(1);
      await head(name).getByRole('link').click();
      await expect.poll(keys).toBe([...first].reverse().join(''));
      expect(await head(name).getAttribute('aria-sort')).toBe(sorted === 'ascending' ? 'descending' : 'ascending');
    }
    // The order is in the address.
    await page.reload();
    await expect.poll(keys).toBe('cba');
    await page.setViewportSize(SCREENS[2][2]);
    await head('Holder').getByRole('link').click();
    await expect.poll(keys).toBe('cab');
    await page.setViewportSize(SCREENS[0][2]);
  });

  it('the page shows two lines of a key of 1,024 bytes with the whole key as a tooltip, and leaves the holder its place', async () => {
    await site.world.acquire(LONG, { holder: 'airflow/dag=exports', ttlSeconds: 600 });
    await site.world.acquire('long/other', { holder: 'airflow/dag=exports', ttlSeconds: 600 });
    const page = await site.open('#/leases?q=long/');
    const row = page.getByRole('row', { name: LONG });
    await row.waitFor();
    expect(await row.getByTitle(LONG, { exact: true }).textContent()).toBe(LONG);
    expect((await row.boundingBox())?.height).toBeLessThan(80);
    const one = await page.getByRole('row', { name: 'long/other' }).getByText('airflow/dag=exports').boundingBox();
    const beside = await row.getByText('airflow/dag=exports').boundingBox();
    expect(beside).toMatchObject({ width: one?.width, height: one?.height });
    expect(beside?.height).toBeLessThan(30); // one line
    expect(await faults(page, 'long-list')).toEqual([]);
    await page.getByRole('link', { name: LONG }).click();
    const detail = page.getByRole('region', { name: LONG });
    await detail.getByText('airflow/dag=exports').waitFor();
    expect((await detail.getByRole('heading', { name: LONG }).boundingBox())?.height).toBeLessThan(80);
    expect(await faults(page, 'long-key')).toEqual([]);
    await detail.getByText('The whole key').click();
    await detail.getByRole('paragraph').getByText(LONG, { exact: true }).waitFor();
    expect(await faults(page, 'long-key-open')).toEqual([]);
    await detail.getByRole('button', { name: 'Break lease…' }).click();
    await page.getByRole('dialog').waitFor();
    expect(await faults(page, 'long-key-dialog')).toEqual([]);
    await page.keyboard.press('Escape');
  });

  it('the page distinguishes a key without a record from a key that was released', async () => {
    const page = await site.open('#/leases/typo-key');
    const never = page.getByRole('region', { name: 'typo-key' });
    await never.getByText('no record', { exact: true }).waitFor();
    await never.getByText('No caller has used this key').waitFor();
    expect(await never.getByText('free').count()).toBe(0);
    expect(await faults(page, 'never-seen')).toEqual([]);
    const { leaseId } = await site.world.acquire('was-used', { holder: 'ann' });
    await site.world.post('leases/release', { key: 'was-used', leaseId });
    await page.evaluate("location.hash = '#/leases/was-used'");
    const used = page.getByRole('region', { name: 'was-used' });
    await used.getByText('released', { exact: true }).waitFor();
    await used.getByText('Last holder').waitFor();
    expect(await used.getByText('no record').count()).toBe(0);
  });

  it('the page shows how long a caller has waited, and no deadline of a caller that waits without end', async () => {
    await site.world.acquire('patience', { ttlSeconds: 600 });
    const waiting = waitFor('patience');
    await until(async () => (await site.world.get('leases?key=patience')).waiting).toBe(1);
    await site.world.park('patience', 'a task', { parkSeconds: 3600 });
    const page = await site.open('#/leases/patience');
    const line = page.getByRole('region', { name: 'patience' }).locator('.queue').getByRole('listitem');
    await expect.poll(() => line.count()).toBe(2);
    const [caller, task] = [line.nth(0), line.nth(1)];
    await caller.getByText(/^patient/).waitFor();
    await caller.getByText(/has waited [1-9] s/).waitFor();
    expect(await caller.locator('.draining').count()).toBe(0);
    expect(await caller.getByText('gives up').count()).toBe(0);
    await task.getByText(/has waited [1-9] s/).waitFor();
    await task.getByText('gives up').waitFor();
    await task.locator('.draining').getByText('59 min').waitFor();
    expect(await faults(page, 'line')).toEqual([]);
    await waiting.end();
  });

  it('the page shows that a bound lease or permit lasts until its execution ends, and no time', async () => {
    await site.world.holdBound('bound/lease');
    await site.world.holdBound('bound/pool', { limit: 2 });
    const page = await site.open('#/leases?q=bound/');
    await expect.poll(() => page.getByText('until its execution ends').count()).toBe(2);
    await page.evaluate("location.hash = '#/leases/bound/lease'");
    const detail = page.getByRole('region', { name: 'bound/lease' });
    await detail.getByText('until its execution ends').waitFor();
    for (const name of ['Ends unless extended', 'Each heartbeat gives'])
      expect(await detail.locator('dt', { hasText: name }).count()).toBe(0);
    expect(await faults(page, 'bound')).toEqual([]);
    await detail.getByRole('button', { name: /^Break lease/ }).click();
    await page.getByText('the holder may work on as long as its execution runs').waitFor();
    await page.getByText(/^aws stepfunctions stop-execution --region \S+ --execution-arn arn:aws:states:/).waitFor();
    await page.keyboard.press('Escape');
    await page.evaluate("location.hash = '#/leases/bound/pool'");
    await page.getByRole('region', { name: 'bound/pool' }).getByText('until its execution ends').waitFor();
  });

  it('the page names who broke a lease and when, while it ends and after the grant to the next in line', async () => {
    const { fence, leaseId } = await site.world.acquire('who', { holder: 'slow', ttlSeconds: 600 });
    await site.world.breakAs(OPERATOR, { key: 'who', fence, wait: true });
    await site.world.park('who', 'next', { parkSeconds: 90 });
    const page = await site.open('#/leases/who');
    const detail = page.getByRole('region', { name: 'who' });
    const fact = (name: string) => detail.locator('dt', { hasText: name }).locator('+ dd');
    await expect
      .poll(() => fact('Broken').textContent())
      .toMatch(new RegExp(`^\\w+ \\d+, [\\d:]{8} \\S+ by ${OPERATOR}$`));
    expect(await faults(page, 'broken')).toEqual([]);
    await site.world.post('leases/release', { key: 'who', leaseId });
    await expect
      .poll(() => fact('Holder before').textContent())
      .toMatch(new RegExp(`^slow, broken \\w+ \\d+, [\\d:]{8} \\S+ by ${OPERATOR}$`));
    expect(await fact('Broken').count()).toBe(0);
    expect(await faults(page, 'after-break')).toEqual([]);

    const permit = await site.world.acquire('whose', { holder: 'slow', limit: 2, ttlSeconds: 600 });
    await site.world.breakAs(OPERATOR, { key: 'whose', fence: permit.fence, wait: true });
    await page.evaluate("location.hash = '#/leases/whose'");
    await page.getByRole('region', { name: 'whose' }).getByText(`by ${OPERATOR}`).waitFor();
    expect(await faults(page, 'broken-permit')).toEqual([]);
  });

  it('the page shows the day of each instant and the time zone, and changes to UTC and back', async () => {
    const { expiresAt } = (await site.world.acquire('zone', { ttlSeconds: 600 })) as object as { expiresAt: string };
    const page = await site.open('#/history');
    const browser = await page.context().newCDPSession(page);
    await browser.send('Emulation.setTimezoneOverride', { timezoneId: 'Europe/Berlin' });
    await page.reload();
    await page.evaluate("location.hash = '#/leases/zone'");
    const zone = page.getByRole('button', { name: /^Time zone:/ });
    const ends = page.getByRole('region', { name: 'zone' }).locator('dt', { hasText: 'Ends unless' }).locator('+ dd');
    const expected = (timeZone: string) =>
      new Date(expiresAt).toLocaleString('en-US', {
        ...({ month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' } as const),
        ...({ hourCycle: 'h23', timeZoneName: 'short', timeZone } as const),
      });
    for (const name of ['Europe/Berlin', 'UTC', 'Europe/Berlin']) {
      await zone.filter({ hasText: name }).waitFor();
      expect(await ends.textContent()).toBe(expected(name));
      await zone.click();
    }
    await page.reload();
    await zone.filter({ hasText: 'UTC' }).waitFor();
    await expect.poll(() => ends.textContent()).toBe(expected('UTC'));
    await browser.send('Emulation.setTimezoneOverride', { timezoneId: '' });
    await browser.detach();
  });

  it('the page says once that no answer comes, with an open key beside the list, and goes on in both when one comes', async () => {
    await site.world.acquire('unanswered', { ttlSeconds: 600 });
    const page = await site.open('#/leases/unanswered', { expectsRefusals: true });
    await page.getByRole('region', { name: 'unanswered' }).getByText('worker-1').waitFor();
    let failed = 0;
    await page.route('**/v1/leases?*', (route) => {
      failed++;
      return route.abort();
    });
    const alerts = page.getByRole('alert');
    await alerts.getByText('No answer').waitFor();
    await expect.poll(() => failed, { timeout: 20_000 }).toBeGreaterThan(3);
    expect(await alerts.count()).toBe(1);
    expect(await faults(page, 'no-answer')).toEqual([]);
    await page.unroute('**/v1/leases?*');
    await alerts.waitFor({ state: 'detached' });
    await page.waitForTimeout(300);
    expect(await alerts.count()).toBe(0);
  });
});
