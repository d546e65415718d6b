// Supported TLS libraries and their probed functions.

/** Purpose of a probed function, numbered as enum svc_tls_function in bpf/include/tls-call.h. */
export const tlsFunctions = ['read', 'write', 'readEx', 'writeEx', 'handshake', 'free'] as const
export type TlsFunction = (typeof tlsFunctions)[number]

export type LibraryName = 'openssl' | 'openssl-static' | 'gnutls'

/** A library function by its symbol. */
export interface Probe {
  readonly symbol: string
  readonly does: TlsFunction
  /** Symbol of a function that calls this one: it is not probed if this one exists. */
  readonly insteadOf?: string
}

const openssl: readonly Probe[] = [
  { symbol: 'SSL_read', does: 'read' },
  { symbol: 'SSL_write', does: 'write' },
  { symbol: 'SSL_read_ex', does: 'readEx' },
  { symbol: 'SSL_write_ex', does: 'writeEx' },
  { symbol: 'SSL_do_handshake', does: 'handshake' },
  { symbol: 'SSL_free', does: 'free' },
]

const gnutls: readonly Probe[] = [
  { symbol: 'gnutls_record_recv', does: 'read' },
  { symbol: 'gnutls_record_send2', does: 'write', insteadOf: 'gnutls_record_send' },
  { symbol: 'gnutls_record_send', does: 'write' },
  { symbol: 'gnutls_handshake', does: 'handshake' },
  { symbol: 'gnutls_deinit', does: 'free' },
]

/** Functions without which a file is not that library. */
const needed: Readonly<Record<LibraryName, readonly string[]>> = {
  openssl: ['SSL_read', 'SSL_write', 'SSL_free'],
  'openssl-static': ['SSL_read', 'SSL_write', 'SSL_free'],
  gnutls: ['gnutls_record_recv', 'gnutls_deinit'],
}

export function probesOf(library: LibraryName): readonly Probe[] {
  return library === 'gnutls' ? gnutls : openssl
}

export function neededOf(library: LibraryName): readonly string[] {
  return needed[library]
}

/**
 * Library by the name of a mapped file: `libssl.so.3`, `libssl-8f2c.so.1.1` of a Python wheel, `libgnutls.so.30`. A
 * program may contain OpenSSL, as Node.js does.
 */
export function libraryAt(path: string, isProgram: boolean): LibraryName | undefined {
  if (isProgram) return 'openssl-static'
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (isSharedObject(name, 'libssl')) return 'openssl'
  if (
    isSharedObject(name, 'libgnutls') &&
    !name.startsWith('libgnutls-dane') &&
    !name.startsWith('libgnutls-openssl')
  )
    return 'gnutls'
  return isSharedObject(name, 'libnode') ? 'openssl-static' : undefined
}

function isSharedObject(name: string, stem: string): boolean {
  if (!name.startsWith(stem)) return false
  const rest = name.slice(stem.length)
  return rest.startsWith('.so') || (rest.startsWith('-') && rest.includes('.so'))
}

/** Library directories of distributions, and their programs that contain OpenSSL. */
export const libraryDirectories: readonly string[] = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/lib64',
  '/usr/lib',
  '/lib64',
  '/lib',
  '/usr/local/lib',
  '/usr/local/lib64',
]
export const knownPrograms: readonly string[] = ['/usr/bin/node', '/usr/local/bin/node']
