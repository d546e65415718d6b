import { createHmac } from 'node:crypto'
import type { Attributes, AttributeValue } from '../../../foundation/model/attributes.ts'
import { cutText } from '../cut-text.ts'
import type { Replace } from './replacement.ts'
import { anyTest, patternIn, textTest } from './value-test.ts'

/** Result of an action. `skipped`: it could not be applied, because a value has another type. */
export const Effect = { done: 0, skipped: 1, dropped: 2, sampled: 3 } as const
export type Effect = (typeof Effect)[keyof typeof Effect]

/** Changes attributes in place. */
export type AttributeAction = (attributes: Attributes) => Effect

export function setting(
  key: string,
  value: AttributeValue,
  mode: 'upsert' | 'insert' | 'update',
): AttributeAction {
  return attributes => {
    const isThere = mode !== 'upsert' && attributes.get(key) !== undefined
    if (mode === 'upsert' || isThere === (mode === 'update')) attributes.set(key, value)
    return Effect.done
  }
}

/** Deletes one attribute, or all that match a regular expression between slashes. */
export function deleting(key: string): AttributeAction {
  if (patternIn(key) !== undefined) return keepingWhere(not(textTest(key)))
  return attributes => {
    attributes.delete(key)
    return Effect.done
  }
}

/** Keeps the attributes that match one of the names or regular expressions. */
export function keeping(keys: readonly string[]): AttributeAction {
  const names = new Set(keys.filter(key => patternIn(key) === undefined))
  const matches = anyTest(keys.filter(key => patternIn(key) !== undefined))
  return keepingWhere(key => names.has(key) || matches(key))
}

function not(test: (text: string) => boolean): (text: string) => boolean {
  return text => !test(text)
}

function keepingWhere(isKept: (key: string) => boolean): AttributeAction {
  return attributes => {
    const { keys, values, size } = attributes
    let kept = 0
    for (let i = 0; i < size; i++) {
      const key = keys[i]!
      if (!isKept(key)) continue
      keys[kept] = key
      values[kept] = values[i]!
      kept++
    }
    attributes.size = kept
    return Effect.done
  }
}

/** The attribute keeps its position; an existing one with the new name is removed. */
export function renaming(from: string, to: string): AttributeAction {
  return attributes => {
    if (from === to || attributes.get(from) === undefined) return Effect.done
    attributes.delete(to)
    attributes.keys[attributes.keys.indexOf(from)] = to
    return Effect.done
  }
}

export function copying(from: string, to: string): AttributeAction {
  return attributes => {
    const value = attributes.get(from)
    if (value !== undefined) attributes.set(to, value)
    return Effect.done
  }
}

/**
 * Replaces a value by a keyed hash (HMAC, RFC 2104) in hexadecimal, so that it cannot be found by trial without the
 * key. Numbers and booleans are hashed as text, lists element by element. Throws if this build of OpenSSL lacks the
 * algorithm.
 */
export function hashing(key: string, algorithm: string, secret: string | Uint8Array): AttributeAction {
  const hash = (text: string) => createHmac(algorithm, secret).update(text).digest('hex')
  hash('')
  return attributes => {
    const value = attributes.get(key)
    if (value !== undefined)
      attributes.set(key, typeof value === 'object' ? value.map(hash) : hash(String(value)))
    return Effect.done
  }
}

export function replacingIn(key: string, replace: Replace): AttributeAction {
  return changingTexts(key, replace)
}

/** Truncates texts to a number of bytes. */
export function truncating(key: string, bytes: number): AttributeAction {
  return changingTexts(key, text => cutText(text, bytes))
}

/** Changes a text, or each text of a list. Other types are unchanged and counted. */
function changingTexts(key: string, change: Replace): AttributeAction {
  return attributes => {
    const value = attributes.get(key)
    if (value === undefined) return Effect.done
    if (typeof value === 'number' || typeof value === 'boolean') return Effect.skipped
    const changed = typeof value === 'string' ? change(value) : changeAll(value, change)
    if (changed === undefined) return Effect.skipped
    if (changed !== value) attributes.set(key, changed)
    return Effect.done
  }
}

function changeAll(texts: readonly string[], change: Replace): readonly string[] | undefined {
  const changed: string[] = []
  for (const text of texts) {
    const next = change(text)
    if (next === undefined) return undefined
    changed.push(next)
  }
  return changed
}
