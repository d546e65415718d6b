// What a rendered chart is made of, and what of it belongs to Helm alone.

import { parseAllDocuments, stringify } from 'yaml'
import { type Rendered, type Rendering, renderChart } from './helm-chart.ts'

export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  // biome-ignore lint/suspicious/noExplicitAny: manifests are looked into as they are
  readonly [key: string]: any
}

/** Every object of the files; throws where one is no YAML, or has a key twice. */
export function objectsOf({ files, error }: Rendered): KubeObject[] {
  if (files === null) throw new Error(error)
  return Object.entries(files)
    .filter(([path]) => path.endsWith('.yaml'))
    .flatMap(([path, text]) => documents(path, text))
}

export function documents(path: string, text: string): KubeObject[] {
  return parseAllDocuments(text, { uniqueKeys: true }).flatMap(document => {
    const fault = [...document.errors, ...document.warnings][0]
    if (fault !== undefined) throw new Error(`${path}: ${fault.message}\n${text}`)
    const object = document.toJS()
    return object === null ? [] : [object]
  })
}

/** Without what Helm puts there, hooks included, for others to apply. */
export function withoutHelm(objects: readonly KubeObject[]): KubeObject[] {
  return objects
    .filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined)
    .map(object => JSON.parse(JSON.stringify(object), cleaned))
}

const ofHelm = new Set(['helm.sh/chart', 'app.kubernetes.io/managed-by', 'svc/restart'])

function cleaned(key: string, value: unknown): unknown {
  if ((key !== 'labels' && key !== 'annotations') || typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name]) => !ofHelm.has(name))
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

const folder = 'deploy/kustomize'
const head = '# Written by test/deploy/write-kustomize.ts from deploy/helm/svc; do not edit.\n'

/** Nothing but its user can make a token there. */
const auth = { existingSecret: 'svc-auth' }

/** What each place of deploy/kustomize is as a chart. */
export const places: Readonly<Record<string, Rendering>> = {
  base: { values: [{ auth }] },
  'overlays/privileged': { values: [{ auth, privileged: true }] },
  'overlays/openshift': { values: [{ auth, openshift: { enabled: true } }] },
  'overlays/collector': {
    values: [
      {
        auth,
        collector: {
          enabled: true,
          config: { collectors: { prometheus: { kubernetes_sd: [{ role: 'pod' }] } } },
        },
      },
    ],
  },
}

/** The files of deploy/kustomize that follow from the chart, by their path in the tree. */
export function kustomizeFiles(): ReadonlyMap<string, string> {
  const names = Object.keys(places)
  const rendered = renderChart(names.map(name => places[name]!))
  const byPlace = new Map(names.map((name, i) => [name, withoutHelm(objectsOf(rendered[i]!))]))
  const of = (place: string, component: string) =>
    byPlace.get(place)!.filter(each => each.metadata.labels?.['app.kubernetes.io/component'] === component)
  const files = new Map<string, string>()
  const write = (name: string, place: string, objects: readonly KubeObject[]) => {
    const config = objects.find(({ kind }) => kind === 'ConfigMap')
    if (config !== undefined) files.set(`${folder}/${place}/config.yaml`, head + config.data['config.yaml'])
    const others = objects.filter(({ kind }) => kind !== 'ConfigMap')
    files.set(`${folder}/${place}/${name}`, head + others.map(each => stringify(each)).join('---\n'))
  }
  write('agent.yaml', 'base', of('base', 'agent'))
  write('collector.yaml', 'overlays/collector', of('overlays/collector', 'collector'))
  const isConstraint = ({ kind }: KubeObject) => kind === 'SecurityContextConstraints'
  write(
    'constraints.yaml',
    'overlays/openshift',
    of('overlays/openshift', 'agent').filter(each => isConstraint(each)),
  )
  return files
}
