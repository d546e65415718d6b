// Targets whose pages are cheap to serve and never the same: the text of a page is written once, its numbers are written
// over in place, at a fixed width, for each scrape. Half of the series are those of classic histograms. In a process of
// its own, as its cost is not that of whoever scrapes it: `PageGenerator`. By hand
//   node test/helpers/page-generator.ts '{"targets":10,"series":10000,"intervalMs":1000}'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { Program } from './program.ts'

export interface PageGeneratorOptions {
  /** Each has a port of its own. */
  readonly targets: number
  /** Of each target, rounded to whole families. */
  readonly series: number
  /** How often a target is to be scraped: what is missed is counted by it. */
  readonly intervalMs: number
}

/** What the targets saw since the last reset. */
export interface ScrapeReport {
  readonly scrapes: number
  readonly samples: number
  readonly bytes: number
  /** Scrapes that were due and did not come, of all targets. */
  readonly missed: number
  /** Answers that were not taken to their end. */
  readonly broken: number
  /** Of the target that has them least, and most. */
  readonly fewest: number
  readonly most: number
  /** Milliseconds between two scrapes of a target. */
  readonly gapMs: { readonly least: number; readonly median: number; readonly most: number }
}

interface Ready {
  readonly ports: readonly number[]
  readonly series: number
  readonly pageBytes: number
}

export class PageGenerator {
  readonly pid: number
  /** On 127.0.0.1. Any path is the page. */
  readonly ports: readonly number[]
  /** Of each page. */
  readonly series: number
  readonly pageBytes: number
  readonly #program: Program<Ready>

  private constructor(program: Program<Ready>) {
    this.#program = program
    this.pid = program.pid
    const { ports, series, pageBytes } = program.ready
    this.ports = ports
    this.series = series
    this.pageBytes = pageBytes
  }

  static async start(options: PageGeneratorOptions): Promise<PageGenerator> {
    return new PageGenerator(await Program.start<Ready>('../../helpers/page-generator.ts', options))
  }

  get addresses(): string[] {
    return this.ports.map(port => `127.0.0.1:${port}`)
  }

  /** Forgets what was. */
  async reset(): Promise<void> {
    await this.#program.ask('reset')
  }

  async report(): Promise<ScrapeReport> {
    return this.#program.ask<ScrapeReport>('report')
  }

  close(): Promise<void> {
    return this.#program.close()
  }
}

/** What a number does from one page to the next. `first` is a histogram's first bucket, `all` its last. */
type Role = 'counter' | 'gauge' | 'first' | 'bucket' | 'all' | 'sum' | 'count'

/** A number in the text: digits, a point behind the first `whole` of them, and an exponent that never changes. */
interface Place {
  readonly role: Role
  readonly at: number
  readonly digits: number
  readonly whole: number
  /** Its digits as one whole number. */
  value: number
}

const bounds = ['0.005', '0.01', '0.025', '0.05', '0.1', '0.25', '0.5', '1', '2.5', '5', '10', '+Inf']
const linesOfHistogram = bounds.length + 2
/** Label sets of a family. */
const perFamily = 10
const zones = ['eu-1a', 'eu-1b', 'eu-1c']
const methods = ['GET', 'PUT', 'POST', 'HEAD']

/** A page, and where its numbers stand. */
export class ChangingPage {
  readonly body: Buffer
  readonly #places: Place[] = []
  readonly #text: string[] = []
  #length = 0
  #random: number

