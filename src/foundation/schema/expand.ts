import { readContent } from '../lib/file-content.ts'

/** Larger secret files are rejected: a secret is a line of text. */
const fileLimit = 64 * 1024

/** Result of `expand`. */
export interface Expansion {
  readonly text: string
  /** True if anything was replaced, so that the key decides the type. */
  readonly expanded: boolean
  /** Contents of the inserted files. */
  readonly secrets: readonly string[]
  /** The fault, '' if there is none. */
  readonly error: string
}

/**
 * Replaces `${VAR}`, `${VAR:-default}`, `${VAR:?message}` and `${file:/path}` in one text, and `$${` by a literal `${`.
 * Replacements are not expanded again. `:-` and `:?` also apply to an empty variable, as in a shell. `files` receives
 * the state of every file that was read, or should have been.
 */
export function expand(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  files?: Map<string, string>,
): Expansion {
  let at = text.indexOf('${')
  if (at < 0) return { text, expanded: false, secrets: [], error: '' }
  let out = ''
  let from = 0
  let expanded = false
  const secrets: string[] = []
  for (; at >= 0; at = text.indexOf('${', from)) {
    if (at > from && text[at - 1] === '$') {
      out += `${text.slice(from, at - 1)}\${`
      from = at + 2
      continue
    }
    const end = text.indexOf('}', at)
    if (end < 0)
      return failed(text, `cannot expand "\${": the closing "}" is missing; for a literal "\${" write "$\${"`)
    const reference = text.slice(at + 2, end)
    const found = reference.startsWith('file:')
      ? secretFile(reference.slice(5), files)
      : variable(reference, env)
    if ('error' in found) {
      // Text that is no valid reference may be part of a password.
      const shown = /^(file:|[A-Za-z_]\w*(:[-?]|$))/.test(reference) ? clip(reference) : '...'
      return failed(text, `cannot expand "\${${shown}}": ${found.error}`)
    }
    if (found.secret && found.text !== '') secrets.push(found.text)
    out += text.slice(from, at) + found.text
    from = end + 1
    expanded = true
  }
  return { text: out + text.slice(from), expanded, secrets, error: '' }
}

type Found = { text: string; secret: boolean } | { error: string }

function variable(reference: string, env: Readonly<Record<string, string | undefined>>): Found {
  const match = /^([A-Za-z_][A-Za-z0-9_]*)(?::([-?])([\s\S]*))?$/.exec(reference)
  if (!match) {
    return {
      error: `a reference is a variable's name, "NAME:-default", "NAME:?message" or "file:/path"; for a literal "\${" write "$\${"`,
    }
  }
  const [, name, operator, rest] = match
  const value = Object.hasOwn(env, name!) ? env[name!] : undefined
  if (value !== undefined && (value !== '' || operator === undefined)) return { text: value, secret: false }
  if (operator === '-') return { text: rest!, secret: false }
  if (operator === '?' && rest !== '') return { error: clip(rest!) }
  const state = value === undefined ? 'not set' : 'empty'
  return {
    error: `the environment variable ${name} is ${state}; set it, or write "\${${name}:-default}"`,
  }
}

function secretFile(path: string, files: Map<string, string> | undefined): Found {
  if (!path.startsWith('/')) return { error: 'the path of a secret file must begin with "/"' }
  const { bytes, fault, state } = readContent(path, false)
  files?.set(path, state)
  if (bytes === undefined) return { error: fault }
  if (bytes.length > fileLimit) return { error: `the file is larger than ${fileLimit / 1024} KiB` }
  return { text: bytes.toString('utf8').replace(/\r?\n$/, ''), secret: true }
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

function failed(text: string, error: string): Expansion {
  return { text, expanded: false, secrets: [], error }
}
