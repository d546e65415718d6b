// The files of the management API's TLS: read and checked as a whole before any of them is used.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { readContent } from '../lib/file-content.ts'
import { errorText } from '../lib/logger.ts'

export interface TlsSettings {
  readonly enabled: boolean
  readonly cert_file: string
  readonly key_file: string
  /** '': clients show no certificate. */
  readonly client_ca_file: string
}

/** What a secure context is made of, spelled as `node:tls` has it. */
export interface TlsMaterial {
  readonly cert: string
  readonly key: string
  readonly ca: string | undefined
  readonly minVersion: 'TLSv1.2'
}

/** Reads the files. Throws where they cannot serve: unreadable, no PEM, expired, or a key that is another's. */
export function readTlsFiles(settings: TlsSettings, now: number = Date.now()): TlsMaterial {
  const cert = read('cert_file', settings.cert_file)
  const key = read('key_file', settings.key_file)
  const [leaf] = certificates('cert_file', settings.cert_file, cert)
  if (Date.parse(leaf!.validTo) <= now)
    throw fault(
      'cert_file',
      settings.cert_file,
      `the certificate ended on ${leaf!.validTo}; put a new one there`,
    )
  if (Date.parse(leaf!.validFrom) > now)
    throw fault(
      'cert_file',
      settings.cert_file,
      `the certificate begins on ${leaf!.validFrom}; put one there that is valid, or set the clock`,
    )
  if (!leaf!.checkPrivateKey(privateKey(settings.key_file, key)))
    throw fault(
      'key_file',
      settings.key_file,
      `it is not the key of the certificate in self_telemetry.tls.cert_file (${settings.cert_file}); write both anew`,
    )
  let ca: string | undefined
  if (settings.client_ca_file !== '') {
    ca = read('client_ca_file', settings.client_ca_file)
    certificates('client_ca_file', settings.client_ca_file, ca)
  }
  const material: TlsMaterial = { cert, key, ca, minVersion: 'TLSv1.2' }
  try {
    createSecureContext(material)
  } catch (error) {
    throw fault('cert_file', settings.cert_file, `OpenSSL refuses it: ${errorText(error)}`, error)
  }
  return material
}

type Key = 'cert_file' | 'key_file' | 'client_ca_file'

function fault(key: Key, path: string, why: string, cause?: unknown): Error {
  return new Error(`cannot use self_telemetry.tls.${key} (${path}): ${why}`, { cause })
}

function read(key: Key, path: string): string {
  if (path === '') throw new Error(`cannot serve TLS: self_telemetry.tls.${key} is empty; name a PEM file`)
  const { bytes, fault: why } = readContent(path, false)
  if (bytes === undefined) throw fault(key, path, why)
  return bytes.toString('latin1')
}

/** The certificates of a PEM file, at least one. */
function certificates(key: Key, path: string, pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) throw fault(key, path, 'there is no PEM certificate in it')
  return blocks.map((block, i) => {
    try {
      return new X509Certificate(block)
    } catch (error) {
      throw fault(key, path, `certificate ${i + 1} of ${blocks.length} cannot be read`, error)
    }
  })
}

function privateKey(path: string, pem: string): KeyObject {
  if (/-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem))
    throw fault('key_file', path, 'a passphrase protects it; write it without one (openssl pkey)')
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw fault('key_file', path, 'there is no PEM private key in it that can be read', error)
  }
}
