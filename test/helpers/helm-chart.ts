// The chart as Helm 3 would render it: Debian has no Helm, and a small program on the same template language stands in.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { stringify } from 'yaml'

const root = resolve(import.meta.dirname, '../..')
export const chart = join(root, 'deploy/helm/svc')
const source = join(root, 'test/deploy/render')
/** Where Debian has sources of Go (dh-golang). */
const goPath = '/usr/share/gocode'
const libraries = ['github.com/Masterminds/sprig', 'sigs.k8s.io/yaml']

export const withoutHelmRender: string | false =
  spawnSync('go', ['version']).status === 0 && libraries.every(name => existsSync(join(goPath, 'src', name)))
    ? false
    : 'charts are rendered by Go with golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev, which are not all there'

export interface Rendering {
  readonly name?: string
  readonly namespace?: string
  /** What a user sets, each over the one before. */
  readonly values?: readonly object[]
  readonly kubeVersion?: string
  readonly apiVersions?: readonly string[]
  /** Regular expressions that Go must take. */
  readonly patterns?: readonly string[]
  /** What `lookup` finds in the cluster. */
  readonly existing?: readonly object[]
}

export interface Rendered {
  /** By path in the chart; null where it failed. */
  readonly files: Readonly<Record<string, string>> | null
  /** Those of the chart with those of the user. */
  readonly values: Readonly<Record<string, unknown>>
  readonly error: string
}

/** Renders as many times as asked, in one run of the program. */
export function renderChart(renderings: readonly Rendering[]): readonly Rendered[] {
  const input = renderings.map(each => ({
    chart,
    name: each.name ?? 'svc',
    namespace: each.namespace ?? 'svc',
    values: (each.values ?? []).map(values => stringify(values)),
    kubeVersion: each.kubeVersion ?? 'v1.33.1',
    apiVersions: each.apiVersions ?? [],
    patterns: each.patterns ?? [],
    existing: each.existing ?? [],
  }))
  const run = spawnSync(program(), { input: JSON.stringify(input), maxBuffer: 256 * 1024 * 1024 })
  if (run.status !== 0) throw new Error(`the chart cannot be rendered: ${run.stderr}`)
  return JSON.parse(String(run.stdout))
}

/** Compiled once for each of its sources. */
function program(): string {
  const text = readFileSync(join(source, 'main.go'))
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 12)
  const folder = join(root, 'build/helm-render')
  const kept = join(folder, digest)
  if (existsSync(kept)) return kept
  mkdirSync(folder, { recursive: true })
  const own = `${kept}.${process.pid}`
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: goPath, GOFLAGS: '', CGO_ENABLED: '0' }
  const run = spawnSync('go', ['build', '-o', own, 'main.go'], {
    cwd: source,
    env: { ...env, GOCACHE: join(folder, 'cache') },
  })
  if (run.status !== 0) throw new Error(`the renderer does not compile: ${run.stderr}`)
  renameSync(own, kept)
  return kept
}
