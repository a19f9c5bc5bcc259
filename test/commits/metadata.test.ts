import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commitInput } from '../../shared/commits/inputs.ts';
import {
  type CommitEntry,
  fingerprint,
  newServiceMetadata,
  parseServiceMetadata,
  type ServiceMetadata,
  userMetadata,
} from '../../shared/commits/metadata.ts';
import { normalEtag, pathFault } from '../../shared/commits/paths.ts';
import { commitRequest } from '../../shared/commits/request.ts';
import { seededIds } from '../support/chance/seed.ts';
import { ManualClock } from '../support/time/clock.ts';

const ROLE = 'arn:aws:sts::123456789012:assumed-role/writer';
const UPLOAD = '0f8fad5b-d9cb-469f-a165-70867728950e';

const visible = (from: number, to: number) =>
  fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: from,
    maxLength: to,
  });
const entry = visible(1, 64).map((commitId): CommitEntry => ({ commitId, fingerprint: fingerprint(commitId) }));
const fence = fc.record({
  key: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
  token: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
});

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

describe('the metadata of the service', () => {
  it('the metadata of the service reads as it was written, whatever its values', () => {
    fc.assert(
      fc.property(fc.string(), entry, maybe(fence), maybe(fc.uuid()), (path, commit, held, call) => {
        const serviceMetadata = parseServiceMetadata(
          path,
          newServiceMetadata(path, { before: null, entry: commit, fence: held, call }),
        );
        expect(serviceMetadata).toEqual({ commits: [commit], complete: true, fence: held, call, isReset: false });
      }),
    );
  });

  it('the metadata of the service holds the last eight commits, and whether more existed', () => {
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 12 }), fc.boolean(), (commits, afterForeign) => {
        let serviceMetadata: ServiceMetadata | null | undefined = afterForeign ? undefined : null;
        for (const commit of commits)
          serviceMetadata = parseServiceMetadata(
            'p',
            newServiceMetadata('p', { before: serviceMetadata, entry: commit }),
          );
        expect(serviceMetadata?.commits).toEqual(commits.slice(-8));
        expect(serviceMetadata?.complete).toBe(!afterForeign && commits.length <= 8);
      }),
    );
  });

  // Objects keep their fingerprints. If a release changed one, a repeat after the upgrade would count as another commit.
  it.each<[string, object, string | undefined, string]>([
    ['a body', { ifNoneMatch: '*', body: 'one' }, undefined, '6yKVuQbTv9n'],
    ['a replacement', { ifMatch: '"x"', body: 'one' }, undefined, '2c_rGOZDn_7'],
    ['a session of a role', { ifNoneMatch: '*', body: 'one' }, `${ROLE}/session-1`, 'NA2ihiacqGB'],
    // An issuer chooses the subject of a JWT freely. A subject that looks like a role is still a caller of its own.
    ['a name that holds one', { ifNoneMatch: '*', body: 'one' }, `sub:${ROLE}/session-1`, 'Zehf1EkWfuK'],
    ['an upload', { ifNoneMatch: '*', source: UPLOAD }, undefined, 'T3qHs1WFEqu'],
    ['an upload with its ETag', { ifNoneMatch: '*', source: UPLOAD, sourceEtag: '"x"' }, undefined, '5EMsaT16Z6r'],
  ])(
    'the metadata of the service keeps the same fingerprint in each release: of %s',
    (_, input, principal, expected) => {
      const dependencies = { ids: seededIds(1), clock: new ManualClock() };
      const request = commitRequest(dependencies, commitInput().parse({ path: 'p', ...input }), principal);
      expect(request.entry.fingerprint).toBe(expected);
    },
  );

  it('the metadata of the service counts for one path, and is not user metadata', () => {
    const metadata = {
      ...newServiceMetadata('p', {
        before: null,
        entry: { commitId: 'c', fingerprint: fingerprint() },
        fence: { key: 'k', token: 1 },
        call: 'this one',
      }),
      a: 'b',
    };
    expect(parseServiceMetadata('q', metadata)).toBeUndefined();
    expect(userMetadata(metadata)).toEqual({ a: 'b' });
  });

  it('the metadata of the service has a fixed form', () => {
    // `undefined` stands for the object of a foreign writer, which breaks the chain.
    const [before, entry] = [undefined, { commitId: 'c', fingerprint: 'fingerprint' }];
    const written = newServiceMetadata('p', {
      before,
      entry,
      fence: { key: 'k', token: 7 },
      call: 'mine',
      isReset: true,
    });
    expect(written).toEqual({
      'holdfast-commits': expect.stringMatching(/^[\w-]{6} ~ fingerprintc$/),
      'holdfast-fence': '7 aw',
      'holdfast-call': 'mine',
      'holdfast-reset': '1',
    });
  });

  it.each(['x7 aw', '7 aw x', '7', '', 'aw', '12345678901234567 aw'])(
    'the metadata of the service does not show a broken fence: %j',
    (fence) => {
      const entry = { commitId: 'c', fingerprint: fingerprint() };
      const serviceMetadata = newServiceMetadata('p', { before: null, entry });
      expect(parseServiceMetadata('p', { ...serviceMetadata, 'holdfast-fence': fence })).toMatchObject({
        commits: [entry],
        fence: undefined,
      });
    },
  );

  it('broken metadata of the service counts as that of a foreign writer', () => {
    for (const value of ['', ' ', 'x y z', '~'])
      expect(parseServiceMetadata('p', { 'holdfast-commits': value })).toBeUndefined();
  });
});

describe('an ETag', () => {
  it('an ETag has one normal form', () => {
    fc.assert(
      fc.property(visible(1, 40), (value) => {
        const etag = normalEtag(value);
        if (etag !== undefined) expect([normalEtag(etag), etag]).toEqual([etag, expect.stringMatching(/^"[^"]+"$/)]);
      }),
    );
  });
});

describe('a path', () => {
  it('no URL parser rewrites a path that is accepted', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', '/', '.', '..', 'ä'), { minLength: 1, maxLength: 8 }), (parts) => {
        const path = parts.join('');
        if (pathFault(path) !== undefined) return;
        const parsed = new URL(`http://s3/bucket/${path}`).pathname;
        expect(decodeURIComponent(parsed)).toBe(`/bucket/${path}`);
      }),
    );
  });
});
