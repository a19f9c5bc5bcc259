import { describe, expect, it } from 'vitest';
import { executablePath, faults, pageTests, violations } from '../support/programs/console-page.ts';
import { isFull } from '../support/time/rounds.ts';

const site = pageTests({ shareTab: true });

const OPERATOR = 'arn:aws:sts::123456789012:assumed-role/Operator/ann';
const REASON = 'the database of the vendor is down';

describe.runIf(executablePath)('the page', () => {
  it.runIf(isFull)('the page shows who paused or capped a key, why, and until when', async () => {
    for (const holder of ['one', 'two', 'three'])
      await site.world.acquire('caps/render', { holder, limit: 5, ttlSeconds: 600 });
    await site.world.acquire('caps/report', { ttlSeconds: 600 });
    await site.world.capAs(OPERATOR, { key: 'caps/render', limit: 3, reason: 'licences', forSeconds: 3600 });
    await site.world.capAs(OPERATOR, { key: 'caps/report', limit: 0, reason: REASON });
    await site.world.capAs(OPERATOR, { key: 'caps/unused', limit: 0, reason: REASON });
    await site.world.park('caps/report', 'next', { parkSeconds: 90 });
    const page = await site.open('#/keys?q=caps/');
    await page.getByRole('row', { name: /caps\/render held capped 3 of 5, cap 3 / }).waitFor();
    await page.getByRole('row', { name: /caps\/report held paused up to 1 / }).waitFor();
    await page.getByRole('row', { name: /caps\/unused paused/ }).waitFor();
    expect(await page.getByTitle(new RegExp(`^${REASON}, by ${OPERATOR} since .* until it is lifted$`)).count()).toBe(
      2,
    );
    await page.getByRole('row', { name: 'Needs attention 3' }).waitFor();
    expect(await faults(page, 'capped-list')).toEqual([]);

    await page.getByRole('link', { name: 'caps/report' }).click();
    const detail = page.getByRole('region', { name: 'caps/report' });
    await detail.getByText('No caller gets a grant.').waitFor();
    const fact = (name: string) => detail.locator('.notice dt', { hasText: name }).locator('+ dd').textContent();
    expect(await fact('Reason')).toBe(REASON);
    expect(await fact('By')).toBe(OPERATOR);
    expect(await fact('Since')).toMatch(/^\w+ \d+, [\d:]{8} \S+, \d+ s ago$/);
    expect(await fact('Until')).toBe('an operator lifts it');
    expect(await faults(page, 'paused-key')).toEqual([]);
    await page.evaluate("location.hash = '#/keys/caps/render'");
    const render = page.getByRole('region', { name: 'caps/render' });
    await render.getByText('At most 3 in use, whatever limit callers name.').waitFor();
    await render.getByText('3 of 5 in use, cap 3.').waitFor();
  });

  it('the page asks why, pauses the key, and lifts the pause', async () => {
    await site.world.acquire('form', { holder: 'one', limit: 5, ttlSeconds: 600 });
    await site.world.acquire('form', { holder: 'two', limit: 5, ttlSeconds: 600 });
    const page = await site.open('#/keys/form');
    const detail = page.getByRole('region', { name: 'form' });
    await detail.getByRole('button', { name: 'Cap…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Cap or pause this key?' });
    await dialog.getByText('0 pauses the key: no caller gets a grant, or a start at its rates.').waitFor();
    expect(await page.evaluate('document.activeElement.type')).toBe('number');
    expect(await faults(page, 'cap-form')).toEqual([]);
    // The page does not send a cap without a reason or with an invalid number.
    const pause = dialog.getByRole('button', { name: 'Pause the key' });
    await pause.click();
    const limit = dialog.getByLabel('At most in use');
    const reason = dialog.getByLabel('Reason');
    expect(await page.evaluate('document.activeElement.validity.valueMissing')).toBe(true);
    await reason.fill(REASON);
    await limit.fill('');
    await pause.click();
    expect((await site.world.get('leases?key=form')).cap).toBeUndefined();

    await limit.fill('0');
    await dialog.getByRole('combobox', { name: /^How long/ }).selectOption('an hour');
    await pause.click();
    await detail.getByText('No caller gets a grant.').waitFor();
    const { cap } = (await site.world.get('leases?key=form')) as { cap: { since: string; until: string } };
    expect(cap).toMatchObject({ limit: 0, reason: REASON });
    expect(Math.abs(Date.parse(cap.until) - Date.parse(cap.since) - 3_600_000)).toBeLessThan(30_000);
    const task = await site.world.park('form', 'three', { limit: 5, parkSeconds: 90 });

    await detail.getByRole('button', { name: 'Cap…' }).click();
    await limit.fill('2');
    await dialog.getByRole('button', { name: 'Cap the key' }).click();
    await detail.getByText('2 of 5 in use, cap 2.').waitFor();
    expect(task.state).toBe('waiting');
    await detail.getByRole('button', { name: 'Lift…' }).click();
    await page
      .getByRole('dialog', { name: 'Lift the cap?' })
      .getByText('Waiters that now fit are served at once.')
      .waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Lift the cap' }).click();
    await detail.getByText('3 of 5 in use.').waitFor();
    expect(task.state).toBe('succeeded');
    expect(await detail.getByRole('button', { name: 'Lift…' }).count()).toBe(0);
    await page.getByRole('link', { name: 'History' }).click();
    for (const what of ['this page paused it', 'this page capped it at 2', 'this page lifted the cap'])
      await page.getByText(what).waitFor();
    await page.getByText(`an unknown operator paused it: ${REASON}`).waitFor();
    await page.getByText('it is no longer capped').waitFor();
  });

  it('the page makes a waiter the next one, and marks it', async () => {
    await site.world.acquire('moving', { ttlSeconds: 600 });
    for (const holder of ['first', 'second', 'third']) await site.world.park('moving', holder, { parkSeconds: 90 });
    const page = await site.open('#/keys/moving');
    const places = page.locator('.line').getByRole('listitem');
    await expect.poll(() => places.count()).toBe(3);
    await page.getByRole('button', { name: 'Run next… third' }).click();
    const dialog = page.getByRole('dialog', { name: 'Run this waiter next?' });
    await dialog.getByText('third', { exact: true }).waitFor();
    expect(await faults(page, 'run-next')).toEqual([]);
    await dialog.getByRole('button', { name: 'Run it next' }).click();
    await places.nth(0).getByText('third', { exact: true }).waitFor();
    await places.nth(0).getByText('runs next').waitFor();
    await places.nth(0).getByText('moved by an unknown operator').waitFor();
    expect(await places.getByRole('button', { name: /^Run next/ }).count()).toBe(2);
    expect(await faults(page, 'moved')).toEqual([]);
    // A waiter that has left since the page showed it was not moved.
    await page.getByRole('button', { name: 'Run next… second' }).click();
    const { waiters } = (await site.world.get('leases?key=moving&waiters=true')) as { waiters: { ticket: string }[] };
    await site.world.post('leases/cancel', { key: 'moving', ticket: waiters.at(-1)?.ticket });
    await dialog.getByRole('button', { name: 'Run it next' }).click();
    await page.getByText('No waiter has that ticket.').waitFor();
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText('this page made third next').waitFor();
    expect(await page.getByText('this page made second next').count()).toBe(0);
  });

  it.runIf(isFull)('the page shows who paused or capped the rates of a key, and why', async () => {
    const rates = [{ limit: 50, per: '1h' }];
    for (const key of ['paced/vendor', 'paced/paused'])
      await site.world.post('rates/reserve', { key, holder: 'worker-1', rates });
    const halved = [{ limit: 25, per: '1h', name: 'requests' }];
    await site.world.capAs(OPERATOR, { key: 'paced/vendor', rates: halved, reason: 'quota', forSeconds: 3600 });
    await site.world.capAs(OPERATOR, { key: 'paced/paused', limit: 0, reason: REASON });
    const page = await site.open('#/rates?q=paced/');
    const said = `by ${OPERATOR} since \\w+ \\d+, [\\d:]+ until`;
    await page
      .getByRole('row', { name: new RegExp(`paced/vendor 50/1h capped 25/1h quota ${said} \\w+ \\d+`) })
      .waitFor();
    await page
      .getByRole('row', { name: new RegExp(`paced/paused 50/1h paused ${REASON} ${said} it is lifted`) })
      .waitFor();
    expect(await faults(page, 'capped-rates')).toEqual([]);
  });
});
