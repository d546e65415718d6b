// The files of a server's TLS: read and checked as a whole before any of them is used.

import { createSecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls'
import { readContent } from '../../foundation/lib/file-content.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { certificatesIn, checkDates, type PemFault, privateKeyIn } from '../../foundation/lib/pem.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'

export interface TlsSettings {
  readonly enabled: boolean
  readonly cert_file: string
  readonly key_file: string
  /** '': no client certificates. */
  readonly client_ca_file: string
}

/** Options of a secure context, spelled as in `node:tls`, and checks of clients. */
export interface TlsMaterial extends SecureContextOptions {
  readonly cert: string
  readonly key: string
  readonly ca: string | undefined
  /** If absent, no client certificates are requested. */
  readonly clients?: ClientCertificates
}

/** Requirements for clients. */
export interface ClientCertificates {
  /** Handshakes without a certificate of `ca` fail. */
  readonly verified: boolean
  /** Whether a client may stay after its handshake. */
  admits(socket: TLSSocket): boolean
}

/** All clients need a certificate of the authorities in `ca`. */
const verifiedClients: ClientCertificates = { verified: true, admits: ({ authorized }) => authorized }

/**
 * Reads the files of the settings at `where`, as named in messages. Throws a `StartError` if they cannot be used:
 * unreadable, not PEM, expired, or a key that does not match.
 */
export function readTlsFiles(settings: TlsSettings, where: string, now: number = Date.now()): TlsMaterial {
  const faultOf =
    (name: Name, code: ExitCode = ExitCode.usage): PemFault =>
    (why, cause) =>
      new StartError(`cannot use ${where}.${name} (${settings[name]}): ${why}`, code, cause)
  const read = (name: Name): string => {
    const path = settings[name]
    if (path === '') throw new Error(`cannot serve TLS: ${where}.${name} is empty; name a PEM file`)
    const { bytes, fault, denied } = readContent(path, false)
    if (bytes === undefined) throw faultOf(name, denied ? ExitCode.permission : ExitCode.usage)(fault)
    return bytes.toString('latin1')
  }
  const cert = read('cert_file')
  const key = read('key_file')
  const certFault = faultOf('cert_file')
  const keyFault = faultOf('key_file')
  const [leaf] = certificatesIn(cert, certFault)
  checkDates(leaf!, now, certFault)
  if (!leaf!.checkPrivateKey(privateKeyIn(key, keyFault)))
    throw keyFault(
      `it does not match the certificate in ${where}.cert_file (${settings.cert_file}); install a matching pair`,
    )
  let ca: string | undefined
  if (settings.client_ca_file !== '') {
    ca = read('client_ca_file')
    certificatesIn(ca, faultOf('client_ca_file'))
  }
  const context = { cert, key, ca, minVersion: 'TLSv1.2' } as const
  try {
    createSecureContext(context)
  } catch (error) {
    throw certFault(`OpenSSL rejects it: ${errorText(error)}`, error)
  }
  return ca === undefined ? context : { ...context, clients: verifiedClients }
}

type Name = 'cert_file' | 'key_file' | 'client_ca_file'
