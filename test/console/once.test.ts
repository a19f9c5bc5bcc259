import { describe, expect, it } from 'vitest';
import { executablePath, faults, pageTests } from '../support/programs/console-page.ts';
import { isFull } from '../support/time/rounds.ts';

const site = pageTests({ shareTab: true });

const OPERATOR = 'arn:aws:sts::123456789012:assumed-role/Operator/ann';

const begin = (key: string, more: object = {}) =>
  site.world.post('once/begin', { key, holder: 'cron@host-1', slot: '2026-11-28', ttlSeconds: 600, ...more });

/** A slot that is done. */
async function finish(key: string, more: object = {}) {
  const { leaseId } = await begin(key, more);
  await site.world.post('once/complete', { key, leaseId, result: { files: 7 } });
}

describe.runIf(executablePath)('the page', () => {
  it('the page shows which slot of a key is done, and who works', async () => {
    await finish('once/backup', { holder: 'ann' });
    await finish('once/report', { holder: 'bob' });
    await begin('once/report', { slot: '2026-11-29', data: { step: 2 } });
    const page = await site.open('#/keys');
    await page.getByRole('link', { name: 'Once' }).click();
    await page.getByRole('row', { name: /once\/backup done 2026-11-28 ann/ }).waitFor();
    await page.getByRole('row', { name: /once\/report held 2026-11-29 cron@host-1/ }).waitFor();
    expect(await faults(page, 'once-list')).toEqual([]);
    await page.getByRole('link', { name: 'once/report' }).click();
    const detail = page.getByRole('region', { name: 'once/report' });
    await detail.getByText('"files": 7').waitFor();
    const facts = await detail.locator('dd.mono').allInnerTexts();
    expect(facts).toEqual(['2026-11-29', 'cron@host-1', expect.stringMatching(/^\d+$/), '2026-11-28', 'bob']);
    await detail.getByText('"step": 2').waitFor();
    expect(await faults(page, 'once-key')).toEqual([]);
  });

  it('the page breaks the run of a slot, and not the lease', async () => {
    await site.world.acquire('both', { ttlSeconds: 600 });
    const { fence } = await begin('both');
    const page = await site.open('#/once/both');
    const detail = page.getByRole('region', { name: 'both' });
    await detail.getByRole('button', { name: 'Break run…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Break this run?' });
    await dialog.getByText(String(fence), { exact: true }).waitFor();
    await dialog.getByRole('radio', { name: 'Now' }).check();
    await dialog.getByText(/The slot is free at once\.$/).waitFor();
    await dialog.getByRole('button', { name: 'Break it now' }).click();
    await detail.getByText('released', { exact: true }).waitFor();
    await detail.getByText('No slot is done').waitFor();
    expect(await site.world.get('leases?key=both')).toMatchObject({ state: 'held' });
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText(`this page broke the run of cron@host-1, fence ${fence}`).waitFor();
    expect(await page.getByRole('link', { name: 'both' }).getAttribute('href')).toBe('#/once/both');
  });

  it.runIf(isFull)('the page pauses the slots of a key, and puts the key first', async () => {
    await finish('pause/a');
    await begin('pause/b', { ttlSeconds: 2 });
    await finish('pause/c');
    await site.world.capAs(OPERATOR, { key: 'pause/c', limit: 0, reason: 'the disk is full', kind: 'once' });
    const page = await site.open('#/once?q=pause/');
    await page.getByRole('row', { name: 'Needs attention 2' }).waitFor();
    expect((await page.locator('.rows tbody th').allInnerTexts()).map((text) => text.trim())).toEqual([
      ...['Needs attention 2', 'pause/c', 'pause/b', 'Others', 'pause/a'],
    ]);
    await page.getByRole('link', { name: 'pause/c' }).click();
    const detail = page.getByRole('region', { name: 'pause/c' });
    await detail.getByText('the disk is full').waitFor();
    await detail.getByText('done', { exact: true }).waitFor();
    await detail.getByRole('button', { name: 'Lift…' }).click();
    await page.getByRole('button', { name: 'Lift the pause' }).click();
    await detail.getByText('the disk is full').waitFor({ state: 'detached' });
    await detail.getByRole('button', { name: 'Pause…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Pause the slots of this key?' });
    expect(await dialog.getByLabel('At most in use').count()).toBe(0);
    expect(await faults(page, 'once-pause')).toEqual([]);
    await dialog.getByLabel('Reason').fill('the disk is full again');
    await dialog.getByRole('button', { name: 'Pause the key' }).click();
    await detail.getByText('the disk is full again').waitFor();
    expect(await site.world.get('once?key=pause/c')).toMatchObject({ cap: { limit: 0 } });
    expect((await site.world.get('leases?key=pause/c')).cap).toBeUndefined();
  });
});
