// owns: ports
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { afterEach, test } from 'node:test'
import { type Signal, signals } from '../../src/foundation/model/signal.ts'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { checkBooks, itemNames } from '../helpers/books.ts'
import { type Exposition, type ExpositionFormat, parseExposition } from '../helpers/exposition.ts'
import { call } from '../helpers/http.ts'
import { type Answer, type Counts, type SpawnedReceiver, spawnReceiver } from '../helpers/otlp-receiver.ts'
import { type Peers, startPeers } from '../helpers/peers.ts'
import { freePort, pause, until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'

const rounds = soak ? 20 : 1
const second = 1000
const patience = 30 * second

const deadline = { error_type: 'deadline_exceeded' }

const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

interface ExportStatus {
  readonly queues: Readonly<Record<Signal, { size: number; exported: number; dropped: number }>>
}

/** Reads the agent's metrics over one connection that is kept, and checks the books of every page. */
class Auditor {
  pages = 0
  latest: Exposition = parseExposition('', 'text')
  readonly #port: number
  readonly #connection = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #seen = new Map<string, number>()
  #running: Promise<void> | undefined
  #fault: unknown
  #stopping = false

  constructor(agent: AgentProcess) {
    this.#port = agent.port
  }

  /** Reads on and on, until `stop`. */
  start(): void {
    this.#stopping = false
    this.#running = this.#run()
  }

  /** Ends reading. Fails where a page was wrong. */
  async stop(): Promise<void> {
    this.#stopping = true
    await this.#running
    if (this.#fault !== undefined) throw this.#fault
  }

  async close(): Promise<void> {
    this.#stopping = true
    await this.#running
    this.#connection.destroy()
  }

  /** Resolves when the pages say so. */
  async until(what: string, test: (page: Exposition) => boolean): Promise<void> {
    await until(
      () => `${what}:\n${this.told()}`,
      patience,
      () => this.#fault !== undefined || test(this.latest),
    )
    if (this.#fault !== undefined) throw this.#fault
  }

  /** What the latest page says of losses and errors. */
  told(): string {
    const names = ['svc_spans_dropped_total', 'svc_metrics_dropped_total', 'svc_export_errors_total']
    const samples = names.flatMap(name => this.latest.families.get(name)?.samples ?? [])
    return samples.map(({ key, value }) => `${key} ${value}`).join('\n')
  }

  /** Reads one page, in one format and the other in turn. */
  async read(): Promise<Exposition> {
    const format: ExpositionFormat = this.pages % 2 === 0 ? 'text' : 'openmetrics'
    const accept = format === 'text' ? '*/*' : 'application/openmetrics-text; version=1.0.0'
    const { type, text } = await this.#get('/metrics', accept)
    assert.equal(
      type,
      format === 'text'
        ? 'text/plain; version=0.0.4'
        : 'application/openmetrics-text; version=1.0.0; charset=utf-8',
    )
    const page = parseExposition(text, format)
    checkBooks(page)
    this.#checkGrowth(page)
    this.pages++
    this.latest = page
    return page
  }

  /** The other document of the same books. */
  async status(): Promise<ExportStatus> {
    return JSON.parse((await this.#get('/status/export', '*/*')).text) as ExportStatus
  }

  /** Resolves when the page and the document have the same numbers: where nothing comes between the two, they do. */
  async agree(): Promise<void> {
    let ofPage = ''
    let ofDocument = ''
    await until(
      () => `both say the same: ${ofPage} and ${ofDocument}`,
      patience,
      async () => {
        const page = await this.read()
        const { queues } = await this.status()
        ofPage = ''
        ofDocument = ''
        for (const signal of signals) {
          const size = page.sum('svc_export_queue_size', { signal_type: signal })
          const exported = page.sum(`svc_${itemNames[signal]}_exported_total`)
          const dropped = page.sum(`svc_${itemNames[signal]}_dropped_total`)
          const queue = queues[signal]
          ofPage += ` ${signal} ${size} ${exported} ${dropped}`
          ofDocument += ` ${signal} ${queue.size} ${queue.exported} ${queue.dropped}`
        }
        return ofPage === ofDocument
      },
    )
  }

  async #run(): Promise<void> {
    try {
      while (!this.#stopping) {
        const before = await this.read()
        if (this.pages % 10 === 0) checkStatus(before, await this.status(), await this.read())
        await pause(20)
      }
    } catch (error) {
      this.#fault = error
    }
  }

  /** What only grows does not fall, and does not vanish. */
  #checkGrowth(page: Exposition): void {
    const now = new Map<string, number>()
    for (const { type, samples } of page.families.values()) {
      if (type === 'gauge') continue
      for (const { key, value } of samples) now.set(key, value)
    }
    for (const [key, before] of this.#seen) {
      const value = now.get(key)
      assert.ok(value !== undefined, `${key} has vanished`)
      assert.ok(value >= before, `${key} fell from ${before} to ${value}`)
    }
    for (const [key, value] of now) this.#seen.set(key, value)
  }

  #get(path: string, accept: string): Promise<{ type: string; text: string }> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.#port, path, agent: this.#connection }
      const call = request({ ...options, headers: { accept } }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', part => {
          text += part
        })
        response.on('error', reject)
        response.on('end', () => {
          if (response.statusCode === 200) resolve({ type: response.headers['content-type']!, text })
          else reject(new Error(`${path} answered ${response.statusCode}: ${text}`))
        })
      })
      call.on('error', reject).end()
    })
  }
}

