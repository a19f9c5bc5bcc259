import { describe, expect, it } from 'vitest';
import { startConsole } from '../../cli/src/console/server.ts';
import { refusal } from '../../clients/typescript/src/errors.ts';
import { httpTransport } from '../../clients/typescript/src/http.ts';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import type { Transport } from '../../clients/typescript/src/transport.ts';
import { beyond, executablePath, faults, pageTests, SCREENS, violations } from '../support/programs/console-page.ts';
import { until } from '../support/time/until.ts';

const site = pageTests();

describe.runIf(executablePath)('the page', () => {
  it('the page of holdfast console in a namespace shows and breaks only there', async () => {
    const ours = await site.world.acquire('team-a/job', { ttlSeconds: 600 });
    const others = await site.world.acquire('job', { ttlSeconds: 600 });
    const passOn = httpTransport({ endpoint: site.world.url }, () => Date.now());
    const transport: Transport = (operation, ...rest) => {
      if (operation === 'readNames') throw refusal(403, 'Forbidden');
      return passOn(operation, ...rest);
    };
    const options = { endpoint: site.world.url, namespace: 'team-a', local: true, write: true, port: 0 };
    const served = await startConsole({ ...options, token: 'T', transport });
    try {
      const page = await site.open('#token=T', { url: served.url, expectsRefusals: true });
      await page.getByRole('banner').getByText('namespace team-a', { exact: true }).waitFor();
      await page.getByRole('link', { name: 'job', exact: true }).waitFor();
      expect(await page.getByRole('row').count()).toBe(2); // the head, and one
      expect(await violations(page)).toEqual([]);
      await page.getByRole('link', { name: 'job', exact: true }).click();
      await page.getByRole('button', { name: 'Break lease…' }).click();
      await page.getByRole('radio', { name: 'Now' }).check();
      await page.getByRole('button', { name: 'Break it now' }).click();
      await page.getByRole('region', { name: 'job' }).getByText('released', { exact: true }).waitFor();
      expect(await site.world.get('leases?key=team-a/job')).toMatchObject({ state: 'released', fence: ours.fence });
      expect(await site.world.get('leases?key=job')).toMatchObject({ state: 'held', fence: others.fence });
      await page.getByRole('link', { name: 'Names' }).click();
      await page
        .getByRole('alert')
        .getByText('execute-api:Invoke on <api>/$default/GET/v1/ns/team-a/nameservice')
        .waitFor();
    } finally {
      await served.stop();
    }
  });

  it('the page of holdfast console only reads, and names the permission that is missing', async () => {
    await site.world.acquire('guarded', { ttlSeconds: 600 });
    const passOn = httpTransport({ endpoint: site.world.url }, () => Date.now());
    const transport: Transport = (operation, ...rest) => {
      if (operation === 'breakLease' || operation === 'readNames') throw refusal(403, 'Forbidden');
      return passOn(operation, ...rest);
    };
    const options = { endpoint: 'https://api.example', local: false, token: 'T', port: 0, transport };
    const [reader, writer] = await Promise.all([
      startConsole({ ...options, write: false }),
      startConsole({ ...options, write: true }),
    ]);
    try {
      const reading = await site.open('#token=T', { url: reader.url });
      await expect.poll(() => reading.url()).not.toContain('token');
      await reading.getByRole('link', { name: 'guarded' }).click();
      await reading.getByText('This page only reads.').waitFor();
      for (const name of ['Break lease…', 'Cap…'])
        expect(await reading.getByRole('button', { name }).isDisabled()).toBe(true);
      expect(await violations(reading)).toEqual([]);

      const writing = await site.open('#token=T', { url: writer.url, expectsRefusals: true });
      await writing.getByRole('link', { name: 'guarded' }).click();
      await writing.getByRole('button', { name: 'Break lease…' }).click();
      await writing.getByRole('button', { name: 'End it when the holder stops' }).click();
      await writing.getByText('execute-api:Invoke on <api>/$default/POST/v1/leases/break').waitFor();
      await writing.getByRole('button', { name: 'Leave it' }).click();
      await writing.getByRole('link', { name: 'Names' }).click();
      await writing.getByRole('alert').getByText('execute-api:Invoke on <api>/$default/GET/v1/nameservice').waitFor();
      expect(await violations(writing)).toEqual([]);

      const stranger = await site.open('', { url: writer.url, expectsRefusals: true });
      await stranger.getByRole('alert').getByText('No valid token').waitFor();
      expect(await stranger.getByRole('link', { name: 'guarded' }).count()).toBe(0);
      // A page that asks once more would find the service gone.
      await Promise.all([reading, writing, stranger].map((page) => page.goto('about:blank')));
    } finally {
      await Promise.all([reader.stop(), writer.stop()]);
    }
  });

  it('the page announces the changes that it sees', async () => {
    const { leaseId } = await site.world.acquire('seen', { holder: 'ann', ttlSeconds: 600 });
    const page = await site.open();
    await page.getByRole('row', { name: /seen.*ann/ }).waitFor();
    await site.world.post('leases/release', { key: 'seen', leaseId });
    await site.world.acquire('seen', { holder: 'bob' });
    await page.getByRole('row', { name: /seen.*bob/ }).waitFor();
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText(/it went from ann to bob/).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it('the page can be used from the keyboard, whose shortcuts can be turned off', async () => {
    await site.world.acquire('keys/a', { ttlSeconds: 600 });
    await site.world.acquire('keys/b', { ttlSeconds: 600 });
    const page = await site.open('#/keys?q=keys');
    await page.getByRole('link', { name: 'keys/a' }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'keys/b' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('region', { name: 'keys/b' }).waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    await page.keyboard.type('/a');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await help.getByRole('checkbox').uncheck();
    expect(await violations(page)).toEqual([]);
    await help.getByRole('button', { name: 'Close' }).click();
    await page.keyboard.press('5');
    await expect.poll(() => page.url()).toMatch(/#\/keys/);
  });

  it('the page polls only while it is seen, and goes on after an outage', async () => {
    await site.world.acquire('outage', { ttlSeconds: 600 });
    const page = await site.open('', { expectsRefusals: true });
    await page.getByRole('link', { name: 'outage' }).waitFor();
    let asked = 0;
    page.on('request', () => void asked++);
    const see = (state: string) =>
      page.evaluate(`Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' });
        document.dispatchEvent(new Event('visibilitychange'));`);
    await see('hidden');
    asked = 0;
    await page.waitForTimeout(2500);
    expect(asked).toBe(0);
    await see('visible');
    await expect.poll(() => asked).toBeGreaterThan(0);
    await site.world.restart(async () => {
      await page.getByRole('alert').getByText('No answer').waitFor();
      expect(await page.getByRole('link', { name: 'outage' }).count()).toBe(1);
      expect(await violations(page)).toEqual([]);
    });
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  it.each([
    ['light', { width: 1280, height: 760 }],
    ['dark', { width: 1280, height: 760 }],
    ['light', { width: 390, height: 844 }],
    ['dark', { width: 390, height: 844 }],
  ] as const)('the page has no fault that axe finds in %s at %o', async (colorScheme, viewport) => {
    await site.world.acquire('nightly-report', { ttlSeconds: 600, data: { step: 'aggregate', rows: 120_334 } });
    for (const holder of ['render-1', 'render-2'])
      await site.world.acquire('gpus', { holder, requestId: holder, limit: 4, ttlSeconds: 600 });
    const page = await site.open('', { colorScheme, viewport });
    const link = page.getByRole('link', { name: 'nightly-report' });
    await link.waitFor();
    expect(await violations(page)).toEqual([]);
    // A phone must not have to scroll sideways.
    expect(await beyond(page)).toEqual([]);
    await link.click();
    await page.getByRole('region', { name: 'nightly-report' }).getByText('aggregate').waitFor();
    expect(await violations(page)).toEqual([]);
  });
});

const tab = pageTests({ shareTab: true });

const OPERATOR = 'arn:aws:sts::123456789012:assumed-role/Operator/ann';
const LONG = `long/${'0123456789'.repeat(102)}`.slice(0, 1024);

/** A caller that waits for as long as it takes. */
function waitFor(key: string, options: { limit?: number } = {}) {
  const ended = new AbortController();
  const holdfast = new Holdfast({ endpoint: tab.world.url, holder: 'patient' });
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

describe.runIf(executablePath)('the page', () => {
  it('the page sorts by each column, and the other way after another click', async () => {
    await tab.world.acquire('sort/b', { holder: 'zoe', ttlSeconds: 300, limit: 2 });
    await tab.world.acquire('sort/a', { holder: 'eve', ttlSeconds: 600 });
    await tab.world.acquire('sort/c', { holder: 'ann', ttlSeconds: 900 });
    await tab.world.park('sort/c', 'next', { parkSeconds: 90 });
    const page = await tab.open('#/keys?q=sort/');
    await page.setViewportSize({ width: 1440, height: 760 });
    const keys = async () =>
      (await page.locator('.rows tbody th').allInnerTexts()).map((key) => key.replace('sort/', '')).join('');
    const head = (name: string) => page.getByRole('columnheader', { name });
    await expect.poll(keys).toBe('abc');
    for (const [name, first, sorted] of [
      ['Time left', 'acb', 'ascending'],
      ['Held since', 'bac', 'ascending'],
      ['Holder', 'cab', 'ascending'],
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

  it('the page shortens a key of 1,024 bytes to two lines, with a tooltip', async () => {
    await tab.world.acquire(LONG, { holder: 'airflow/dag=exports', ttlSeconds: 600 });
    await tab.world.acquire('long/other', { holder: 'airflow/dag=exports', ttlSeconds: 600 });
    const page = await tab.open('#/keys?q=long/');
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
    const page = await tab.open('#/keys/typo-key');
    const never = page.getByRole('region', { name: 'typo-key' });
    await never.getByText('no record', { exact: true }).waitFor();
    await never.getByText('No caller has used this key').waitFor();
    expect(await never.getByText('free').count()).toBe(0);
    expect(await faults(page, 'never-seen')).toEqual([]);
    const { leaseId } = await tab.world.acquire('was-used', { holder: 'ann' });
    await tab.world.post('leases/release', { key: 'was-used', leaseId });
    await page.evaluate("location.hash = '#/keys/was-used'");
    const used = page.getByRole('region', { name: 'was-used' });
    await used.getByText('released', { exact: true }).waitFor();
    await used.getByText('Last holder').waitFor();
    expect(await used.getByText('no record').count()).toBe(0);
  });

  it('the page shows how long a caller has waited, and its deadline if any', async () => {
    await tab.world.acquire('patience', { ttlSeconds: 600 });
    const waiting = waitFor('patience');
    await until(async () => (await tab.world.get('leases?key=patience')).waiting).toBe(1);
    await tab.world.park('patience', 'a task', { parkSeconds: 3600 });
    const page = await tab.open('#/keys/patience');
    const line = page.getByRole('region', { name: 'patience' }).locator('.line').getByRole('listitem');
    await expect.poll(() => line.count()).toBe(2);
    const [caller, task] = [line.nth(0), line.nth(1)];
    await caller.getByText(/^patient/).waitFor();
    await caller.getByText(/has waited [1-9] s/).waitFor();
    expect(await caller.locator('.draining').count()).toBe(0);
    expect(await caller.getByText('stops waiting').count()).toBe(0);
    await task.getByText(/has waited [1-9] s/).waitFor();
    await task.getByText('stops waiting').waitFor();
    await task.locator('.draining').getByText('59 min').waitFor();
    expect(await faults(page, 'line')).toEqual([]);
    await waiting.end();
  });

  it('the page shows that a bound grant lasts until its execution ends', async () => {
    await tab.world.holdBound('bound/lease');
    await tab.world.holdBound('bound/permit', { limit: 2 });
    const page = await tab.open('#/keys?q=bound/');
    await page.getByRole('row', { name: /bound\/lease held until its execution ends/ }).waitFor();
    await page.getByRole('row', { name: /bound\/permit held 1 of 2 / }).waitFor();
    await page.evaluate("location.hash = '#/keys/bound/lease'");
    const detail = page.getByRole('region', { name: 'bound/lease' });
    await detail.getByText('until its execution ends').waitFor();
    for (const name of ['Ends unless extended', 'Each heartbeat adds'])
      expect(await detail.locator('dt', { hasText: name }).count()).toBe(0);
    expect(await faults(page, 'bound')).toEqual([]);
    await detail.getByRole('button', { name: /^Break lease/ }).click();
    await page.getByText('the holder may work on as long as its execution runs').waitFor();
    await page.getByText(/^aws stepfunctions stop-execution --region \S+ --execution-arn arn:aws:states:/).waitFor();
    await page.keyboard.press('Escape');
    await page.evaluate("location.hash = '#/keys/bound/permit'");
    await page.getByRole('region', { name: 'bound/permit' }).getByText('until its execution ends').waitFor();
  });

  it('the page names who broke a lease and when, even after the next grant', async () => {
    const { fence, leaseId } = await tab.world.acquire('who', { holder: 'slow', ttlSeconds: 600 });
    await tab.world.breakAs(OPERATOR, { key: 'who', fence, wait: true });
    await tab.world.park('who', 'next', { parkSeconds: 90 });
    const page = await tab.open('#/keys/who');
    const detail = page.getByRole('region', { name: 'who' });
    const fact = (name: string) => detail.locator('dt', { hasText: name }).locator('+ dd');
    await expect
      .poll(() => fact('Broken').textContent())
      .toMatch(new RegExp(`^\\w+ \\d+, [\\d:]{8} \\S+ by ${OPERATOR}$`));
    expect(await faults(page, 'broken')).toEqual([]);
    await tab.world.post('leases/release', { key: 'who', leaseId });
    await expect
      .poll(() => fact('Holder before').textContent())
      .toMatch(new RegExp(`^slow, broken \\w+ \\d+, [\\d:]{8} \\S+ by ${OPERATOR}$`));
    expect(await fact('Broken').count()).toBe(0);
    expect(await faults(page, 'after-break')).toEqual([]);

    const permit = await tab.world.acquire('whose', { holder: 'slow', limit: 2, ttlSeconds: 600 });
    await tab.world.breakAs(OPERATOR, { key: 'whose', fence: permit.fence, wait: true });
    await page.evaluate("location.hash = '#/keys/whose'");
    await page.getByRole('region', { name: 'whose' }).getByText(`by ${OPERATOR}`).waitFor();
    expect(await faults(page, 'broken-permit')).toEqual([]);
  });

  it('the page shows each date in the local time zone or in UTC', async () => {
    const { expiresAt } = (await tab.world.acquire('zone', { ttlSeconds: 600 })) as object as { expiresAt: string };
    const page = await tab.open('#/history');
    const browser = await page.context().newCDPSession(page);
    await browser.send('Emulation.setTimezoneOverride', { timezoneId: 'Europe/Berlin' });
    await page.reload();
    await page.evaluate("location.hash = '#/keys/zone'");
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

  it('the page reports an outage once, and goes on after it', async () => {
    await tab.world.acquire('unanswered', { ttlSeconds: 600 });
    const page = await tab.open('#/keys/unanswered', { expectsRefusals: true });
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
