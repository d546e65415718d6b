// Parses PEM files, with faults in words.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

/** Makes an error that describes a fault of the text. */
export type PemFault = (why: string, cause?: unknown) => Error

/** The certificates in a PEM text, at least one. */
export function certificatesIn(pem: string, fault: PemFault): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----[^-]*-----END \1-----/g) ?? []
  if (blocks.length === 0) throw fault('it contains no PEM certificate')
  return blocks.map((block, i) => {
    try {
      return new X509Certificate(block)
    } catch (error) {
      throw fault(`certificate ${i + 1} of ${blocks.length} cannot be read`, error)
    }
  })
}

/** The private key in a PEM text. */
export function privateKeyIn(pem: string, fault: PemFault): KeyObject {
  if (/-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem))
    throw fault('it is protected by a passphrase; save it without one (openssl pkey)')
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw fault('it contains no readable PEM private key', error)
  }
}

/** Throws if a certificate is not valid at `now`, in milliseconds since the epoch. */
export function checkDates({ validFrom, validTo }: X509Certificate, now: number, fault: PemFault): void {
  if (Date.parse(validTo) <= now) throw fault(`the certificate expired on ${validTo}; replace it`)
  if (Date.parse(validFrom) > now)
    throw fault(`the certificate is valid only from ${validFrom}; replace it, or correct the clock`)
}
