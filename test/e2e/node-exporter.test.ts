// owns: host
// `svc node-exporter` as its users run it: over the project's host tree with most collectors on, behind TLS and users.

import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { makeCertificates } from '../helpers/certificates.ts'
import { hostTree } from '../helpers/collector.ts'
import { ExporterProcess } from '../helpers/exporter-process.ts'
import { type Exposition, parseExposition } from '../helpers/exposition.ts'
import { call } from '../helpers/http.ts'
import { until } from '../helpers/program.ts'

const paths = [
  `--path.procfs=${hostTree}/proc`,
  `--path.sysfs=${hostTree}/sys`,
  `--path.rootfs=${hostTree}/rootfs`,
  `--path.udev.data=${hostTree}/udev`,
]
/** Read from files, and off by default. */
const further = [
  ...['buddyinfo', 'cgroups', 'cpu_vulnerabilities', 'drbd', 'interrupts', 'ksmd', 'lnstat', 'meminfo_numa'],
  ...['mountstats', 'pcidevice', 'processes', 'slabinfo', 'softirqs', 'swap', 'xfrm', 'zoneinfo'],
]
/** Asked of the kernel of this host, whatever the paths are. */
const live = ['filesystem', 'selinux', 'timex', 'uname', 'arp.netlink', 'netdev.netlink']

const certificates = makeCertificates()
let exporter: ExporterProcess

before(async () => {
  exporter = await ExporterProcess.own([
    ...paths,
    ...further.map(name => `--collector.${name}`),
    ...live.map(name => `--no-collector.${name}`),
    '--collector.cpu.info',
    '--collector.stat.softirq',
  ])
})
after(async () => {
  await exporter?.stop()
  certificates.remove()
})

/** Its summaries, which the strict reader does not know, are those of text files. */
function read(text: string): Exposition {
  return parseExposition(text, 'text')
}

function succeeded(page: Exposition): Map<string, number> {
  const { samples } = page.families.get('node_scrape_collector_success')!
  return new Map(samples.map(({ labels, value }) => [labels.collector!, value]))
}

/** Without what differs from scrape to scrape. */
function lasting(text: string): string {
  return text.replace(/^(process_|promhttp_|node_time_|node_scrape_collector_duration).*\n/gm, '')
}

test('the page is strict text, and twice the same', async () => {
  const first = await exporter.page()
  const page = read(first)
  const success = succeeded(page)
  for (const name of ['loadavg', 'vmstat', 'meminfo', 'stat', 'diskstats', ...further])
    assert.ok(success.has(name), `${name} is not on`)
  for (const name of ['filesystem', 'wifi', 'systemd']) assert.ok(!success.has(name), `${name} is on`)
  assert.deepEqual(
    ['loadavg', 'vmstat', 'meminfo', 'stat', 'diskstats'].filter(name => success.get(name) !== 1),
    [],
  )
  assert.equal(lasting(await exporter.page()), lasting(first))
  assert.ok(page.families.size > 300, `${page.families.size} families`)
  assert.ok(![...page.families.keys()].some(name => /^go_|_collector_(timeout|reason)/.test(name)))
})

test('parts of it are the same lines, compressed or not', async () => {
  const whole = new Set((await exporter.page()).split('\n'))
  const query = '/metrics?collect[]=meminfo&collect[]=vmstat'
  const { body, headers } = await call(exporter.port, query, { headers: { 'Accept-Encoding': 'gzip' } })
  assert.equal(headers['content-encoding'], 'gzip')
  const part = gunzipSync(body).toString()
  assert.deepEqual([...succeeded(read(part)).keys()], ['meminfo', 'vmstat'])
  for (const line of lasting(part).split('\n')) assert.ok(whole.has(line), line)
  const rest = read(await exporter.page('/metrics?exclude[]=meminfo&exclude[]=vmstat'))
  assert.ok(!succeeded(rest).has('meminfo') && !rest.families.has('node_vmstat_pgfault'))
  assert.equal((await call(exporter.port, '/metrics?collect[]=wifi')).status, 400)
  const head = await call(exporter.port, '/metrics', { method: 'HEAD' })
  assert.deepEqual([head.status, head.body.length], [200, 0])
})

