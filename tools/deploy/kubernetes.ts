// Files of the Helm chart that are generated from the program's tables.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Generated } from '../generated.ts'
import { chartFacts } from './kubernetes-facts.ts'
import { valuesSchema } from './kubernetes-values.ts'

const chart = 'deploy/helm/svc'
const { version, description } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
) as { readonly version: string; readonly description: string }

export const kubernetesFiles: readonly Generated[] = [
  { file: `${chart}/Chart.yaml`, text: chartText },
  { file: `${chart}/templates/_generated.tpl`, text: factsText },
  { file: `${chart}/values.schema.json`, text: () => linesOf(valuesSchema()) },
]

function chartText(): string {
  return `# Written by tools/gen-deploy.ts; do not edit.
apiVersion: v2
name: svc
description: ${JSON.stringify(description)}
type: application
version: ${version}
appVersion: ${JSON.stringify(version)}
kubeVersion: ">=1.20.0-0"
`
}

/** A YAML template for `fromYaml`: JSON is YAML, and one line per fact makes readable diffs. */
function factsText(): string {
  const lines = Object.entries(chartFacts()).map(([name, fact]) => `${name}: ${JSON.stringify(fact)}`)
  return `{{- /* Facts from the program's tables. Written by tools/gen-deploy.ts; do not edit. */ -}}
{{- define "svc.facts" -}}
${lines.join('\n')}
{{- end -}}
`
}

/** JSON with one line per value and key of the configuration's first two levels, to make readable diffs. */
function linesOf(value: unknown, depth = 4, indent = ''): string {
  const isTree = typeof value === 'object' && value !== null && !Array.isArray(value)
  const text = JSON.stringify(value)
  if (!isTree || depth === 0 || text.length < 100) return indent === '' ? `${text}\n` : text
  const deeper = `${indent} `
  const lines = Object.entries(value).map(
    ([key, each]) => `${deeper}${JSON.stringify(key)}: ${linesOf(each, depth - 1, deeper)}`,
  )
  return `{\n${lines.join(',\n')}\n${indent}}${indent === '' ? '\n' : ''}`
}
