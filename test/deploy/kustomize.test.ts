import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { before, test } from 'node:test'
import { renderChart, withoutHelmRender } from '../helpers/helm-chart.ts'
import {
  documents,
  type KubeObject,
  kustomizeFiles,
  objectsOf,
  places,
  withoutHelm,
} from '../helpers/helm-objects.ts'
import { faultsOf } from '../helpers/kube-manifests.ts'
import { kubectl, withoutKubectl } from '../helpers/kubectl.ts'

const root = resolve(import.meta.dirname, '../..')
const charts = new Map<string, KubeObject[]>()

before(() => {
  if (withoutHelmRender) return
  const all = renderChart(Object.values(places))
  for (const [i, place] of Object.keys(places).entries()) charts.set(place, withoutHelm(objectsOf(all[i]!)))
})

test('the files of deploy/kustomize follow from the chart', { skip: withoutHelmRender }, () => {
  for (const [file, text] of kustomizeFiles())
    assert.equal(
      readFileSync(resolve(root, file), 'utf8'),
      text,
      `${file} is stale: run test/deploy/write-kustomize.ts`,
    )
})

for (const place of Object.keys(places))
  test(`${place} of kustomize is the chart`, { skip: withoutHelmRender || withoutKubectl }, () => {
    const { status, stdout, stderr } = kubectl(['kustomize', resolve(root, 'deploy/kustomize', place)])
    assert.deepEqual([status, stderr], [0, ''])
    const built = documents(place, stdout)
    assert.deepEqual(faultsOf(built), [])
    const [namespace, ...others] = built
    assert.equal(namespace!.metadata.labels!['pod-security.kubernetes.io/enforce'], 'privileged')
    assert.deepEqual(byName(others), byName(charts.get(place)!))
  })

/** A ConfigMap that kustomize makes has no labels of ours, and its text says who wrote it. */
function byName(objects: readonly KubeObject[]): object {
  return Object.fromEntries(
    objects.map(object => {
      const { kind, metadata } = object
      const name = `${kind} ${metadata.name}`
      if (kind !== 'ConfigMap') return [name, object]
      return [name, object.data['config.yaml'].replace(/^#.*\n/, '')]
    }),
  )
}
