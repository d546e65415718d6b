import { loadNative, type Native, Unsupported } from '../../kernel/native.ts'
import type { FrameType } from '../../model/profile.ts'
import { rustName } from './rust-name.ts'

/** A function as people know it; `systemName` as the linker does. */
export interface FunctionName {
  readonly name: string
  readonly systemName: string
  readonly type: FrameType
}

let native: Native | undefined

/** What a symbol of machine code is called. Without `demangle` its name stays as the linker has it. */
export function functionName(symbol: string, demangle: boolean): FunctionName {
  // Versions stand behind names in tables for the linker: memcpy@@GLIBC_2.14.
  const version = symbol.indexOf('@', 1)
  const systemName = version < 0 ? symbol : symbol.slice(0, version)
  const rust = rustName(systemName)
  const type = rust === undefined ? 'native' : 'rust'
  if (!demangle) return { name: systemName, systemName, type }
  return { name: rust ?? cppName(systemName), systemName, type }
}

function cppName(mangled: string): string {
  if (!mangled.startsWith('_Z')) return mangled
  if (native === undefined) {
    const loaded = loadNative()
    if (loaded instanceof Unsupported) return mangled
    native = loaded
  }
  return native.demangle(mangled)
}
