import { branchJson } from '../foundation/schema/collections.ts'
import { schema } from './schema.ts'

/** The configuration file as a JSON Schema (2020-12), for editors. It also allows the short forms and `${VAR}`. */
export function jsonSchema(): object {
  const { properties, ...root } = branchJson(schema) as { properties: Record<string, unknown> }
  const groups = Object.entries(schema.groups ?? {}).map(([group, names]) => {
    const keys = Object.fromEntries(names.map(name => [name, properties[name]]))
    return [
      group,
      {
        description: 'The same keys as at the root.',
        type: 'object',
        properties: keys,
        additionalProperties: false,
      },
    ]
  })
  const spellings = Object.entries(schema.spellings ?? {}).map(([other, name]) => [other, properties[name]])
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'svc configuration',
    ...root,
    properties: { ...properties, ...Object.fromEntries(groups), ...Object.fromEntries(spellings) },
    $defs: {
      reference: {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the file's own syntax
        description: 'A reference such as ${VAR}, ${VAR:-default} or ${file:/path}.',
        type: 'string',
        pattern: '[$][{]',
      },
    },
  }
}