interface Secured {
  readonly authorization?: string
  readonly client?: string
  readonly ca?: string
}

/** The status of the metrics over TLS, or `refused` where there is no answer. */
function overTls(
  port: number,
  { authorization, client, ca = 'ca' }: Secured = {},
): Promise<number | 'refused'> {
  return new Promise(resolve => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path: '/metrics',
        agent: false,
        ca: certificates.text(`${ca}.pem`),
        ...(authorization !== undefined && { headers: { authorization } }),
        ...(client && { cert: certificates.text(`${client}.pem`), key: certificates.text(`${client}.key`) }),
      },
      (reply: IncomingMessage) => {
        reply.resume()
        resolve(reply.statusCode!)
      },
    )
    sent.on('error', () => resolve('refused'))
    sent.end()
  })
}

async function secured(t: TestContext, text: string) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-web-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'web.yml')
  const write = (content: string) => {
    writeFileSync(`${path}.new`, content)
    renameSync(`${path}.new`, path)
  }
  write(text)
  const args = [...paths, '--collector.disable-defaults', '--collector.loadavg', `--web.config.file=${path}`]
  const started = await ExporterProcess.own(args, { ready: false })
  t.after(() => started.stop())
  await until(
    () => `it listens:\n${started.said}`,
    20_000,
    () => started.said.includes('Listening on'),
  )
  return { port: started.port, write, exporter: started }
}

function tlsOf(name: string, more = ''): string {
  return `tls_server_config:\n  cert_file: ${certificates.file(`${name}.pem`)}\n  key_file: ${certificates.file(`${name}.key`)}\n${more}`
}

const alice = '$2y$04$ST4c2MHtG0bUZkvZWuhZgOTZl2I/BY2SM90DXs0P8dnN4im7Nubxy'
const users = `basic_auth_users:\n  alice: ${alice}\n`
const basic = (password: string) => `Basic ${Buffer.from(`alice:${password}`).toString('base64')}`

test('TLS and users are those of the web configuration, as it is now', async t => {
  const { port, write, exporter } = await secured(t, tlsOf('server') + users)
  assert.equal(await overTls(port), 401)
  assert.equal(await overTls(port, { authorization: basic('wrong') }), 401)
  assert.equal(await overTls(port, { authorization: basic('open:sesame') }), 200)
  assert.equal(await overTls(port, { ca: 'stranger' }), 'refused')

  write(tlsOf('other'))
  assert.equal(await overTls(port, { ca: 'stranger' }), 200)
  assert.equal(await overTls(port), 'refused')

  write('tls_server_config: {cert_file: nowhere}')
  assert.equal(await overTls(port, { ca: 'stranger' }), 'refused')
  await until('it is logged', 60_000, () => exporter.said.includes('cannot load the web configuration'))
  write(tlsOf('server'))
  assert.equal(await overTls(port), 200)
})

test('clients show the certificate that the web configuration asks for', async t => {
  const authorities = `  client_ca_file: ${certificates.file('ca.pem')}\n`
  const kind = (name: string, more = '') =>
    tlsOf('server', `${authorities}  client_auth_type: ${name}\n${more}`)
  const { port, write } = await secured(t, kind('RequireAndVerifyClientCert'))
  const check = async (none: number | 'refused', stranger: number | 'refused', known: number | 'refused') => {
    assert.deepEqual(
      [
        await overTls(port),
        await overTls(port, { client: 'other' }),
        await overTls(port, { client: 'client' }),
      ],
      [none, stranger, known],
    )
  }
  await check('refused', 'refused', 200)
  write(kind('RequireAnyClientCert'))
  await check('refused', 200, 200)
  write(kind('VerifyClientCertIfGiven'))
  await check(200, 'refused', 200)
  write(kind('RequestClientCert'))
  await check(200, 200, 200)
  write(kind('RequireAndVerifyClientCert', '  client_allowed_sans: [localhost]\n'))
  await check('refused', 'refused', 200)
  write(kind('RequireAndVerifyClientCert', '  client_allowed_sans: [elsewhere]\n'))
  await check('refused', 'refused', 'refused')
})
