// The files of a server's TLS: read and checked as a whole before any of them is used.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls'
import { readContent } from '../lib/file-content.ts'
import { errorText } from '../lib/logger.ts'

export interface TlsSettings {
  readonly enabled: boolean
  readonly cert_file: string
  readonly key_file: string
  /** '': clients show no certificate. */
  readonly client_ca_file: string
}

/** What a secure context is made of, spelled as `node:tls` has it, and who may come. */
export interface TlsMaterial extends SecureContextOptions {
  readonly cert: string
  readonly key: string
  readonly ca: string | undefined
  /** Without it clients show no certificate. */
  readonly clients?: ClientCertificates
}

/** What is asked of clients. */
export interface ClientCertificates {
  /** A handshake without a certificate of `ca` fails. */
  readonly verified: boolean
  /** Whether a client may stay, after its handshake. */
  admits(socket: TLSSocket): boolean
}

/** Certificates of the authorities in `ca`, from everybody. */
const verifiedClients: ClientCertificates = { verified: true, admits: ({ authorized }) => authorized }

/**
 * Reads the files of the settings at `where`, as messages name it. Throws where they cannot serve: unreadable, no PEM,
 * expired, or a key that is another's.
 */
export function readTlsFiles(settings: TlsSettings, where: string, now: number = Date.now()): TlsMaterial {
  const faultOf =
    (name: Name): Fault =>
    (why, cause) =>
      new Error(`cannot use ${where}.${name} (${settings[name]}): ${why}`, { cause })
  const read = (name: Name): string => {
    const path = settings[name]
    if (path === '') throw new Error(`cannot serve TLS: ${where}.${name} is empty; name a PEM file`)
    const { bytes, fault } = readContent(path, false)
    if (bytes === undefined) throw faultOf(name)(fault)
    return bytes.toString('latin1')
  }
  const cert = read('cert_file')
  const key = read('key_file')
  const certFault = faultOf('cert_file')
  const keyFault = faultOf('key_file')
  const [leaf] = certificates(cert, certFault)
  if (Date.parse(leaf!.validTo) <= now)
    throw certFault(`the certificate ended on ${leaf!.validTo}; put a new one there`)
  if (Date.parse(leaf!.validFrom) > now)
    throw certFault(
      `the certificate begins on ${leaf!.validFrom}; put one there that is valid, or set the clock`,
    )
  if (!leaf!.checkPrivateKey(privateKey(key, keyFault)))
    throw keyFault(
      `it is not the key of the certificate in ${where}.cert_file (${settings.cert_file}); write both anew`,
    )
  let ca: string | undefined
  if (settings.client_ca_file !== '') {
    ca = read('client_ca_file')
    certificates(ca, faultOf('client_ca_file'))
  }
  const context = { cert, key, ca, minVersion: 'TLSv1.2' } as const
  try {
    createSecureContext(context)
  } catch (error) {
    throw certFault(`OpenSSL refuses it: ${errorText(error)}`, error)
  }
  return ca === undefined ? context : { ...context, clients: verifiedClients }
}

type Name = 'cert_file' | 'key_file' | 'client_ca_file'

/** Makes an error of what is wrong with a text. */
type Fault = (why: string, cause?: unknown) => Error

/** The certificates of a PEM text, at least one. */
function certificates(pem: string, fault: Fault): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) throw fault('there is no PEM certificate in it')
  return blocks.map((block, i) => {
    try {
      return new X509Certificate(block)
    } catch (error) {
      throw fault(`certificate ${i + 1} of ${blocks.length} cannot be read`, error)
    }
  })
}

function privateKey(pem: string, fault: Fault): KeyObject {
  if (/-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem))
    throw fault('a passphrase protects it; write it without one (openssl pkey)')
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw fault('there is no PEM private key in it that can be read', error)
  }
}