/** The status document says what the pages before and after it say. */
function checkStatus(before: Exposition, { queues }: ExportStatus, after: Exposition): void {
  for (const signal of signals) {
    const { size, exported, dropped } = queues[signal]
    const check = (what: string, value: number, family: string) => {
      const [least, most] = [before.sum(family), after.sum(family)]
      assert.ok(least <= value && value <= most, `${signal}: ${what} ${value} is not ${least} to ${most}`)
    }
    check('exported', exported, `svc_${itemNames[signal]}_exported_total`)
    check('dropped', dropped, `svc_${itemNames[signal]}_dropped_total`)
    assert.ok(size >= 0)
  }
}

/** Asks the peers as fast as one process can. */
class Load {
  requests = 0
  readonly #peers: Peers
  #running: Promise<void> | undefined
  #stopping = false

  constructor(peers: Peers) {
    this.#peers = peers
  }

  start(): void {
    this.#stopping = false
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      const batch = 200
      await this.#peers.requests(batch, this.requests % 3 === 0 ? '/status/500' : '/status/200')
      this.requests += batch
    }
  }
}

class Scene {
  readonly agent: AgentProcess
  readonly auditor: Auditor
  readonly load: Load
  receiver: SpawnedReceiver
  /** What receivers took that have ended. */
  #earlier = { traces: 0, metrics: 0 }

  private constructor(agent: AgentProcess, peers: Peers, receiver: SpawnedReceiver) {
    this.agent = agent
    this.auditor = new Auditor(agent)
    this.load = new Load(peers)
    this.receiver = receiver
  }

  static async start(otlp: Tree): Promise<Scene> {
    const peers = await startPeers()
    open.push(peers)
    const receiver = await spawnReceiver({ port: await freePort() })
    const closeReceiver = { close: () => receiver.close() }
    open.push(closeReceiver)
    const agent = await AgentProcess.start({
      endpoint: receiver.endpoint,
      ports: [peers.port],
      config: {
        otlp,
        agent: { ebpf: { ringbuf_size: 65_536 } },
        queues: { traces: { mem_limit: '1Mi' } },
        backoff: { initial: '10ms', max: '100ms' },
        self_telemetry: { tracing: { enabled: true, sample_rate: 1 } },
      },
    })
    open.push({ close: () => agent.stop() })
    const scene = new Scene(agent, peers, receiver)
    closeReceiver.close = () => scene.receiver.close()
    open.push({ close: () => scene.auditor.close() }, { close: () => scene.load.stop() })
    return scene
  }

  /** Lets the receiver do so until `enough` says yes of the pages at the beginning and now. */
  async phase(
    what: string,
    answer: Answer,
    enough: (now: Exposition, before: Exposition) => boolean,
  ): Promise<void> {
    const before = this.auditor.latest
    await this.receiver.answer(answer)
    await this.auditor.until(what, now => enough(now, before))
    await this.receiver.answer({ kind: 'ok' })
  }