  constructor(series: number, seed: number) {
    this.#random = (seed + 1) * 0x9e3779b1
    for (let family = 0; this.#places.length < series; family++) {
      // As many lines in histograms as in others.
      this.#addHistograms(family)
      for (let i = 0; i < linesOfHistogram && this.#places.length < series; i++)
        this.#addNumbers(family * linesOfHistogram + i)
    }
    this.body = Buffer.from(this.#text.join(''), 'latin1')
    this.#text.length = 0
    for (const place of this.#places) write(this.body, place)
  }

  get series(): number {
    return this.#places.length
  }

  /** Makes it the next page: counters grow, gauges are anywhere. */
  advance(): void {
    const { body } = this
    let added = 0
    let last = 0
    for (let i = 0; i < this.#places.length; i++) {
      const place = this.#places[i]!
      if (place.role === 'first') {
        if (isFull(this.#places[i + bounds.length - 1]!)) this.#restart(i)
        added = 0
      }
      switch (place.role) {
        case 'counter':
          place.value += 1 + (this.#next() % 997)
          break
        case 'gauge':
          place.value = 10 ** (place.digits - 1) + this.#next()
          break
        case 'first':
        case 'bucket':
        case 'all':
          added += this.#next() & 3
          place.value += added
          last = place.value
          break
        case 'count':
          place.value = last
          break
        default:
          place.value += this.#next() % 9973
      }
      if (isFull(place)) place.value = 10 ** (place.digits - 1)
      write(body, place)
    }
  }

  #addHistograms(family: number): void {
    const name = `shop_step_${String(family).padStart(4, '0')}_duration_seconds`
    this.#line(`# HELP ${name} How long the step took, from the first byte of the request to the last.\n`)
    this.#line(`# TYPE ${name} histogram\n`)
    // Clients in Go write counts from a million on with an exponent.
    const [digits, whole, exponent] = family % 2 === 0 ? [6, 6, ''] : [7, 1, 'e+06']
    for (let i = 0; i < perFamily; i++) {
      const labels = labelsOf(family, i)
      bounds.forEach((bound, j) => {
        const role = j === 0 ? 'first' : j === bounds.length - 1 ? 'all' : 'bucket'
        const value = startOf(digits, j)
        this.#number(`${name}_bucket{${labels},le="${bound}"} `, role, digits, whole, value, exponent)
      })
      this.#number(`${name}_sum{${labels}} `, 'sum', 12, 5, 10 ** 11, '')
      this.#number(`${name}_count{${labels}} `, 'count', digits, whole, 10 ** (digits - 1), exponent)
    }
  }

  /** A family of counters or of gauges. */
  #addNumbers(number: number): void {
    const isCounter = number % 2 === 0
    const name = `shop_orders_${isCounter ? 'taken' : 'waiting'}_${number}${isCounter ? '_total' : ''}`
    this.#line(`# HELP ${name} Orders, by who asked for them and where they went from there.\n`)
    this.#line(`# TYPE ${name} ${isCounter ? 'counter' : 'gauge'}\n`)
    for (let i = 0; i < perFamily; i++) {
      const key = `${name}{${labelsOf(number, i)},queue="orders-${i}"} `
      if (!isCounter) this.#number(key, 'gauge', 10, 1 + (number % 5), 10 ** 9, '')
      else if (number % 4 === 0) this.#number(key, 'counter', 9, 1, 10 ** 8 + i, 'e+08')
      else this.#number(key, 'counter', 6, 6, 10 ** 5 + i, '')
    }
  }

  #line(text: string): void {
    this.#text.push(text)
    this.#length += text.length
  }

  #number(key: string, role: Role, digits: number, whole: number, value: number, exponent: string): void {
    this.#line(key)
    this.#places.push({ role, at: this.#length, digits, whole, value })
    this.#line('0'.repeat(digits === whole ? digits : digits + 1))
    this.#line(`${exponent}\n`)
  }

  /** A histogram that ran full begins again, as that of a program which was restarted. */
  #restart(from: number): void {
    for (let j = 0; j < bounds.length; j++) {
      const place = this.#places[from + j]!
      place.value = startOf(place.digits, j)
    }
  }

  /** Xorshift, from 0 to 2^32 - 1. */
  #next(): number {
    let x = this.#random
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    this.#random = x
    return x >>> 0
  }
}

function labelsOf(family: number, i: number): string {
  const pod = `checkout-7d9c5b8f6-${((family * 7919 + i * 104729) % 60466176).toString(36).padStart(5, '0')}`
  return `method="${methods[i % 4]}",route="/api/v1/o/${i}",code="${200 + (i % 5)}",zone="${zones[i % 3]}",pod="${pod}"`
}

/** Of a histogram's j-th bucket. */
function startOf(digits: number, j: number): number {
  return Math.round(10 ** (digits - 1) * (1 + j / 20))
}

