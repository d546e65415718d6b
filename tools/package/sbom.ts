// The bill of materials in CycloneDX 1.6 format (https://cyclonedx.org/docs/1.6/json/).

import { createHash } from 'node:crypto'
import type { ForeignPart } from './foreign-parts.ts'
import { timeText } from './release.ts'
import type { Tree } from './stage.ts'

/** The document, deterministic for the same parts. */
export function billOfMaterials(
  { version, architecture, epoch }: Tree,
  parts: readonly ForeignPart[],
): string {
  const own = `pkg:generic/svc@${version}?arch=${architecture}`
  const components = parts.map(componentOf)
  const body = {
    version: 1,
    metadata: {
      timestamp: timeText(epoch),
      tools: { components: [{ type: 'application', name: 'tools/package.ts', group: 'svc', version }] },
      component: {
        type: 'application',
        'bom-ref': own,
        name: 'svc',
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
        purl: own,
      },
    },
    components,
    dependencies: [
      { ref: own, dependsOn: parts.map(({ purl }) => purl) },
      ...components.map(({ 'bom-ref': ref, components: inner = [] }) => ({
        ref,
        dependsOn: inner.map(each => each['bom-ref']),
      })),
      ...components.flatMap(({ components: inner = [] }) => inner.map(each => ({ ref: each['bom-ref'] }))),
    ],
  }
  const head = { bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber: serialOf(JSON.stringify(body)) }
  return `${JSON.stringify({ ...head, ...body }, undefined, 1)}\n`
}

function componentOf({ name, version, licence, purl, within, hash, parts }: ForeignPart) {
  const inner = Object.entries(parts ?? {}).map(([part, its]) => ({
    type: 'library',
    'bom-ref': `${purl}#${part}`,
    name: part,
    version: its,
    purl: `pkg:generic/${part}@${encodeURIComponent(its)}`,
  }))
  const [, group, short] = /^(@[^/]+)\/(.+)$/.exec(name) ?? []
  return {
    type: name === 'node' ? 'platform' : 'library',
    'bom-ref': purl,
    ...(group !== undefined && { group }),
    name: short ?? name,
    version,
    ...(hash !== undefined && { hashes: [hash] }),
    licenses: [licence.includes(' ') ? { expression: licence } : { license: { id: licence } }],
    ...(name === 'node' && { cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*` }),
    purl,
    properties: [{ name: 'svc:within', value: within }],
    ...(inner.length > 0 && { components: inner }),
  }
}

/** A UUID derived from a text (RFC 9562, version 8). */
function serialOf(text: string): string {
  const digits = createHash('sha256').update(text).digest('hex')
  const variant = ((Number.parseInt(digits[16]!, 16) & 3) | 8).toString(16)
  return `urn:uuid:${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20, 32)}`
}
