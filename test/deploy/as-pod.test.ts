// owns: host
// The agent's pod of the chart, as a container runs it: nothing is missing, and what it tells is the node's.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { killPod, runAsPod } from '../helpers/as-pod.ts'
import { renderChart, withoutHelmRender } from '../helpers/helm-chart.ts'
import { objectsOf } from '../helpers/helm-objects.ts'
import { withoutNamespaces } from '../helpers/network-namespace.ts'
import { freePort, Program, until } from '../helpers/program.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-as-pod-'))
after(() => rmSync(directory, { recursive: true }))

/** Asks until the agent answers, and keeps what it says. */
const script = `
for try in 1 2 3; do svc doctor --json > /var/lib/svc/doctor.json && break; done || true
svc run > /var/lib/svc/log 2>&1 & agent=$!
until curl -fs http://127.0.0.1:19090/healthz > /dev/null || ! kill -0 $agent; do sleep 0.2; done
cd /var/lib/svc
echo > started
svc tap traces -n 1 --json --service shop-of-the-node > span.json
curl -fs http://127.0.0.1:9100/metrics > metrics
code() { curl -s -o /dev/null -w '%{http_code} ' "$@"; }
own=http://127.0.0.1:19090
{ code $own/healthz; code $own/metrics; code -H "Authorization: Bearer $(cat /etc/svc-auth/token)" $own/metrics; } > codes
kill -TERM $agent; wait $agent; echo $? > ended
touch /written 2> /dev/null && echo > root-written || true
`

test('the agent in its pod', { skip: withoutHelmRender || withoutNamespaces }, async () => {
  const [result] = renderChart([{}])
  const objects = objectsOf(result!)
  const config = objects.find(({ kind }) => kind === 'ConfigMap')!.data['config.yaml']
  const secret = objects.find(({ kind }) => kind === 'Secret')!
  const token = Buffer.from(secret.data.token, 'base64').toString('latin1')
  const { spec } = objects.find(({ kind }) => kind === 'DaemonSet')!.spec.template
  const state = (name: string) => readFileSync(join(directory, 'state', name), 'utf8')
  const isThere = (name: string) => {
    try {
      return state(name) !== undefined
    } catch {
      return false // not yet
    }
  }
  const name = { OTEL_SERVICE_NAME: 'shop-of-the-node' }
  const shop = await Program.start('shop-node.ts', { port: await freePort() }, name)
  const { port } = shop.ready
  const pod = runAsPod({
    spec,
    config,
    directory,
    command: script,
    secrets: { [secret.metadata.name]: { token } },
  })
  const exited = once(pod, 'exit')
  try {
    await until('it has started', 60_000, () => isThere('started') || pod.exitCode !== null)
    await until('it has ended', 60_000, async () => {
      if (pod.exitCode === null)
        await once(
          get({ port, path: '/items/7', agent: false }).on('error', () => undefined),
          'close',
        )
      return pod.exitCode !== null
    })
  } finally {
    if (pod.exitCode === null) killPod(pod)
    await exited
    await shop.close()
  }

  const { ok, groups } = JSON.parse(state('doctor.json'))
  const faults = groups
    .flatMap(({ checks }: { checks: readonly { state: string }[] }) => checks)
    .filter(({ state }: { state: string }) => state === 'missing' || state === 'limited')
  assert.deepEqual([faults, ok], [[], true])
  assert.equal(Number(state('ended')), 0, state('log'))
  const span = state('span.json')
  assert.match(span, /GET \/items/)
  assert.match(span, /"host.name","value":\{"stringValue":"node-a"\}/)
  assert.equal(state('codes').trim(), '200 401 200', 'probes need no token, all else does')
  const metrics = state('metrics')
  assert.match(metrics, /node_filesystem_size_bytes\{[^}]*mountpoint="\/"[^}]*\}/, 'as the node has it')
  assert.match(metrics, /^node_load1 /m)
  assert.doesNotMatch(metrics, /node_network_receive_bytes_total/, 'the pod has a network of its own')
  assert.ok(!isThere('root-written'), 'its root is read-only')
})
