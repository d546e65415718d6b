import { closeSync, fstatSync, openSync, readFileSync, statSync } from 'node:fs'

/** Secret files larger than this are not read: a secret is a line of text. */
const fileLimit = 64 * 1024

/** Result of `expand`. */
export interface Expansion {
  readonly text: string
  /** Whether anything was replaced, so that the key decides the type. */
  readonly expanded: boolean
  /** Contents of the files that went in. */
  readonly secrets: readonly string[]
  /** What is wrong, '' when nothing is. */
  readonly error: string
}

/**
 * Replaces `${VAR}`, `${VAR:-default}`, `${VAR:?message}` and `${file:/path}` in one text, and `$${` by a literal `${`.
 * Replacements are not looked at again. `:-` and `:?` also act where the variable is empty, as in a shell.
 */
export function expand(text: string, env: Readonly<Record<string, string | undefined>>): Expansion {
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
    if (end < 0) return failed(text, `cannot expand "\${": no "}" follows; write "$\${" for a literal "\${"`)
    const reference = text.slice(at + 2, end)
    const found = reference.startsWith('file:') ? secretFile(reference.slice(5)) : variable(reference, env)
    if ('error' in found) return failed(text, `cannot expand "\${${clip(reference)}}": ${found.error}`)
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
      error: `a reference is a variable's name, "NAME:-default", "NAME:?message" or "file:/path"; write "$\${" for a literal "\${"`,
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

function secretFile(path: string): Found {
  if (!path.startsWith('/')) return { error: 'the path of a secret file must begin with "/"' }
  try {
    // Looked at before it is opened: opening a pipe waits for its writer.
    if (!statSync(path).isFile()) return { error: 'it is not a regular file' }
    const file = openSync(path, 'r')
    try {
      if (fstatSync(file).size > fileLimit)
        return { error: `the file is larger than ${fileLimit / 1024} KiB` }
      return { text: readFileSync(file, 'utf8').replace(/\r?\n$/, ''), secret: true }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    return { error: fileCause(error) }
  }
}

/** The cause of a failed file operation in plain words. */
export function fileCause(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'this process may not read the file'
  if (code === 'EISDIR') return 'it is a directory'
  return code ?? message
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

function failed(text: string, error: string): Expansion {
  return { text, expanded: false, secrets: [], error }
}