  /** The receiver goes away, and another comes at its place when something has happened. */
  async away(meanwhile: () => Promise<void>): Promise<void> {
    const { receiver } = this
    await receiver.answer({ kind: 'refuse', code: 14 }) // from here on its counts stand still
    const { traces, metrics } = await receiver.counts()
    this.#earlier = { traces: this.#earlier.traces + traces, metrics: this.#earlier.metrics + metrics }
    await receiver.close()
    try {
      await meanwhile()
    } finally {
      this.receiver = await spawnReceiver({ port: receiver.port })
    }
  }

  /** Items that receivers took, when all that the agent saw has been settled, and the page that says so. */
  async settle(): Promise<{ page: Exposition; taken: Pick<Counts, 'traces' | 'metrics'> }> {
    await this.load.stop()
    await this.auditor.stop()
    for (const end = performance.now() + patience; ; ) {
      // Each look makes a span of its own, which has left by the next.
      await pause(400)
      const before = await this.receiver.counts()
      const page = await this.auditor.read()
      const after = await this.receiver.counts()
      if (page.sum('svc_export_queue_size') === 0 && before.requests === after.requests) {
        const { traces, metrics } = this.#earlier
        return { page, taken: { traces: traces + after.traces, metrics: metrics + after.metrics } }
      }
      assert.ok(performance.now() < end, `the agent does not become silent:\n${this.agent.logText()}`)
    }
  }

  go(): void {
    this.auditor.start()
    this.load.start()
  }
}

const grows =
  (family: string, labels: Record<string, string> = {}) =>
  (now: Exposition, before: Exposition): boolean =>
    now.sum(family, labels) > before.sum(family, labels)

const exportsGo = grows('svc_spans_exported_total')

test('every page balances while the receiver takes, refuses and rejects, and both agree on what it took', async t => {
  const scene = await Scene.start({ timeout: '60s' })
  const { agent, auditor, load } = scene
  scene.go()
  for (let round = 0; round < rounds; round++) {
    await scene.phase('spans are exported', { kind: 'ok' }, exportsGo)
    await scene.phase(
      'the queue is full',
      { kind: 'refuse', code: 14 },
      grows('svc_spans_dropped_total', { reason: 'queue_full' }),
    )
    await scene.phase(
      'a batch is refused for good',
      { kind: 'refuse', code: 3, message: 'no' },
      (now, before) =>
        grows('svc_spans_dropped_total', { reason: 'invalid_argument' })(now, before) &&
        grows('svc_metrics_dropped_total', { reason: 'invalid_argument' })(now, before),
    )
    await scene.phase(
      'items are rejected',
      { kind: 'ok', rejected: 1, message: 'one too many' },
      (now, before) =>
        grows('svc_spans_dropped_total', { reason: 'rejected' })(now, before) &&
        grows('svc_metrics_dropped_total', { reason: 'rejected' })(now, before),
    )
    const { requests } = load
    agent.signal('SIGSTOP') // the ring overflows while nobody drains it
    try {
      await until('requests are made', patience, () => load.requests >= requests + 600)
    } finally {
      agent.signal('SIGCONT')
    }
    const ringFull = { reason: 'ring_full' }
    await auditor.until('the ring was full', page => page.sum('svc_spans_dropped_total', ringFull) > 0)
  }
  const { page, taken } = await scene.settle()
  t.diagnostic(`${auditor.pages} pages, ${load.requests} requests, ${taken.traces} spans taken`)
  assert.equal(page.sum('svc_spans_exported_total'), taken.traces)
  assert.equal(page.sum('svc_metrics_exported_total'), taken.metrics)
  assert.ok(page.sum('svc_spans_collected_total') >= 2 * load.requests, 'both sides of each request')
  // Each request to the agent would add a span of its own between the page and the document.
  agent.configure({ self_telemetry: { tracing: { enabled: false } } })
  assert.equal((await call(agent.port, '/admin/reload', { method: 'POST' })).status, 200)
  await auditor.agree()
  checkFamilies(page)
  checkFamilies(await auditor.read()) // the other format
})

