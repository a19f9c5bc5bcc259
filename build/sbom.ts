import type { BundledPackage } from './licences.ts';

/** The packages in each part of the release: in the zip of a function, or in a file. */
interface Packages {
  function: Record<string, BundledPackage[]>;
  file: Record<string, BundledPackage[]>;
}

/** The bill of materials in CycloneDX 1.6: the npm packages of a release, and for each the parts of the release that have its code. */
export function sbom(version: string, packages: Packages): string {
  // Not pkg:npm, because on npm `holdfast` is only the command.
  const product = `pkg:generic/holdfast@${version}`;
  const uses = Object.entries(packages).flatMap(([kind, byName]) =>
    Object.entries<BundledPackage[]>(byName).flatMap(([value, within]) =>
      within.map((one) => ({ one, purl: purlOf(one), property: { name: `holdfast:${kind}`, value } })),
    ),
  );
  const components = [...Map.groupBy(uses, ({ purl }) => purl)].map(([purl, own]) => ({
    ...libraryOf(own[0]?.one as BundledPackage, purl),
    properties: own.map(({ property }) => property),
  }));
  const refs = components.map((component) => component['bom-ref']);
  const bom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    ...{ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 },
    metadata: {
      component: {
        ...{ type: 'application', name: 'holdfast', version, purl: product, 'bom-ref': product },
        licenses: [licenceOf('Apache-2.0')],
      },
    },
    components,
    dependencies: [{ ref: product, dependsOn: refs }, ...refs.map((ref) => ({ ref }))],
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

const purlOf = ({ name, version }: BundledPackage): string => `pkg:npm/${name.replace('@', '%40')}@${version}`;

function libraryOf({ name, version, license }: BundledPackage, purl: string) {
  const [group, ...rest] = name.startsWith('@') ? name.split('/') : [undefined, name];
  return {
    ...{ type: 'library', ...(group && { group }), name: rest.join('/'), version, purl, 'bom-ref': purl },
    licenses: [licenceOf(license)],
  };
}

const licenceOf = (license: string) =>
  /^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license };
