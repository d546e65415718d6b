import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../config/index.ts'
import type { Pod, PodContainer } from '../../foundation/model/entity.ts'
import type { ContainerPlace } from '../../identity/entities/container-place.ts'
import { Entities } from '../../identity/entities/entities.ts'
import type { LineReader } from '../../signals/logs/line-reader.ts'
import { WaitingText } from '../../signals/logs/waiting-text.ts'
import { logSources } from './log-sources.ts'

const podUid = '11111111-2222-3333-4444-555555555555'
const first = 'a'.repeat(64)
const second = 'b'.repeat(64)
const criLine = '2026-01-01T00:00:00Z stdout F hello'

interface Place {
  readonly entities: Entities
  readonly root: string
  /** Of a log of the pod; undefined: it is none. */
  reader(source: string, path: string): LineReader | undefined
  /** Whose a line is, and what it says. */
  say(reader: LineReader, line: string): [body: string, place: ContainerPlace | undefined]
  /** The path of a file that is made where the kubelet has it made. */
  log(name: string): string
}

function place(t: TestContext): Place {
  const root = mkdtempSync(join(tmpdir(), 'svc-log-sources-'))
  t.after(() => rmSync(root, { recursive: true }))
  const directories = {
    docker: join(root, 'docker'),
    pods: join(root, 'pods'),
    links: join(root, 'links'),
  }
  const log = (name: string) => join(directories.pods, `shop_web-1_${podUid}`, 'main', name)
  mkdirSync(dirname(log('0.log')), { recursive: true })
  mkdirSync(directories.links)
  const nowhere = '/nonexistent'
  const { config } = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env: {} })
  const entities = new Entities({})
  const said: [string, ContainerPlace | undefined][] = []
  const sources = logSources({
    settings: config.agent.logs,
    entities,
    waiting: new WaitingText(1024 * 1024),
    directories,
    emit: (_source, placeOf) => record => said.push([record.body, placeOf?.()]),
  })
  return {
    entities,
    root,
    log,
    reader: (name, path) => {
      const { dev: device, ino: inode } = statSync(path)
      return sources.find(source => source.name === name)!.reader({ path, device, inode, owner: 'user 0' })
    },
    say: (reader, line) => {
      const bytes = Buffer.from(line)
      reader.line(bytes, 0, bytes.length, 0)
      reader.flush(true)
      return said.pop()!
    },
  }
}

function pod(...containers: readonly Pick<PodContainer, 'id' | 'restarts'>[]): Pod {
  return {
    uid: podUid,
    name: 'web-1',
    namespace: 'shop',
    node: '',
    startUs: 0,
    addresses: [],
    labels: new Map(),
    annotations: new Map(),
    owners: [],
    containers: containers.map(each => ({ name: 'main', image: '', ...each })),
  }
}

test('a log of a pod is of the container with its number of restarts, as soon as somebody tells which', async t => {
  const { entities, reader, say, log } = place(t)
  writeFileSync(log('1.log'), '')
  entities.pod(pod({ id: first, restarts: 0 }))
  const lines = reader('cri', log('1.log'))!
  assert.deepEqual(say(lines, criLine), ['hello', { id: '', runtime: '', podUid }])
  entities.pod(pod({ id: second, restarts: 1 }))
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(50))
    if (say(lines, criLine)[1]?.id !== '') break
  assert.deepEqual(say(lines, criLine), ['hello', { id: second, runtime: '', podUid }])
})

test('a log of a pod is of the container that the link of the kubelet names, where nobody else tells', t => {
  const { root, reader, say, log } = place(t)
  for (const [name, id] of [
    ['0.log', first],
    ['1.log', second],
  ] as const) {
    writeFileSync(log(name), '')
    symlinkSync(log(name), join(root, 'links', `web-1_shop_main-${id}.log`))
  }
  assert.equal(say(reader('cri', log('0.log'))!, criLine)[1]?.id, first)
  assert.equal(say(reader('cri', log('1.log'))!, criLine)[1]?.id, second)
})

test('a log of a pod that leads to a file of Docker is read as such', t => {
  const { root, reader, say, log } = place(t)
  const file = join(root, 'elsewhere', first, `${first}-json.log`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, '')
  symlinkSync(file, log('0.log'))
  const line = JSON.stringify({ log: 'hello\n', stream: 'stdout', time: '2026-01-01T00:00:00Z' })
  const said = say(reader('cri', log('0.log'))!, line)
  assert.deepEqual(said, ['hello', { id: first, runtime: 'docker', podUid }])
})

test('a link beside logs of containers does not have another file read', t => {
  const { root, reader, log } = place(t)
  const secret = join(root, 'secret')
  writeFileSync(secret, '')
  symlinkSync(secret, log('0.log'))
  assert.equal(reader('cri', log('0.log')), undefined)
  const docker = join(root, 'docker', first, `${first}-json.log`)
  mkdirSync(dirname(docker), { recursive: true })
  symlinkSync(secret, docker)
  assert.equal(reader('docker', docker), undefined)
})

test('what is to be left out and cannot be read is told with its key', () => {
  const nowhere = '/nonexistent'
  const { config } = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env: {} })
  const settings = { ...config.agent.logs, exclude: ['*.gz'] }
  assert.throws(
    () =>
      logSources({
        settings,
        entities: new Entities({}),
        waiting: new WaitingText(0),
        emit: () => () => undefined,
      }),
    /^Error: invalid pattern "\*\.gz" in agent\.logs\.exclude: it does not start with "\/"$/,
  )
})
