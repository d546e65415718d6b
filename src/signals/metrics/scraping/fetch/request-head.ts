import { build } from '../../../../foundation/lib/build.ts'
import type { Access, Secret } from '../scrape-job.ts'
import { FetchError } from './fetch-error.ts'
import type { FreshFiles } from './fresh-files.ts'

export interface RequestHeadOptions {
  readonly access: Access
  readonly files: FreshFiles
  /** Added to those of `access`; also sent only to the origin. */
  readonly headers: Readonly<Record<string, string>>
  readonly accept: string
  /** Owner of the settings, for messages: `job x`. */
  readonly owner: string
}

/** Header fields of requests. Configured headers and credentials are sent only to the origin. */
export class RequestHead {
  /** Lines for a server that the origin redirected to. */
  readonly strange: string
  /** Reason why no request can be sent; '' if it can. */
  readonly fault: string
  readonly #options: RequestHeadOptions
  /** Lines for the origin, without credentials. */
  readonly #plain: string
  /** Names of configured headers, in lower case. */
  readonly #written: ReadonlySet<string>
  /** Lines for the origin, cached if they do not depend on files. */
  #known: string | undefined

  constructor(options: RequestHeadOptions) {
    const written = Object.entries({ ...options.access.headers, ...options.headers })
    const ours: [string, string][] = [
      ['Accept', options.accept],
      ['User-Agent', `svc/${build().version}`],
    ]
    this.#options = options
    this.#written = new Set(written.map(([name]) => name.toLowerCase()))
    this.#plain = lines([...ours.filter(([name]) => !this.writes(name)), ...written])
    this.strange = lines(ours)
    const type = options.access.authorization?.type ?? ''
    const faults = written.map(([name, value]) => headerFault(name, value))
    if (unsendable.test(type)) faults.push('the authorization type has a line break or a control character')
    this.fault = faults.find(fault => fault !== '') ?? ''
  }

  /** Whether a header with this name is configured. */
  writes(name: string): boolean {
    return this.#written.has(name.toLowerCase())
  }

  /** Whether some lines must not be sent to other servers. */
  get isPrivate(): boolean {
    const { basic, authorization } = this.#options.access
    return basic !== undefined || authorization !== undefined || this.#written.size > 0
  }

  /** Lines for the origin; a promise if a file must be read. `user` is that of the URL, `user:password`. */
  own(user: string | undefined): string | Promise<string> {
    if (this.#known !== undefined) return this.#known
    const { basic, authorization } = this.#options.access
    const plain = this.#plain
    if (this.writes('authorization')) this.#known = plain
    else if (authorization !== undefined) {
      const { type, credentials } = authorization
      const line = (value: string): string =>
        plain + lines([['Authorization', `${type || 'Bearer'} ${value}`]])
      if ('file' in credentials) return this.#secret('credentials_file', credentials.file).then(line)
      this.#known = line(this.#checked('credentials', credentials.text))
    } else if (basic !== undefined) {
      const { username, password } = basic
      const line = (value: string): string => plain + basicLine(`${username}:${value}`)
      if ('file' in password) return this.#secret('password_file', password.file).then(line)
      this.#known = line(password.text)
    } else this.#known = user === undefined ? plain : plain + basicLine(user)
    return this.#known
  }

  /** A server rejected credentials from files: they are read again. */
  forget(): void {
    const { basic, authorization } = this.#options.access
    const secrets: (Secret | undefined)[] = [basic?.password, authorization?.credentials]
    for (const secret of secrets)
      if (secret !== undefined && 'file' in secret) this.#options.files.forget(secret.file)
  }

  async #secret(key: string, path: string): Promise<string> {
    const { files, owner } = this.#options
    const text = await files.read(path).catch((error: Error) => {
      throw new FetchError('credentials', `cannot read ${key} ${path} of ${owner}: ${error.message}`, {
        cause: error,
      })
    })
    const secret = text.trim()
    if (secret === '')
      throw new FetchError('credentials', `cannot use ${key} ${path} of ${owner}: it is empty`)
    return this.#checked(`${key} ${path}`, secret)
  }

  #checked(what: string, text: string): string {
    if (!unsendable.test(text)) return text
    const { owner } = this.#options
    throw new FetchError(
      'credentials',
      `cannot use ${what} of ${owner}: it has a line break or control character, which a header does not allow`,
    )
  }
}

/** Reason why a header cannot be sent; '' if it can (RFC 9110, section 5). Does not contain the value. */
function headerFault(name: string, value: string): string {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/.test(name))
    return `${JSON.stringify(name.slice(0, 64))} is not a valid header name`
  if (reserved.has(name.toLowerCase())) return `svc sets the header ${name} itself; remove it`
  if (unsendable.test(value)) return `the value of the header ${name} has a line break or a control character`
  return ''
}

const reserved = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const unsendable = /[\x00-\x08\x0a-\x1f\x7f]/

/** RFC 7617, in UTF-8. */
function basicLine(pair: string): string {
  return lines([['Authorization', `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`]])
}

function lines(fields: readonly (readonly [name: string, value: string])[]): string {
  return fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
}