/** Too near to its last number of that width. */
function isFull({ value, digits }: Place): boolean {
  return value >= 10 ** digits - 100
}

function write(body: Buffer, { at, digits, whole, value }: Place): void {
  let left = value
  for (let i = digits - 1; i >= 0; i--) {
    const tenth = Math.floor(left / 10)
    body[i < whole ? at + i : at + i + 1] = 48 + left - tenth * 10
    left = tenth
  }
  if (whole < digits) body[at + whole] = 46
}

/** A page at a port, and who came for it. */
class ServedTarget {
  readonly port: number
  readonly #page: ChangingPage
  #arrivals: number[] = []
  #broken = 0
  #busy = false

  private constructor(port: number, page: ChangingPage) {
    this.port = port
    this.#page = page
  }

  static async start(page: ChangingPage): Promise<ServedTarget> {
    let target: ServedTarget
    const server = createServer({ keepAliveTimeout: 300_000 }, (_request, response) => {
      target.#arrivals.push(performance.now())
      // The page before may still be on its way: its bytes must stay.
      const own = !target.#busy
      if (own) page.advance()
      target.#busy = true
      response.once('close', () => {
        if (!response.writableFinished) target.#broken++
        if (own) target.#busy = false
      })
      response.writeHead(200, {
        'Content-Type': 'text/plain; version=0.0.4; charset=utf-8',
        'Content-Length': page.body.length,
      })
      response.end(page.body)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    target = new ServedTarget((server.address() as { port: number }).port, page)
    return target
  }

  reset(): void {
    this.#arrivals = []
    this.#broken = 0
  }

  get seen(): { readonly arrivals: readonly number[]; readonly broken: number } {
    return { arrivals: this.#arrivals, broken: this.#broken }
  }

  get page(): ChangingPage {
    return this.#page
  }
}

function reportOf(targets: readonly ServedTarget[], intervalMs: number, sinceMs: number): ScrapeReport {
  const now = performance.now()
  const gaps: number[] = []
  let [scrapes, missed, broken, fewest, most] = [0, 0, 0, Number.POSITIVE_INFINITY, 0]
  for (const { seen } of targets) {
    const { arrivals } = seen
    scrapes += arrivals.length
    broken += seen.broken
    fewest = Math.min(fewest, arrivals.length)
    most = Math.max(most, arrivals.length)
    let before = sinceMs
    for (const at of [...arrivals, now]) {
      missed += Math.max(0, Math.round((at - before) / intervalMs) - 1)
      before = at
    }
    for (let i = 1; i < arrivals.length; i++) gaps.push(arrivals[i]! - arrivals[i - 1]!)
  }
  gaps.sort((a, b) => a - b)
  const rounded = (ms: number | undefined) => Math.round((ms ?? 0) * 10) / 10
  return {
    scrapes,
    samples: targets.reduce((sum, { page, seen }) => sum + page.series * seen.arrivals.length, 0),
    bytes: targets.reduce((sum, { page, seen }) => sum + page.body.length * seen.arrivals.length, 0),
    missed,
    broken,
    fewest,
    most,
    gapMs: { least: rounded(gaps[0]), median: rounded(gaps[gaps.length >> 1]), most: rounded(gaps.at(-1)) },
  }
}

async function main({ targets: count, series, intervalMs }: PageGeneratorOptions): Promise<void> {
  const targets: ServedTarget[] = []
  for (let i = 0; i < count; i++) targets.push(await ServedTarget.start(new ChangingPage(series, i)))
  let since = performance.now()
  const say = (value: unknown): void => console.log(JSON.stringify(value))
  const input = createInterface(process.stdin)
  input.on('line', line => {
    if (line !== 'reset') return say(reportOf(targets, intervalMs, since))
    for (const target of targets) target.reset()
    since = performance.now()
    say({})
  })
  input.once('close', () => process.exit(0))
  const { page } = targets[0] ?? { page: new ChangingPage(0, 0) }
  say({ ports: targets.map(({ port }) => port), series: page.series, pageBytes: page.body.length })
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as PageGeneratorOptions)