test('every page balances while the receiver stalls, cuts, goes away and is slow', async t => {
  const scene = await Scene.start({ timeout: '500ms' })
  const { auditor, load } = scene
  scene.go()
  for (let round = 0; round < rounds; round++) {
    await scene.phase('spans are exported', { kind: 'ok' }, exportsGo)
    await scene.phase('a request times out', { kind: 'stall' }, grows('svc_export_errors_total', deadline))
    await scene.phase('spans are exported again', { kind: 'ok' }, exportsGo)
    await scene.phase('a connection is cut', { kind: 'cut' }, grows('svc_export_errors_total'))
    await scene.phase('spans are exported again', { kind: 'ok' }, exportsGo)
    for (let time = 0; time < 3; time++) {
      await scene.receiver.cut()
      await scene.phase('spans are exported after a cut', { kind: 'ok' }, exportsGo)
      await scene.receiver.goAway()
      await scene.phase('spans are exported after GOAWAY', { kind: 'ok' }, exportsGo)
    }
    await scene.away(async () => {
      const before = auditor.latest
      await auditor.until('no connection is made', now => grows('svc_export_errors_total')(now, before))
      await auditor.until('the queue is full', now =>
        grows('svc_spans_dropped_total', { reason: 'queue_full' })(now, before),
      )
    })
    await scene.phase('spans are exported again', { kind: 'ok' }, exportsGo)
    process.kill(scene.receiver.pid, 'SIGSTOP') // slow: it answers when the agent has given up
    const before = auditor.latest
    try {
      await auditor.until('a request times out', now =>
        grows('svc_export_errors_total', deadline)(now, before),
      )
    } finally {
      process.kill(scene.receiver.pid, 'SIGCONT')
    }
    await scene.phase('spans are exported again', { kind: 'ok' }, exportsGo)
  }
  const { page, taken } = await scene.settle()
  t.diagnostic(`${auditor.pages} pages, ${load.requests} requests, ${taken.traces} spans taken`)
  // Whose answer was cut off came again, so that the receivers may have more, and never less.
  const check = (name: string, signal: 'traces' | 'metrics') => {
    const exported = page.sum(name)
    assert.ok(taken[signal] >= exported, `${taken[signal]} ${signal} taken, ${exported} exported`)
  }
  check('svc_spans_exported_total', 'traces')
  check('svc_metrics_exported_total', 'metrics')
})

type Described = readonly [name: string, type: string, labels: readonly string[]]

/** What the contract names, by its name, type and labels. */
const contract: readonly Described[] = [
  ...['spans', 'metrics', 'logs', 'profiles'].flatMap((items): Described[] => [
    [`svc_${items}_collected_total`, 'counter', ['signal_type']],
    [`svc_${items}_exported_total`, 'counter', ['endpoint']],
    [`svc_${items}_dropped_total`, 'counter', ['reason']],
  ]),
  ['svc_ebpf_programs_loaded', 'gauge', ['program_type']],
  ['svc_ebpf_map_entries', 'gauge', ['map_name']],
  ['svc_ebpf_ringbuf_events_total', 'counter', []],
  ['svc_ebpf_ringbuf_lost_total', 'counter', []],
  ['svc_ebpf_perf_events_total', 'counter', ['cpu']],
  ['svc_ebpf_perf_lost_total', 'counter', ['cpu']],
  ['svc_export_requests_total', 'counter', ['endpoint', 'signal_type', 'status']],
  ['svc_export_errors_total', 'counter', ['endpoint', 'error_type', 'signal_type']],
  ['svc_export_latency_seconds', 'histogram', ['endpoint', 'signal_type']],
  ['svc_export_batch_size', 'histogram', ['signal_type']],
  ['svc_export_queue_size', 'gauge', ['signal_type']],
  ['svc_process_cpu_seconds_total', 'counter', []],
  ['svc_process_resident_memory_bytes', 'gauge', []],
  ['svc_process_open_fds', 'gauge', []],
  ['svc_go_goroutines', 'gauge', []],
  ['svc_security_events_total', 'counter', []],
  ['svc_file_integrity_violations_total', 'counter', []],
  ['svc_container_escape_attempts_total', 'counter', []],
]

/** Families that have no series here, for want of what they count. */
const empty = /^svc_(profiles|logs)_(collected|dropped)|^svc_ebpf_perf|^svc_(security|file|container)_/

