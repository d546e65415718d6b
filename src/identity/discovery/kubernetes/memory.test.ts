import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { makeCertificates } from '../../../../test/helpers/certificates.ts'
import { KubernetesApi, podObject } from '../../../../test/helpers/kubernetes-api.ts'
import { pause, until } from '../../../../test/helpers/program.ts'
import { runtimeFlags } from '../../../../test/helpers/runtime-flags.ts'
import { soak } from '../../../../test/helpers/soak.ts'

const podCount = soak ? 5_000 : 1_000
const changeSeconds = soak ? 20 : 2
const perSecond = 100
const mostAddedBytes = 30 * 1024 * 1024
const program = join(import.meta.dirname, '../../../../test/helpers/kubernetes-follower.ts')

interface Memory {
  kept: number
  rss: number
  longestTurnMs: number
}

class Follower {
  readonly #child: ChildProcess
  readonly #replies: AsyncIterator<string>

  constructor(port: number, account: string) {
    this.#child = spawn(
      process.execPath,
      [...runtimeFlags, '--expose-gc', program, String(port), 'node-a', account],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    )
    this.#replies = createInterface(this.#child.stdout!)[Symbol.asyncIterator]()
  }

  async ask<Reply>(line: string): Promise<Reply> {
    this.#child.stdin!.write(`${line}\n`)
    const { value, done } = await this.#replies.next()
    if (done) throw new Error(`the program ended before it answered "${line}"`)
    return JSON.parse(value)
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exited = new Promise(resolve => this.#child.once('exit', resolve))
    this.#child.kill('SIGKILL')
    await exited
  }
}

function podOf(i: number, restarts: number) {
  return podObject({
    name: `shop-${i % 50}-5d4f7c-${i}`,
    uid: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    namespace: `team-${i % 20}`,
    owner: { kind: 'ReplicaSet', name: `shop-${i % 50}-5d4f7c`, uid: `rs-${i % 50}` },
    labels: {
      'app.kubernetes.io/name': `shop-${i % 50}`,
      'app.kubernetes.io/version': '1.2.3',
      'pod-template-hash': '5d4f7c',
      team: `team-${i % 20}`,
    },
    address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    restarts,
  })
}

test(`${podCount} pods that change ${perSecond} times a second stay within their memory`, async t => {
  const certificates = makeCertificates()
  const account = mkdtempSync(join(tmpdir(), 'svc-kubernetes-memory-'))
  writeFileSync(join(account, 'token'), 't')
  writeFileSync(join(account, 'ca.crt'), certificates.text('ca.pem'))
  const tls = { cert: certificates.text('server.pem'), key: certificates.text('server.key') }
  const api = await KubernetesApi.start({ tls, paddingBytes: 6_000 })
  const follower = new Follower(api.port, account)
  t.after(async () => {
    await follower.close()
    await api.close()
    certificates.remove()
    rmSync(account, { recursive: true })
  })
  const restarts = new Map<string, number>()
  const put = (i: number, count: number) => {
    const pod = podOf(i, count)
    api.put('pods', pod)
    restarts.set((pod.metadata as { name: string }).name, count)
  }
  for (let i = 0; i < 50; i++) {
    const deployment = { kind: 'Deployment', name: `shop-${i}`, uid: `dep-${i}`, controller: true }
    for (let team = 0; team < 20; team++)
      api.put('replicasets', {
        metadata: {
          name: `shop-${i}-5d4f7c`,
          namespace: `team-${team}`,
          uid: `rs-${i}`,
          ownerReferences: [deployment],
        },
      })
  }
  for (let i = 0; i < podCount; i++) put(i, 0)
  const before = await follower.ask<Memory>('measure')
  await follower.ask('start')
  const knows = (what: string, test: () => Promise<boolean>) => until(what, 60_000, test)
  await knows('all pods are known', async () => {
    const { podsWatched, connected } = await follower.ask<{ podsWatched: number; connected: boolean }>(
      'state',
    )
    return podsWatched === podCount && connected
  })
  const listed = await follower.ask<Memory>('measure')
  let next = podCount
  for (let round = 0; round < changeSeconds * 10; round++) {
    for (let i = 0; i < perSecond / 10; i++) {
      const at = (round * 37 + i * 101) % podCount
      const { name, namespace } = podOf(at, 0).metadata as { name: string; namespace: string }
      if (i > 0 && restarts.has(name)) put(at, restarts.get(name)! + 1)
      else if (restarts.delete(name)) {
        api.delete('pods', name, namespace)
        put(next++, 0)
      }
    }
    if (round % 20 === 10) api.disconnect()
    await pause(100)
  }
  const changed = await follower.ask<Memory>('measure')
  const wanted = JSON.stringify([...restarts].sort())
  await knows('what the server has is known', async () => {
    const pods = await follower.ask<[string, number][]>('pods')
    return JSON.stringify(pods.sort()) === wanted
  })
  const look = await follower.ask<{ found: number; of: number; eachNs: number }>('look')
  const after = await follower.ask<Memory>('measure')
  const mb = (bytes: number) => (bytes / 1024 / 1024).toFixed(1)
  t.diagnostic(
    `kept +${mb(after.kept - before.kept)} MB (after the list +${mb(listed.kept - before.kept)}), ` +
      `RSS ${mb(before.rss)} → ${mb(listed.rss)} → ${mb(changed.rss)} MB, ` +
      `longest turn ${listed.longestTurnMs.toFixed(1)} ms and ${changed.longestTurnMs.toFixed(1)} ms, a look-up ${look.eachNs.toFixed(0)} ns`,
  )
  assert.equal(look.of, podCount)
  assert.equal(look.found, podCount)
  assert.ok(after.kept - before.kept <= mostAddedBytes, `${mb(after.kept - before.kept)} MB`)
  assert.equal(api.count('list pods'), 1, 'a connection that breaks costs no list')
})
