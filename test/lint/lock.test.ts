import { expect, it } from 'vitest';
import lock from '../../package-lock.json' with { type: 'json' };

interface Entry {
  optionalDependencies?: Record<string, string>;
  libc?: string[];
}

const entries = lock.packages as Record<string, Entry>;

/** The places of a package that a package at a path may load: in its own folder, and in each folder around it. */
const placesOf = (name: string, path: string): string[] =>
  [...`${path && `${path}/`}node_modules/`.matchAll(/node_modules\//g)].map(
    ({ index }) => `${path.slice(0, index)}node_modules/${name}`,
  );

it('the lock file has each optional package of each platform, so npm install adds none in a fresh clone', () => {
  const missing = Object.entries(entries).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !placesOf(name, path).some((place) => entries[place]))
      .map((name) => `${name} of ${path}`),
  );
  expect(missing).toEqual([]);
});

it('the lock file has no field libc, which npm 10 removes and npm 11 does not add', () => {
  expect(Object.keys(entries).filter((path) => entries[path]?.libc)).toEqual([]);
});
