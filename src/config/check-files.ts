import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { dirname, resolve } from 'node:path'
import { parseEndpoint } from '../foundation/lib/endpoint.ts'
import { readContent } from '../foundation/lib/file-content.ts'
import { errorText } from '../foundation/lib/logger.ts'
import { certificatesIn, checkDates, type PemFault, privateKeyIn } from '../foundation/lib/pem.ts'
import { signals } from '../foundation/model/signal.ts'
import type { NamedFile, Report } from '../foundation/schema/problem.ts'
import type { Settings } from '../foundation/schema/tree.ts'
import type { Sourced } from './effective.ts'
import { type Config, schema } from './schema.ts'

/** Paths in what other programs write begin at the configuration, all others where svc was started. */
const ofOthers = 'collectors.prometheus.scrape_configs'

export interface FileCheck {
  /** The files that keys name, as they were read. */
  readonly named: readonly NamedFile[]
  /** Those that somebody set, of which the strongest source counts. */
  readonly settings: Settings<Sourced>
  /** Of the configuration's file; null where there is none. */
  readonly filePath: string | null
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly report: Report
  /** Takes what this user cannot tell, and the agent's user may. */
  readonly doubt: (named: NamedFile, message: string) => void
}

/**
 * Looks on this host at each file that a key names, where what the key is for is switched on: it is there, it is what it
 * should be, a key belongs to the certificate beside it, and a receiver that is to have the one certificate of `ca_file`
 * can have it. The agent itself finds that out by its parts, each of which may lack its files without ending the others.
 */
export function checkFiles(
  config: Config,
  { named, settings, filePath, now, report, doubt }: FileCheck,
): void {
  const leaves = new Map<string, X509Certificate>()
  const keys: { readonly file: NamedFile; readonly pem: string }[] = []
  for (const file of named) {
    const key = canonicalOf(file.key)
    const setting = settings.get(key)
    const isOverruled = setting !== undefined && setting.place !== file.place
    if (isOverruled || !isOn(config, key)) continue
    const fail = (why: string) =>
      report.problem(file.place, file.key, `cannot use ${shownPath(file)}: ${why}`)
    const base = file.key.startsWith(ofOthers) && filePath !== null ? dirname(filePath) : '.'
    const { bytes, fault, denied } = readContent(resolve(base, file.path), false)
    if (denied) {
      doubt(file, `cannot check ${shownPath(file)} as this user: ${fault}`)
      continue
    }
    if (bytes === undefined) {
      fail(fault)
      continue
    }
    if (file.expects === 'any') continue
    const pem = bytes.toString('latin1')
    try {
      if (file.expects === 'private key') {
        privateKeyIn(pem, plain)
        keys.push({ file, pem })
        continue
      }
      const certificates = certificatesIn(pem, plain)
      const [leaf] = certificates
      const isOwn = file.key.endsWith('.cert_file')
      // Of several authorities, those that have ended harm nobody.
      if (isOwn || certificates.length === 1) checkDates(leaf!, now, plain)
      if (isOwn) leaves.set(parentOf(file.key), leaf!)
      else if (certificates.length === 1) checkName(config, file, leaf!)
    } catch (error) {
      fail(errorText(error))
    }
  }
  for (const { file, pem } of keys) {
    const leaf = leaves.get(parentOf(file.key))
    if (leaf === undefined || leaf.checkPrivateKey(privateKeyIn(pem, plain))) continue
    const message = `cannot use ${shownPath(file)}: it does not match the certificate in cert_file; replace both files`
    report.problem(file.place, file.key, message)
  }
}

/** Throws where a receiver has to show the very certificate that is trusted, and that one is for another name. */
function checkName({ otlp }: Config, { key }: NamedFile, trusted: X509Certificate): void {
  // An authority is for the certificates that it signs.
  if (trusted.ca) return
  const signal = signals.find(each => key === `otlp.${each}.tls.ca_file`)
  if (signal === undefined && key !== 'otlp.tls.ca_file') return
  const { tls, protocol, insecure, endpoint } = signal === undefined ? otlp : otlp[signal]
  const receiver = endpoint || otlp.endpoint
  if (tls.insecure_skip_verify || (receiver === '' && tls.server_name === '')) return
  const name =
    tls.server_name || parseEndpoint(receiver, insecure, protocol === 'grpc' ? 'grpc' : 'http').host
  const fits = isIP(name) === 0 ? trusted.checkHost(name) : trusted.checkIP(name)
  if (fits !== undefined) return
  throw new Error(
    `its only certificate is not a CA, and is valid for ${trusted.subjectAltName ?? 'no name'}, not for "${name}"; set server_name to one of its names, or use the CA's file`,
  )
}

/** What OpenSSL has against it is no help to who fixes it. */
const plain: PemFault = why => new Error(why)

/** Whether everything around a key is switched on. */
function isOn(config: Config, key: string): boolean {
  let at: unknown = config
  for (const name of key.split('.')) {
    if (typeof at !== 'object' || at === null) return true
    const branch = at as Readonly<Record<string, unknown>>
    if (branch.enabled === false) return false
    at = branch[name]
  }
  return true
}

/** As the schema has it, with the spellings of the first name that it takes besides. */
function canonicalOf(written: string): string {
  const [first = '', ...rest] = written.split('.')
  return [schema.spellings?.[first] ?? first, ...rest].join('.')
}

function parentOf(key: string): string {
  return key.slice(0, key.lastIndexOf('.'))
}

function shownPath({ path, secret }: NamedFile): string {
  return secret ? 'the file' : path
}
