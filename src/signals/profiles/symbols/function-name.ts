import type { FrameType } from '../../../foundation/model/profile.ts'
import { rustName } from './rust-name.ts'

/** A function as people know it; `systemName` as the linker does. */
export interface FunctionName {
  readonly name: string
  readonly systemName: string
  readonly type: FrameType
  /** The name is C++'s, as the linker has it: the decoder knows how people write it. */
  readonly isMangled: boolean
}

/** A slice would hold all of what it is a slice of. */
function ownText(slice: string): string {
  return Buffer.from(slice).toString()
}

/** What a symbol of machine code is called. Without `demangle` its name stays as the linker has it. */
export function functionName(symbol: string, demangle: boolean): FunctionName {
  // Versions stand behind names in tables for the linker: memcpy@@GLIBC_2.14.
  const version = symbol.indexOf('@', 1)
  const systemName = version < 0 ? symbol : ownText(symbol.slice(0, version))
  const rust = rustName(systemName)
  const type = rust === undefined ? 'native' : 'rust'
  const isMangled = demangle && rust === undefined && systemName.startsWith('_Z')
  return { name: (demangle ? rust : undefined) ?? systemName, systemName, type, isMangled }
}
