// Loads that begin before their object is needed: the kernel verifies on a thread while this one starts the rest.

import { readFileSync } from 'node:fs'
import { findAsset } from './assets.ts'
import type { LoadOptions } from './bpf-object.ts'
import type { Native, ObjectHandle } from './native.ts'

/** By file. */
const begun = new Map<string, ObjectHandle>()

/** Begins the first attempt of a load with the same file and options, which completes it. Reports no failure. */
export function beginLoad(native: Native, file: string, { name, prepare }: LoadOptions): void {
  const path = findAsset(file)
  if (path === undefined || begun.has(file)) return
  let handle: ObjectHandle | undefined
  try {
    handle = native.objectOpen(readFileSync(path), name)
    prepare?.(handle)
    native.objectLoadAhead(handle)
    begun.set(file, handle)
  } catch {
    // The load itself will report it.
    if (handle !== undefined) native.objectClose(handle)
  }
}

/** The begun load of a file, once; undefined if there is none. */
export function takeBegun(file: string): ObjectHandle | undefined {
  const handle = begun.get(file)
  begun.delete(file)
  return handle
}

/** Unloads what was begun and is not needed: one file, or all. */
export function dropBegun(native: Native, file?: string): void {
  for (const [begunFile, handle] of begun) {
    if (file !== undefined && file !== begunFile) continue
    begun.delete(begunFile)
    native.objectClose(handle)
  }
}
