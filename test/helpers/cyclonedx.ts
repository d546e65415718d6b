// What CycloneDX 1.6 asks of the parts of it that are used here (https://cyclonedx.org/docs/1.6/json/).

import assert from 'node:assert/strict'
import { Ajv } from 'ajv'

export interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly group?: string
  readonly version: string
  readonly purl: string
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly properties?: readonly { readonly name: string; readonly value: string }[]
  readonly components?: readonly Component[]
}

export interface BillOfMaterials {
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
}

const text = { type: 'string', minLength: 1 }
const object = (properties: Record<string, object>, required: readonly string[]) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})
const list = (items: object) => ({ type: 'array', items, uniqueItems: true })
const licence = {
  oneOf: [
    object({ license: object({ id: text }, ['id']) }, ['license']),
    object({ expression: text }, ['expression']),
  ],
}
const component = object(
  {
    type: { enum: ['application', 'framework', 'library', 'platform', 'operating-system', 'file'] },
    'bom-ref': text,
    group: text,
    name: text,
    version: text,
    hashes: list(
      object(
        {
          alg: { enum: ['SHA-256', 'SHA-512'] },
          content: { type: 'string', pattern: '^([a-f0-9]{64}|[a-f0-9]{128})$' },
        },
        ['alg', 'content'],
      ),
    ),
    licenses: { type: 'array', items: licence, minItems: 1, maxItems: 1 },
    cpe: { type: 'string', pattern: '^cpe:2\\.3:[aho](:[^:]+){10}$' },
    purl: { type: 'string', pattern: '^pkg:[a-z]+/([^@?#/ ]+/)?[^@?#/ ]+@[^@?#/: ]+(\\?[a-z]+=[^# ]+)?$' },
    properties: list(object({ name: text, value: text }, ['name', 'value'])),
    components: { type: 'array', items: { $ref: '#/$defs/component' } },
  },
  ['type', 'name'],
)
const document = {
  $defs: { component },
  ...object(
    {
      bomFormat: { const: 'CycloneDX' },
      specVersion: { const: '1.6' },
      serialNumber: {
        type: 'string',
        pattern: '^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
      },
      version: { type: 'integer', minimum: 1 },
      metadata: object(
        {
          timestamp: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$' },
          tools: object({ components: list({ $ref: '#/$defs/component' }) }, []),
          component: { $ref: '#/$defs/component' },
        },
        ['timestamp', 'component'],
      ),
      components: list({ $ref: '#/$defs/component' }),
      dependencies: list(object({ ref: text, dependsOn: list(text) }, ['ref'])),
    },
    ['bomFormat', 'specVersion'],
  ),
}

/** Fails where a document is none of CycloneDX 1.6, names a part twice, or leans on a part that it does not have. */
export function checkBillOfMaterials(bill: BillOfMaterials): void {
  const ajv = new Ajv({ allErrors: true })
  assert.ok(ajv.validate(document, bill), ajv.errorsText())
  const inner = bill.components.flatMap(({ components = [] }) => components)
  const references = [bill.metadata.component, ...bill.components, ...inner].map(each => each['bom-ref'])
  assert.equal(new Set(references).size, references.length)
  const mentioned = bill.dependencies.flatMap(({ ref, dependsOn = [] }) => [ref, ...dependsOn])
  assert.deepEqual([...new Set(mentioned)].sort(), [...references].sort())
}
