import type { FrameType } from '../../../foundation/model/profile.ts'
import { rustName } from './rust-name.ts'

/** Readable name of a function; `systemName` is the linker's. */
export interface FunctionName {
  readonly name: string
  readonly systemName: string
  readonly type: FrameType
  /** A mangled C++ name, to be passed to the decoder. */
  readonly isMangled: boolean
}

/** A copy: a slice would keep the whole text in memory. */
function ownText(slice: string): string {
  return Buffer.from(slice).toString()
}

/** Name of a machine code symbol. Without `demangle` it stays as the linker's. */
export function functionName(symbol: string, demangle: boolean): FunctionName {
  // Linker tables append versions to names: memcpy@@GLIBC_2.14.
  const version = symbol.indexOf('@', 1)
  const systemName = version < 0 ? symbol : ownText(symbol.slice(0, version))
  const rust = rustName(systemName)
  const type = rust === undefined ? 'native' : 'rust'
  const isMangled = demangle && rust === undefined && systemName.startsWith('_Z')
  return { name: (demangle ? rust : undefined) ?? systemName, systemName, type, isMangled }
}
