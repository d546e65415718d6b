import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificates {
  /** Path of `NAME.pem` or `NAME.key`. */
  file(name: string): string
  text(name: string): string
  remove(): void
}

/**
 * Two authorities, `ca` and `stranger`, and certificates for `localhost` and 127.0.0.1: `server` and `client` of `ca`
 * for two days or `days`, `other` of `stranger`, and `old` of `ca`, which ended yesterday.
 */
export function makeCertificates({ days = 2 } = {}): Certificates {
  const directory = mkdtempSync(join(tmpdir(), 'svc-certificates-'))
  const openssl = (line: string, ...args: string[]) =>
    execFileSync('openssl', [...line.split(' '), ...args], { cwd: directory, stdio: 'pipe' })
  const key = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
  for (const ca of ['ca', 'stranger'])
    openssl(`req -x509 ${key} -days 2 -keyout ${ca}.key -out ${ca}.pem -subj /CN=${ca}`)
  writeFileSync(join(directory, 'san'), 'subjectAltName=DNS:localhost,IP:127.0.0.1')
  for (const [name, ca, left] of [
    ['server', 'ca', days],
    ['client', 'ca', days],
    ['other', 'stranger', days],
    ['old', 'ca', -1],
  ] as const) {
    openssl(`req ${key} -keyout ${name}.key -out csr -subj /CN=${name}`)
    const signer = `-CA ${ca}.pem -CAkey ${ca}.key -CAcreateserial`
    openssl(`x509 -req -in csr ${signer} -days ${left} -extfile san -out ${name}.pem`)
  }
  const file = (name: string) => join(directory, name)
  return {
    file,
    text: name => readFileSync(file(name), 'utf8'),
    remove: () => rmSync(directory, { recursive: true }),
  }
}
