import { Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library';
import type { BundledPackage } from './licences.ts';

/** The packages that have code in each part of the release: in the zip of a function, or in a file. */
interface Packages {
  function: Record<string, BundledPackage[]>;
  file: Record<string, BundledPackage[]>;
}

/** CycloneDX 1.6 in JSON: the npm packages in a release, and the parts of the release that have code of each. */
export function sbom(version: string, packages: Packages): string {
  const { Component, SpdxLicense, LicenseExpression } = Models;
  const library = (one: BundledPackage) => {
    const [group, name] = one.name.startsWith('@') ? (one.name.split('/') as [string, string]) : [undefined, one.name];
    const purl = `pkg:npm/${one.name.replace('@', '%40')}@${one.version}`;
    const component = new Component(Enums.ComponentType.Library, name, {
      group,
      version: one.version,
      purl,
      bomRef: purl,
    });
    component.licenses.add(
      /^[\w.+-]+$/.test(one.license) ? new SpdxLicense(one.license) : new LicenseExpression(one.license),
    );
    return component;
  };
  // On npm, `holdfast` is the command alone.
  const purl = `pkg:generic/holdfast@${version}`;
  const product = new Component(Enums.ComponentType.Application, 'holdfast', { version, purl, bomRef: purl });
  product.licenses.add(new SpdxLicense('Apache-2.0'));
  const bom = new Models.Bom({ metadata: new Models.Metadata({ component: product }) });
  const components = new Map<string, Models.Component>();
  const parts = Object.entries(packages).flatMap(([kind, byName]) =>
    Object.entries<BundledPackage[]>(byName).map(([name, within]) => ({ kind, name, within })),
  );
  for (const { kind, name, within } of parts)
    for (const one of within) {
      const id = `${one.name}@${one.version}`;
      const component = components.get(id) ?? library(one);
      components.set(id, component);
      component.properties.add(new Models.Property(`holdfast:${kind}`, name));
    }
  for (const component of components.values()) {
    bom.components.add(component);
    product.dependencies.add(component.bomRef);
  }
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}
