import { readFileSync } from 'node:fs'
import { findAsset } from './assets.ts'
import { BpfObject, LoadError, type LoadOptions } from './bpf-object.ts'
import { takeBegun } from './load-ahead.ts'
import type { Native } from './native.ts'
import { setOwnerSeeds } from './owner-seeds.ts'

/** Build of an object: `old` is for kernels before 5.12 (`OLD_KERNEL` in bpf/). Both have the same layout. */
export type Build = 'new' | 'old'

/** Section with the owner seeds of objects that have them in the `old` build only. */
const oldSeeds = '.rodata.old'

export interface BuiltObject {
  readonly object: BpfObject
  readonly build: Build
}

/**
 * Loads an object, `net`, in the build that this kernel supports: the old one if it lacks features of the new one.
 * Throws a `LoadError` if it supports neither: that of the build intended for it.
 */
export function loadObject(
  native: Native,
  name: string,
  options: Omit<LoadOptions, 'name'> = {},
): BuiltObject {
  try {
    return { object: loadBuild(native, name, 'new', options), build: 'new' }
  } catch (error) {
    // Objects that every kernel supports have only one build.
    const isBuilt = findAsset(oldFile(name)) !== undefined
    if (!(error instanceof LoadError) || !error.refusal.unknown || !isBuilt) throw error
    return { object: loadBuild(native, name, 'old', options), build: 'old' }
  }
}

/** Loads only this build. */
export function loadBuild(
  native: Native,
  name: string,
  build: Build,
  { prepare, ...options }: Omit<LoadOptions, 'name'> = {},
): BpfObject {
  const file = build === 'old' ? oldFile(name) : newFile(name)
  const path = findAsset(file)
  if (path === undefined) throw new Error(`cannot find ${file}: reinstall the package`)
  return BpfObject.load(native, readFileSync(path), {
    ...options,
    name,
    begun: takeBegun(file),
    prepare: object => {
      if (build === 'old' && native.objectMaps(object).some(map => map.name === oldSeeds))
        setOwnerSeeds(native, object, 0, { section: oldSeeds })
      prepare?.(object)
    },
  })
}

export function newFile(name: string): string {
  return `${name}.bpf.o`
}

function oldFile(name: string): string {
  return `old/${name}.bpf.o`
}
