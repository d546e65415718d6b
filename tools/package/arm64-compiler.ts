// The C compiler for a processor: this machine's own, or Debian's cross compiler with Debian's own C library for it.
import { join } from 'node:path'
import { unpackedPackages } from '../debian-packages.ts'
import { commandExists } from './command.ts'
import { type Architecture, names } from './release.ts'

const { debian, triplet } = names.arm64
const packages = ['libbpf-dev', 'libiberty-dev', 'liblzma-dev', 'libc6-dev', 'libstdc++6', 'libgcc-s1']

export interface Compiler {
  readonly command: string
  /** Paths of headers, start files and libraries. */
  readonly args: readonly string[]
}

export function compilerOf(architecture: Architecture): Compiler {
  if (architecture === process.arch) return { command: 'gcc', args: [] }
  if (architecture !== 'arm64')
    throw new Error(`no cross compiler for ${architecture} is known: build it there`)
  const root = arm64Root()
  const lib = join(root, 'usr/lib', triplet)
  const include = join(root, 'usr/include')
  const args = [`--sysroot=${root}`, `-B${lib}`, `-L${lib}`, `-I${include}`, `-I${join(include, triplet)}`]
  return { command: `${triplet}-gcc`, args }
}

/** Debian's C library and headers for 64-bit ARM, as a root in which built programs run. */
export function arm64Root(): string {
  const found = unpackedPackages('arm64', packages, { architecture: debian })
  if (found === undefined)
    throw new Error(`cannot unpack ${packages.join(', ')} of ${debian}: apt-get cannot download them`)
  return found
}

/** Why building for 64-bit ARM is impossible here; false if it is possible. */
export function withoutArm64(): string | false {
  const missing = [`${triplet}-gcc`, `${triplet}-strip`, 'clang', 'npm'].find(each => !commandExists(each))
  return missing === undefined
    ? false
    : `packages for arm64 take ${missing} (Debian packages gcc-aarch64-linux-gnu, clang, npm)`
}
