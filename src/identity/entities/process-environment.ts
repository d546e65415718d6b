import { createHash } from 'node:crypto'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import {
  type AttributeLosses,
  acceptedAttributes,
  type DeclaredAttributes,
  maxDeclaredBytes,
} from './declared-attributes.ts'

/** OpenTelemetry variables in a process's environment. */
export interface Environment {
  /** OTEL_SERVICE_NAME; overrides `service.name` in the attributes. */
  readonly serviceName: string
  readonly attributes: DeclaredAttributes
}

export const emptyEnvironment: Environment = { serviceName: '', attributes: [] }

/** Longer lists are truncated. */
const maxListBytes = 16 * 1024
/** Maximum remembered environments, of at most 4 KiB each. */
const maxKnown = 512
const nameVariable = Buffer.from('\0OTEL_SERVICE_NAME=')
const listVariable = Buffer.from('\0OTEL_RESOURCE_ATTRIBUTES=')

interface Known {
  readonly environment: Environment
  readonly lost: Readonly<AttributeLosses>
}

/**
 * Reads only OpenTelemetry variables from process environments (/proc/PID/environ). Processes with equal variables,
 * such as the workers of a server, share one object.
 */
export class Environments {
  /** Dropped attributes since the start. */
  readonly lost: AttributeLosses = { not_allowed: 0, too_many: 0, too_long: 0 }
  readonly #known = new BoundedMap<string, Known>(maxKnown)
  readonly #more: readonly string[]

  /** `more`: allowed attributes beside those of service and deployment; see `mayDeclare`. */
  constructor(more: readonly string[]) {
    this.#more = more
  }

  read(environ: Buffer): Environment {
    const name = variableIn(environ, nameVariable)
    const list = variableIn(environ, listVariable)
    if (name === undefined && list === undefined) return emptyEnvironment
    const digest = createHash('sha1')
    digest.update(name ?? '').update('\0')
    digest.update(list ?? '')
    const key = digest.digest('base64')
    let known = this.#known.get(key)
    if (known === undefined) {
      known = parsed(name, list, this.#more)
      this.#known.set(key, known)
    }
    this.lost.not_allowed += known.lost.not_allowed
    this.lost.too_many += known.lost.too_many
    this.lost.too_long += known.lost.too_long
    return known.environment
  }
}

function parsed(name: Buffer | undefined, list: Buffer | undefined, more: readonly string[]): Known {
  const lost = { not_allowed: 0, too_many: 0, too_long: 0 }
  const count = (why: keyof AttributeLosses) => {
    lost[why]++
  }
  const given = (name ?? Buffer.alloc(0)).toString('utf8', 0, maxListBytes).trim()
  const serviceName = ownText(given, maxDeclaredBytes)
  if (serviceName.length < given.length) count('too_long')
  const attributes =
    list === undefined ? [] : acceptedAttributes(parseResourceAttributes(list, count), more, count)
  return { environment: { serviceName, attributes }, lost }
}

/** First variable of this name, as getenv(3) finds it; undefined for none. `variable`: its name between NUL and `=`. */
function variableIn(environ: Buffer, variable: Buffer): Buffer | undefined {
  const first = variable.subarray(1)
  const isFirst =
    environ.length >= first.length && environ.compare(first, 0, first.length, 0, first.length) === 0
  const at = isFirst ? -1 : environ.indexOf(variable)
  if (at < 0 && !isFirst) return undefined
  const from = at + variable.length
  const end = environ.indexOf(0, from)
  return environ.subarray(from, end < 0 ? environ.length : end)
}

/**
 * Parses `key=value,key=value` with percent-encoded values (OpenTelemetry resource SDK). As the specification requires,
 * a malformed list is ignored as a whole.
 */
function parseResourceAttributes(
  list: Buffer,
  lost: (why: keyof AttributeLosses) => void,
): DeclaredAttributes {
  let end = list.length
  if (end > maxListBytes) {
    lost('too_long')
    // Without the truncated pair.
    end = Math.max(0, list.lastIndexOf(',', maxListBytes))
  }
  const attributes: (readonly [string, string])[] = []
  for (const pair of list.toString('utf8', 0, end).split(',')) {
    if (pair.trim() === '') continue
    const sign = pair.indexOf('=')
    const key = pair.slice(0, Math.max(0, sign)).trim()
    if (key === '') return []
    try {
      const value = decodeURIComponent(pair.slice(sign + 1).trim())
      if (value !== '') attributes.push([key, value])
    } catch {
      // Invalid percent-encoding.
      return []
    }
  }
  return attributes
}
