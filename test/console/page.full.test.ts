import { describe, expect, it } from 'vitest';
import { startConsole } from '../../cli/src/console/server.ts';
import { refusal } from '../../client/src/errors.ts';
import { httpTransport } from '../../client/src/http.ts';
import type { Transport } from '../../client/src/transport.ts';
import { beyond, executablePath, pageTests, picture, violations } from '../support/programs/console-page.ts';

const site = pageTests();

describe.runIf(executablePath)('the page', () => {
  it('the page through holdfast console in a namespace shows only that namespace, and breaks there', async () => {
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

  it('the page through holdfast console only reads, and names the permission that is missing', async () => {
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
      expect(await reading.getByRole('button', { name: 'Break lease…' }).isDisabled()).toBe(true);
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

  it('the page announces what it saw change', async () => {
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

  it('the page can be worked by keys alone, which can be turned off', async () => {
    await site.world.acquire('keys/a', { ttlSeconds: 600 });
    await site.world.acquire('keys/b', { ttlSeconds: 600 });
    const page = await site.open('#/leases?q=keys');
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
    const help = page.getByRole('dialog', { name: 'Keys' });
    await help.getByRole('checkbox').uncheck();
    expect(await violations(page)).toEqual([]);
    await help.getByRole('button', { name: 'Close' }).click();
    await page.keyboard.press('5');
    await expect.poll(() => page.url()).toMatch(/#\/leases/);
  });

  it('the page asks only while it is seen, and goes on after a pause of the service', async () => {
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
    // Nothing makes a phone scroll sideways.
    expect(await beyond(page)).toEqual([]);
    const device = viewport.width < 500 ? 'phone' : 'wide';
    if (colorScheme === 'light' && device === 'wide') await picture(page, 'wide-list');
    await link.click();
    await page.getByRole('region', { name: 'nightly-report' }).getByText('aggregate').waitFor();
    expect(await violations(page)).toEqual([]);
    if (colorScheme === 'dark' && device === 'phone') await picture(page, 'phone-dark');
  });
});