function checkFamilies(page: Exposition): void {
  for (const [name, type, labels] of contract) {
    const family = page.families.get(name)
    assert.ok(family !== undefined, `${name} is missing`)
    assert.equal(family.type, type, name)
    assert.equal(family.samples.length === 0, empty.test(name), `${name} has ${family.samples.length} series`)
    for (const sample of family.samples) {
      const { le: _, ...given } = sample.labels
      assert.deepEqual(Object.keys(given).sort(), labels, sample.key)
    }
  }
  for (const { name, help } of page.families.values()) {
    assert.match(name, /^svc_/)
    assert.match(help, /\.$/, `${name}: "${help}"`)
  }
  // Both histograms, the requests and their errors count the same requests.
  const requests = page.sum('svc_export_requests_total')
  const counted = (family: string) =>
    page.families
      .get(family)!
      .samples.filter(({ name }) => name.endsWith('_count'))
      .reduce((sum, { value }) => sum + value, 0)
  assert.ok(requests > 0)
  assert.equal(counted('svc_export_latency_seconds'), requests)
  assert.equal(counted('svc_export_batch_size'), requests)
  const failed = page.sum('svc_export_requests_total', { status: 'error' })
  assert.equal(page.sum('svc_export_errors_total'), failed)
}

test('what reads the pages refuses those that are not as the formats demand', () => {
  const counter = '# HELP a_total A.\n# TYPE a_total counter\n'
  const histogram = '# HELP h H.\n# TYPE h histogram\n'
  const rest = 'h_sum 3\nh_count 2\n'
  const check = (text: string, format: ExpositionFormat, fault: RegExp | undefined) => {
    if (fault === undefined) parseExposition(text, format)
    else assert.throws(() => parseExposition(text, format), fault, text)
  }
  check(`${counter}a_total{b="c\\n\\"\\\\",d=""} 1\n`, 'text', undefined)
  check(`${histogram}h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\n${rest}`, 'text', undefined)
  check('# HELP a A.\n# TYPE a counter\na_total 1.5e+30\n# EOF\n', 'openmetrics', undefined)
  check(`${counter}a_total 1`, 'text', /does not end/)
  check('# HELP a A.\n# TYPE a counter\na_total 1\n', 'openmetrics', /# EOF/)
  check('# HELP a A.\n# TYPE a counter\na 1\n# EOF\n', 'openmetrics', /no sample of the counter/)
  check('# HELP a A.\n# TYPE a counter\na 1\n', 'text', /does not end in _total/)
  check('# TYPE a_total counter\na_total 1\n', 'text', /lacks HELP/)
  check('# HELP a_total A.\na_total 1\n', 'text', /has no type/)
  check(`${counter}b_total 1\n`, 'text', /no sample of/)
  check(`${counter}a_total 1\n${counter}`, 'text', /described after/)
  check(`${counter}${histogram}${counter}`, 'text', /two places/)
  check(`${counter}a_total{b="c"} 1\na_total{b="c"} 1\n`, 'text', /twice/)
  check(`${counter}a_total{b="c",b="d"} 1\n`, 'text', /twice/)
  check(`${counter}a_total{b="c\\t"} 1\n`, 'text', /no escape/)
  check(`${counter}a_total{b="c} 1\n`, 'text', /does not end/)
  check(`${counter}a_total -1\n`, 'text', /is -1/)
  check(`${counter}a_total NaN\n`, 'text', /is NaN/)
  check(`${counter}a_total 1 2\n`, 'text', /no value/)
  check(`${histogram}h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\n${rest}`, 'text', /fall/)
  check(`${histogram}h_bucket{le="2"} 1\nh_bucket{le="1"} 2\n${rest}`, 'text', /do not rise/)
  check(`${histogram}h_bucket{le="1"} 2\n${rest}`, 'text', /no bucket for the rest/)
  check(`${histogram}h_bucket{le="+Inf"} 3\n${rest}`, 'text', /not that of the last/)
  check(`${histogram}h_bucket{le="+Inf"} 2\nh_count 2\n`, 'text', /no sum/)
  check(
    '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n# EOF\n',
    'openmetrics',
    /not canonical/,
  )
})
