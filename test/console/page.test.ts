import { describe, expect, it } from 'vitest';
import type { Task } from '../support/emulators/step-functions.ts';
import { builtCli } from '../support/programs/cli.ts';
import { beyond, executablePath, pageTests, picture, violations } from '../support/programs/console-page.ts';
import { isFull } from '../support/time/rounds.ts';

const site = pageTests({ shareTab: true });

/** Resolves with the time in the first row as soon as the row is in the page, before it is drawn. */
const FIRST_TIME = `new Promise((resolve) => {
  const check = () => {
    const time = document.querySelector('.rows tbody .words');
    if (time) resolve(time.textContent);
  };
  new MutationObserver(check).observe(document.body, { childList: true, subtree: true });
})`;

describe.runIf(executablePath)('the page', () => {
  it.runIf(isFull)('the page draws rows with their times at once', async () => {
    await site.world.acquire('drawn/once', { ttlSeconds: 600 });
    const page = await site.open('#/history');
    await page.getByText('Nothing has changed yet.').waitFor();
    const first = page.evaluate(FIRST_TIME);
    await page.evaluate("location.hash = '#/keys?q=drawn/'");
    expect(await first).toMatch(/^(10 min|9 min \d+ s)$/);
  });

  it.runIf(isFull)('the page breaks a lease when its holder stops, and shows it as ending', async () => {
    const { fence, leaseId } = await site.world.acquire('ending', { holder: 'slow', ttlSeconds: 600 });
    const page = await site.open('#/keys/ending');
    const detail = page.getByRole('region', { name: 'ending' });
    await detail.getByRole('button', { name: 'Break lease…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Break this lease?' });
    await dialog.getByText(/If no heartbeat comes, the holder may work on for up to (10 min|9 min \d+ s)\./).waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'End it when the holder stops' }).click();
    await dialog.waitFor({ state: 'detached' });
    await detail.getByText('ending', { exact: true }).and(page.locator('.state')).waitFor();
    await page
      .getByRole('row', { name: /ending.*slow/ })
      .locator('.state.ending')
      .waitFor();
    await detail.getByText('Ends at the latest').waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await site.world.get('leases?key=ending')).toMatchObject({ state: 'held', ending: true, fence });
    await site.world.post('leases/release', { key: 'ending', leaseId });
    await detail.getByText('released', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText(`this page asked slow to stop, fence ${fence}`).waitFor();
  });

  it("the page removes its token from the address and from the browser's history", async () => {
    const page = await site.open('#token=secret');
    await expect.poll(() => page.url()).toBe(`${site.world.url}/#/keys`);
    expect(await page.evaluate("sessionStorage.getItem('holdfast-token')")).toBe('secret');
    await page.getByRole('link', { name: 'Names' }).click();
    await page.goBack();
    expect(page.url()).toBe(`${site.world.url}/#/keys`);
  });

  it('the page breaks a lease now behind a dialog that names holder and fence', async () => {
    const holder = '<script>alert("x")</script>';
    await site.world.acquire('find/other');
    const { fence } = await site.world.acquire('find/me', { holder, ttlSeconds: 600, data: { '<b>': 'bold' } });
    const page = await site.open();
    await page.getByRole('searchbox').fill('FIND/ME');
    await page.getByRole('status').getByText('1 key shown').waitFor({ state: 'attached' });
    await page.getByRole('link', { name: 'find/me' }).click();
    await expect.poll(() => page.url()).toContain('#/keys/find%2Fme?q=FIND');
    const detail = page.getByRole('region', { name: 'find/me' });
    await detail.getByText(holder, { exact: true }).waitFor();
    await detail.getByText('"<b>": "bold"').waitFor();
    await detail.getByRole('button', { name: 'Break lease…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Break this lease?' });
    for (const text of ['find/me', holder, String(fence)]) await dialog.getByText(text, { exact: true }).waitFor();
    expect(await violations(page)).toEqual([]);
    // The way out has the focus, and takes it.
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Leave it');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await site.world.get('leases?key=find/me')).toMatchObject({ state: 'held', fence });

    await detail.getByRole('button', { name: 'Break lease…' }).click();
    await dialog.getByRole('radio', { name: 'Now' }).check();
    await dialog.getByText(/The holder may work on for up to (10 min|9 min \d+ s), beside the next holder/).waitFor();
    await dialog.getByRole('button', { name: 'Break it now' }).click();
    await detail.getByText('released', { exact: true }).waitFor();
    expect(await site.world.get('leases?key=find/me')).toMatchObject({ state: 'released', fence });
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText(`this page broke the lease of ${holder}, fence ${fence}`).waitFor();
  });

  it('the page does not break a lease whose holder has changed behind the dialog', async () => {
    const { fence } = await site.world.acquire('passed on', { holder: 'first', ttlSeconds: 600 });
    const page = await site.open('#/keys/passed%20on', { expectsRefusals: true });
    const detail = page.getByRole('region', { name: 'passed on' });
    await detail.getByRole('button', { name: 'Break lease…' }).click();
    await site.world.post('leases/break', { key: 'passed on', fence });
    await site.world.acquire('passed on', { holder: 'second', ttlSeconds: 600 });
    await detail.getByText('second', { exact: true }).waitFor();
    const dialog = page.getByRole('dialog', { name: 'Break this lease?' });
    await dialog.getByText('first', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'End it when the holder stops' }).click();
    await page.getByText('The lease has changed hands since you opened this, so nothing was broken.').waitFor();
    const standing = await site.world.get('leases?key=passed on');
    expect(standing).toMatchObject({ state: 'held', holder: 'second', ending: false });
  });

  it.runIf(isFull)('the page shows which rates callers named, and until when they are paid', async () => {
    const reserve = (key: string, more: object = {}) =>
      site.world.post('rates/reserve', { key, holder: 'worker-1', rates: [{ limit: 50, per: '1h' }], ...more });
    await reserve('rates/agreed', { settle: true });
    await reserve('rates/changed');
    await reserve('rates/changed', {
      holder: 'worker-2',
      waitSeconds: 90,
      rates: [{ limit: 9, per: '1d', name: 'tokens' }],
    });
    await reserve('rates/idle', { rates: [{ limit: 1000, per: '1s' }] });
    const page = await site.open();
    await page.getByRole('link', { name: 'Rates' }).click();
    await page.getByRole('row', { name: /rates\/agreed 50\/1h .*, in (1 min|\d+ s).* 1 worker-1 .* ago/ }).waitFor();
    await page.getByRole('row', { name: /rates\/changed tokens:9\/1d before: 50\/1h .* worker-2/ }).waitFor();
    await page.getByRole('row', { name: /rates\/idle 1000\/1s idle/ }).waitFor();
    expect(await violations(page)).toEqual([]);
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await beyond(page)).toEqual([]);
    if (wide) await page.setViewportSize(wide);
  });

  it.runIf(isFull)('the page does not show a key as deleted if the list was cut', async () => {
    await site.world.acquire('long list', { ttlSeconds: 600 });
    const { leases } = (await site.world.get('leases?prefix=long list')) as { leases: object[] };
    const page = await site.open('#/history');
    let asked = 0;
    await page.route('**/v1/leases?*', (route) => {
      const isFirstRead = asked++ < 5;
      const rows = leases.map((row) => ({ ...row, key: `long list ${asked}` }));
      return route.fulfill({ json: { leases: isFirstRead ? rows : [], nextCursor: 'there is more' } });
    });
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByText('There are more than 5 keys. Only these are shown and searched.').waitFor();
    await page.getByText('There are more than 0 keys.').waitFor();
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText('Nothing has changed yet.').waitFor();
    await page.unroute('**/v1/leases?*');
  });

  it.runIf(isFull)('the page asks before it breaks a permit, and names holder and fence', async () => {
    const page = await site.open('#/keys/render', { expectsRefusals: true });
    const permit = (holder: string) => site.world.acquire('render', { holder, limit: 5, ttlSeconds: 600 });
    // Two workers have one name, and the later one is broken.
    const [one, two, three] = [await permit('worker'), await permit('worker'), await permit('three')];
    const later = page.getByRole('button', { name: 'Break… the permit of worker' }).last();
    const detail = page.getByRole('region', { name: 'render' });
    await detail.getByText('3 of 5 in use.').waitFor();
    await detail
      .getByText(/^shared, weight 1, fence \d+$/)
      .nth(2)
      .waitFor();
    await later.click();
    const dialog = page.getByRole('dialog', { name: 'Break this permit?' });
    for (const text of ['render', 'worker', String(two?.fence)])
      await dialog.getByText(text, { exact: true }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await site.world.get('leases?key=render')).toMatchObject({ used: 3 });

    await later.click();
    await dialog.getByRole('button', { name: 'End it when the holder stops' }).click();
    await detail.getByText('ending', { exact: true }).waitFor();
    expect(await site.world.get('leases?key=render')).toMatchObject({ used: 3 });
    await later.click();
    expect(await dialog.getByRole('radio', { name: 'When the holder stops' }).isDisabled()).toBe(true);
    await dialog.getByRole('button', { name: 'Break it now' }).click();
    await detail.getByText('2 of 5 in use.').waitFor();
    expect(await detail.getByText('worker', { exact: true }).count()).toBe(1);
    const left = [{ holder: 'worker', fence: one?.fence }, { holder: 'three' }];
    expect(await site.world.get('leases?key=render')).toMatchObject({ used: 2, holders: left });

    // The holder has released its permit since the page showed it, and has a new one.
    await detail.getByRole('button', { name: 'Break… the permit of three' }).click();
    await site.world.post('leases/release', { key: 'render', leaseId: three?.leaseId });
    await permit('three');
    await dialog.getByRole('button', { name: 'End it when the holder stops' }).click();
    await dialog.getByText('The permit is no longer held, so there is nothing to break.').waitFor();
    await dialog.getByRole('button', { name: 'Leave it' }).click();
    expect(await site.world.get('leases?key=render')).toMatchObject({ used: 2, holders: left });
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText(`this page broke the permit of worker, fence ${two?.fence}`).waitFor();
  });

  it.runIf(isFull)('the page shows the use, the holders and the line of a full key', async () => {
    const permit = (holder: string, ttlSeconds: number) =>
      site.world.acquire('full/shared', { holder, limit: 3, ttlSeconds });
    await site.world.acquire('full/lease', { holder: 'alone', ttlSeconds: 500 });
    for (const [holder, ttl] of [
      ['one', 600],
      ['two', 400],
      ['three', 800],
    ] as const)
      await permit(holder, ttl);
    const task = await site.world.park('full/shared', 'next', { limit: 3, parkSeconds: 90 });
    const page = await site.open();
    await page.getByRole('searchbox').fill('FULL/');
    const rows = page.locator('.rows tbody tr');
    await page.getByRole('row', { name: /full\/shared.*held.*3 of 3.*up to 1 .*one and 2 more/ }).waitFor();
    const keys = async () => (await rows.locator('th').allInnerTexts()).join();
    expect(await keys()).toBe('full/lease,full/shared');
    await page.getByRole('link', { name: 'Time left' }).click();
    await expect.poll(() => page.locator('[aria-sort]').textContent()).toContain('Time left');
    expect(await keys()).toBe('full/lease,full/shared');
    expect(await violations(page)).toEqual([]);
    await page.getByRole('link', { name: 'full/shared' }).click();
    const detail = page.getByRole('region', { name: 'full/shared' });
    await detail.getByText('3 of 3 in use.').waitFor();
    for (const name of ['one', 'two', 'three', 'next']) await detail.getByText(name, { exact: true }).first().waitFor();
    await detail.getByText('1 waiter in line, the next one on top.').waitFor();
    expect(await violations(page)).toEqual([]);
    await picture(page, 'permits');
    await detail.getByRole('button', { name: 'Cancel… the wait of next' }).click();
    await page.getByRole('button', { name: 'Take it out' }).click();
    await expect.poll(() => task.error).toBe('LeaseLost');
    await detail.getByText('The line is empty.').waitFor();
  });

  it('the page shows the line with its positions, and cancels a waiter', async () => {
    const execution = 'arn:aws:states:us-east-1:000000000000:execution:machine:run-1';
    await site.world.acquire('queue', { ttlSeconds: 600, execution });
    const tasks: Task[] = [];
    for (const holder of ['first', 'second', 'third'])
      tasks.push(await site.world.park('queue', holder, { parkSeconds: 90 }));
    const page = await site.open('#/keys/queue');
    const places = page.locator('.line').getByRole('listitem');
    await expect.poll(() => places.count()).toBe(3);
    expect(await places.allInnerTexts()).toEqual(
      ['first', 'second', 'third'].map((name) => expect.stringContaining(name)),
    );
    await page.getByText('machine / run-1').waitFor();
    expect(await violations(page)).toEqual([]);
    await picture(page, 'queue');
    await page.getByRole('button', { name: 'Cancel… the wait of second' }).click();
    const dialog = page.getByRole('dialog', { name: 'Take this task out of the line?' });
    await dialog.getByText('second', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Take it out' }).click();
    await expect.poll(() => places.count()).toBe(2);
    const outcomes = () => tasks.map(({ state, error }) => error ?? state);
    await expect.poll(outcomes).toEqual(['waiting', 'LeaseLost', 'waiting']);
    // A waiter that has left since the page showed it was not taken out by this page.
    await page.getByRole('button', { name: 'Cancel… the wait of third' }).click();
    const { waiters } = (await site.world.get('leases?key=queue&waiters=true')) as { waiters: { ticket: string }[] };
    await site.world.post('leases/cancel', { key: 'queue', ticket: waiters.at(-1)?.ticket });
    await dialog.getByRole('button', { name: 'Take it out' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByText('this page took second out of the line').waitFor();
    expect(await page.getByText('this page took third out of the line').count()).toBe(0);
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    // The row of a key with a line says how long the line is.
    await page.getByRole('row', { name: /queue.*up to \d/ }).waitFor();
  });

  it.runIf(isFull)('the page shows which newer holder has asked a holder to stop', async () => {
    const replacing = { replace: 'running' };
    const { leaseId } = await site.world.acquire('preview', { ...replacing, waitSeconds: 1, ttlSeconds: 600 });
    await site.world.park('preview', 'newer', { ...replacing, parkSeconds: 90 });
    const page = await site.open('#/keys/preview');
    const detail = page.getByRole('region', { name: 'preview' });
    const fact = (name: string) => detail.locator('dt', { hasText: name }).locator('+ dd');
    await detail.locator('.state.ending').waitFor();
    expect(await fact('Superseded by').textContent()).toBe('newer');
    expect(await violations(page)).toEqual([]);
    await site.world.post('leases/release', { key: 'preview', leaseId });
    await expect.poll(() => fact('Holder before').textContent()).toMatch(/^worker-1, superseded .* by newer$/);
    expect(await fact('Superseded by').count()).toBe(0);
  });

  it.runIf(isFull)('the page shows when sleeping callers are due, after those that wait', async () => {
    await site.world.holdLong('drowsy', 'slow');
    await site.world.park('drowsy', 'awake', { parkSeconds: 90 });
    const asked = { key: 'drowsy', holder: 'sleeper', requestId: 'r', waitSeconds: 20, sleepMs: 300_000 };
    const { comeBackMs, retryWith } = await site.world.post('leases/acquire', asked);
    expect(comeBackMs).toBeGreaterThan(10_000);
    const page = await site.open('#/keys/drowsy');
    const places = page.locator('.line').getByRole('listitem');
    await expect.poll(() => places.count()).toBe(2);
    expect(await places.nth(0).getByText('asleep').count()).toBe(0);
    await places
      .nth(1)
      .getByText(/^asleep, due in \d+ s$/)
      .waitFor();
    expect(await places.nth(1).getByText('stops waiting').count()).toBe(0);
    expect(await violations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Cancel… the wait of sleeper' }).click();
    await page.getByRole('button', { name: 'Take it out' }).click();
    await expect.poll(() => places.count()).toBe(1);
    const back = await site.world.post('leases/acquire', { ...asked, ...(retryWith as object) });
    expect(back).toMatchObject({ code: 'LeaseLost', reason: 'cancelled' });
  });

  it.runIf(isFull)('the page shows what expired and why, and previews a clean-up', async () => {
    await site.world.abandon('left/1', 'crashed-1');
    await site.world.abandon('left/2', 'crashed-2');
    await site.world.acquire('not-left', { ttlSeconds: 600 });
    await site.world.report();
    const page = await site.open('#/expired');
    await page.getByRole('row', { name: /left\/1.*abandoned lease.*crashed-1.*let it expire/ }).waitFor();
    await page.getByRole('button', { name: 'Clean up…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Clean up expired records' });
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Show what would be deleted' }).click();
    await dialog.getByText('2 records would be deleted.').waitFor();
    await dialog.getByText('left/2').waitFor();
    expect(await site.world.get('leases?key=left/1')).toMatchObject({ state: 'expired' });
    expect(await violations(page)).toEqual([]);
    await picture(page, 'clean');
    await dialog.getByRole('button', { name: 'Delete 2 records' }).click();
    await dialog.getByText('2 records deleted.').waitFor();
    for (const key of ['left/1', 'left/2'])
      expect(await site.world.get(`leases?key=${key}`)).toMatchObject({ state: 'free' });
    expect(await site.world.get('leases?key=not-left')).toMatchObject({ state: 'held' });
  });

  it.runIf(isFull)('the page says if a waiter got its grant before it was cancelled', async () => {
    await site.world.acquire('late cancel', { ttlSeconds: 600 });
    await site.world.park('late cancel', 'waiter-1');
    const page = await site.open('#/keys/late%20cancel');
    await page.route('**/v1/leases/cancel', (route) =>
      route.fulfill({ json: { cancelled: false, reason: 'granted' } }),
    );
    await page.getByRole('button', { name: 'Cancel… the wait of waiter-1' }).click();
    await page.getByRole('button', { name: 'Take it out' }).click();
    await page.getByText('The waiter already has its grant.').waitFor({ state: 'attached' });
    await page.unroute('**/v1/leases/cancel');
  });

  it.runIf(isFull)('the page cleans up every page of a report, but only what was chosen', async () => {
    await site.world.abandon('left/3', 'crashed-3');
    await site.world.report();
    const page = await site.open('#/expired');
    const asked: object[] = [];
    await page.route('**/v1/expired/clean', async (route) => {
      const { cursor: _, ...first } = route.request().postDataJSON();
      asked.push(route.request().postDataJSON());
      const cleaned = await (await route.fetch({ postData: JSON.stringify(first) })).json();
      const cut = { stoppedBy: 'time', nextCursor: 'the rest' };
      await route.fulfill({ json: asked.length === 1 ? { ...cleaned, ...cut } : cleaned });
    });
    await page.getByRole('button', { name: 'Clean up…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Clean up expired records' });
    await dialog.getByRole('button', { name: 'Show what would be deleted' }).click();
    await dialog.getByText(/^\d+ records would be deleted\.$/).waitFor();
    const chosen = { dryRun: true, olderThanSeconds: 3600, neverDeletable: false };
    expect(asked).toEqual([
      expect.objectContaining(chosen),
      expect.objectContaining({ ...chosen, cursor: 'the rest' }),
    ]);
    expect(await site.world.get('leases?key=left/3')).toMatchObject({ state: 'expired' });
    await page.unroute('**/v1/expired/clean');
  });

  // The build shortens names. If it shortened a name of the browser, only this test would fail.
  it.runIf(isFull)('the page in the built command shows every view, breaks, cancels and cleans', async () => {
    const cli = await builtCli();
    const served = cli.start(['console', '--write'], { env: { HOLDFAST_ENDPOINT: site.world.url } });
    try {
      await site.world.report(); // without a report, the page is answered 404
      await site.world.abandon('built/left', 'crashed-3');
      await site.world.beginCommit('built/00042.json');
      await site.world.post('nameservice/publish', { op: 'initLedger', alias: 'built' });
      await site.world.acquire('built/held', { ttlSeconds: 600, data: { step: 1 } });
      const task = await site.world.park('built/held', 'next', { parkSeconds: 90 });
      await expect.poll(served.stdout).toContain('#token=');
      const url = served.stdout().trim();
      const page = await site.open(url.slice(url.indexOf('#')), { url: url.slice(0, url.indexOf('/#')) });
      await page.getByRole('searchbox').fill('built');
      await page.getByRole('link', { name: 'built/held' }).click();
      const detail = page.getByRole('region', { name: 'built/held' });
      await detail.getByText('"step": 1').waitFor();
      await detail.getByRole('button', { name: 'Cancel… the wait of next' }).click();
      await page.getByRole('button', { name: 'Take it out' }).click();
      await expect.poll(() => task.error).toBe('LeaseLost');
      await detail.getByRole('button', { name: 'Break lease…' }).click();
      await page.getByRole('radio', { name: 'Now' }).check();
      await page.getByRole('button', { name: 'Break it now' }).click();
      await detail.getByText('released', { exact: true }).waitFor();
      await site.world.acquire('built/shared', { holder: 'one-of-five', limit: 5, weight: 2 });
      await page.evaluate("location.hash = '#/keys/built%2Fshared'");
      const shared = page.getByRole('region', { name: 'built/shared' });
      await shared.getByText('2 of 5 in use.').waitFor();
      await shared.getByText('one-of-five', { exact: true }).first().waitFor();
      expect(await violations(page)).toEqual([]);
      await shared.getByRole('button', { name: 'Break… the permit of one-of-five' }).click();
      await page.getByRole('radio', { name: 'Now' }).check();
      await page.getByRole('button', { name: 'Break it now' }).click();
      await shared.getByText('free', { exact: true }).waitFor();
      await shared.getByRole('button', { name: 'Cap…' }).click();
      await page.getByLabel('Reason').fill('the disk is full');
      await page.getByRole('button', { name: 'Pause the key' }).click();
      await shared.getByText('No caller gets a grant.').waitFor();
      const run = await site.world.post('once/begin', { key: 'built/once', holder: 'w', slot: '1' });
      await site.world.post('once/complete', { key: 'built/once', leaseId: run.leaseId, result: { files: 7 } });
      await page.getByRole('link', { name: 'Once', exact: true }).click();
      await page.getByRole('row', { name: /built\/once done 1 w/ }).waitFor();
      await page.getByRole('link', { name: 'built/once' }).click();
      await page.getByRole('region', { name: 'built/once' }).getByText('"files": 7').waitFor();
      await site.world.post('rates/reserve', { key: 'built/rate', holder: 'w', rates: [{ limit: 1, per: '1h' }] });
      await page.getByRole('link', { name: 'Rates', exact: true }).click();
      await page.getByRole('row', { name: /built\/rate 1\/1h .*, in .* w .* ago/ }).waitFor();
      await page.getByRole('link', { name: 'Commits', exact: true }).click();
      await page.getByRole('row', { name: /built\/00042.json.*job-7.*a new object/ }).waitFor();
      await page.getByRole('link', { name: 'Names', exact: true }).click();
      await page.getByRole('row', { name: /built:main/ }).waitFor();
      await page.getByRole('link', { name: 'Expired' }).click();
      await page.getByRole('button', { name: 'Report now' }).click();
      await page.getByRole('row', { name: /built\/left.*crashed-3/ }).waitFor();
      await page.getByRole('button', { name: 'Clean up…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Clean up expired records' });
      await dialog.getByRole('button', { name: 'Show what would be deleted' }).click();
      await dialog.getByRole('button', { name: /^Delete \d+ record/ }).click();
      await dialog.getByText(/records? deleted\./).waitFor();
      await dialog.getByRole('button', { name: 'Close' }).click();
      await page.getByRole('link', { name: 'History', exact: true }).click();
      await page.getByText('this page broke the lease of worker-1').waitFor();
      await page.getByRole('button', { name: 'Help and shortcuts' }).click();
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('go to keys').waitFor();
      expect(await violations(page)).toEqual([]);
    } finally {
      served.child.kill();
      await served.exited;
      await cli.remove();
    }
  });
});
