import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const target = process.arch === 'arm64' ? 'arm64' : 'x86'
const triple = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'

/** Compiles test/fixtures/bpf/<name>.bpf.c as tools/setup does the agent's, and returns the object. */
export function compileBpf(name: string): Uint8Array {
  const source = join(import.meta.dirname, '..', 'fixtures', 'bpf', `${name}.bpf.c`)
  const directory = mkdtempSync(join(tmpdir(), 'svc-bpf-'))
  try {
    const object = join(directory, `${name}.bpf.o`)
    const flags = ['-g', '-O2', '-Wall', '-Werror', '-mcpu=v3', '--target=bpf', `-D__TARGET_ARCH_${target}`]
    execFileSync('clang', [...flags, `-I/usr/include/${triple}`, '-c', source, '-o', object])
    return new Uint8Array(readFileSync(object))
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** Why tests that load BPF programs cannot run here, for `skip`; false where they can. */
export const withoutBpf: string | false = process.getuid?.() === 0 ? false : 'loading BPF programs needs root'
