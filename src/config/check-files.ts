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

/**
 * Paths in configurations of other programs are relative to the configuration file, all others to the working
 * directory.
 */
const ofOthers = 'collectors.prometheus.scrape_configs'

export interface FileCheck {
  /** The files that keys name, with their content. */
  readonly named: readonly NamedFile[]
  /** Explicitly set values, each from its strongest source. */
  readonly settings: Settings<Sourced>
  /** Path of the configuration file; null if there is none. */
  readonly filePath: string | null
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly report: Report
  /** Receives checks that this user cannot make, but the agent's user may. */
  readonly doubt: (named: NamedFile, message: string) => void
}

/**
 * Checks on this host each file named by a key whose feature is enabled: it exists, has the expected content, a key
 * matches the certificate beside it, and if `ca_file` has a single certificate that the receiver must present, that it
 * can be the receiver's. The agent itself finds this out in its subsystems, each of which may lack files without
 * stopping the others.
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
      // Expired certificates among several authorities do no harm.
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

/** Throws if a receiver must present the very certificate that is trusted, and that certificate has another name. */
function checkName({ otlp }: Config, { key }: NamedFile, trusted: X509Certificate): void {
  // An authority applies to the certificates that it signs.
  if (trusted.ca) return
  const signal = signals.find(each => key === `otlp.${each}.tls.ca_file`)
  if (signal === undefined && key !== 'otlp.tls.ca_file') return
  const { tls, protocol, insecure, endpoint } = signal === undefined ? otlp : otlp[signal]
  const receiver = endpoint || otlp.endpoint
  if (tls.insecure_skip_verify || (receiver === '' && tls.server_name === '')) return
  const name =
    tls.server_name || parseEndpoint(receiver, insecure, protocol === 'grpc' ? 'grpc' : 'http').host
  const match = isIP(name) === 0 ? trusted.checkHost(name) : trusted.checkIP(name)
  if (match !== undefined) return
  throw new Error(
    `its only certificate is not a CA, and is valid for ${trusted.subjectAltName ?? 'no name'}, not for "${name}"; set server_name to one of its names, or use the CA's file`,
  )
}

/** OpenSSL's reason does not help to fix it. */
const plain: PemFault = why => new Error(why)

/** True if all branches around a key are enabled. */
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

/** The key as in the schema, with alternative spellings of its first name resolved. */
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
