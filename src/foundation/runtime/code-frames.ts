// Converts places in running code, as reported by V8, to frames of the sources.

import { readFileSync, statSync } from 'node:fs'
import { type OriginalPlace, originalPlaces } from './source-map.ts'
import type { Frame } from './stack-profile.ts'

/** A place in running code. */
export interface CodePlace {
  /** Empty for an anonymous function. */
  readonly functionName: string
  /** File URL, path, `node:…`, or empty for native code. */
  readonly url: string
  /** From 0; negative: unknown. */
  readonly lineNumber: number
  readonly columnNumber: number
  /** Start of its function, if it differs from this place. */
  readonly functionStart?: { readonly lineNumber: number; readonly columnNumber: number }
}

const maxMapBytes = 16 * 1024 * 1024

/**
 * A frame for each place, through the source map beside its script (`FILE.map`). If there is none, or it is unreadable,
 * the frame refers to the script.
 */
export function codeFrames(places: readonly CodePlace[]): Frame[] {
  const frames = places.map(plainFrame)
  const scripts = new Map<string, number[]>()
  for (const [index, { url, lineNumber }] of places.entries()) {
    const path = scriptPath(url)
    if (!path.startsWith('/') || lineNumber < 0) continue
    const those = scripts.get(path)
    if (those) those.push(index)
    else scripts.set(path, [index])
  }
  for (const [script, those] of scripts) {
    const text = readMap(`${script}.map`)
    if (text === undefined) continue
    try {
      const originals = originalPlaces(
        text,
        those.flatMap(index => generated(places[index]!)),
      )
      for (const [order, index] of those.entries()) {
        const [at, start] = [originals[2 * order], originals[2 * order + 1]]
        if (at) frames[index] = mappedFrame(places[index]!.functionName, at, start ?? at)
      }
    } catch {
      // A truncated map, or one of another kind: the frames refer to the script instead.
    }
  }
  return frames
}

/** The part of a path that is meaningful elsewhere: from the project's root. */
export function projectPath(path: string): string {
  const plain = scriptPath(path)
  if (plain.startsWith('node:')) return plain
  const from = `/${plain}`
  for (const part of ['/node_modules/', '/src/']) {
    const at = from.lastIndexOf(part)
    if (at >= 0) return from.slice(at + 1)
  }
  return plain.slice(plain.lastIndexOf('/') + 1)
}

function generated({ lineNumber, columnNumber, functionStart }: CodePlace) {
  const start = functionStart ?? { lineNumber, columnNumber }
  return [
    { line: lineNumber, column: columnNumber },
    { line: start.lineNumber, column: start.columnNumber },
  ]
}

function plainFrame({ functionName, url, lineNumber, functionStart }: CodePlace): Frame {
  const file = projectPath(url)
  const start = functionStart?.lineNumber ?? lineNumber
  return { name: functionName || anonymous(file, start + 1), file, line: file === '' ? 0 : lineNumber + 1 }
}

/** The bundler appends numbers to duplicate function names; the map has the original name. */
function mappedFrame(functionName: string, at: OriginalPlace, start: OriginalPlace): Frame {
  const file = projectPath(at.source)
  const own = start.names.find(
    name => functionName.startsWith(name) && /^\d{1,9}$/.test(functionName.slice(name.length)),
  )
  return { name: own ?? (functionName || anonymous(file, start.line + 1)), file, line: at.line + 1 }
}

/** Tables group by name alone, so an anonymous function must be identified. */
function anonymous(file: string, line: number): string {
  return file === '' ? '(anonymous)' : `(anonymous ${file}:${line})`
}

function scriptPath(url: string): string {
  if (!url.startsWith('file://')) return url
  try {
    return decodeURIComponent(url.slice('file://'.length))
  } catch {
    return url.slice('file://'.length)
  }
}

function readMap(file: string): string | undefined {
  try {
    return statSync(file).size <= maxMapBytes ? readFileSync(file, 'utf8') : undefined
  } catch {
    return undefined // not a bundle
  }
}
