import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The first call of a connection, or one in its midst. */
export interface Opening {
  readonly bytes: Buffer | string
  /** Of the call, where it is more than `bytes`. */
  readonly length?: number
  readonly joined?: boolean
  readonly received?: boolean
  readonly localPort?: number
  readonly peerPort?: number
}

/** What the kernel side takes it for: the protocol's name ('none') and who sends such bytes. */
export interface Recognised {
  readonly protocol: string
  readonly from: 'nobody' | 'client' | 'server' | 'either'
}

const senders = ['nobody', 'client', 'server', 'either'] as const
const folder = join(import.meta.dirname, '..', 'fixtures', 'bpf')

/** Runs the classifier of the BPF programs over the openings: the same C, compiled for this machine. */
export function classify(openings: readonly Opening[]): Recognised[] {
  const directory = mkdtempSync(join(tmpdir(), 'svc-classify-'))
  try {
    const program = join(directory, 'classify')
    const flags = ['-O1', '-Wall', '-Werror', '-Wno-unused-function', '-fsanitize=undefined,bounds']
    execFileSync('gcc', [...flags, '-o', program, join(folder, 'classify.c')], { stdio: 'pipe' })
    const input = openings.map(opening => {
      const bytes = typeof opening.bytes === 'string' ? Buffer.from(opening.bytes, 'latin1') : opening.bytes
      const flag = (value: boolean | undefined) => (value ? 1 : 0)
      const { length = bytes.length, localPort = 50_000, peerPort = 4_000 } = opening
      return `${flag(opening.joined)} ${flag(opening.received)} ${localPort} ${peerPort} ${length} ${bytes.subarray(0, 64).toString('hex')}\n`
    })
    const output = execFileSync(program, { input: input.join(''), maxBuffer: 2 ** 28 }).toString()
    const names = protocolNames()
    return output
      .trim()
      .split('\n')
      .map(line => {
        const [protocol, from] = line.split(' ').map(Number)
        return { protocol: names[protocol!]!, from: senders[from!]! }
      })
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function protocolNames(): string[] {
  const header = readFileSync(join(import.meta.dirname, '../../bpf/include/gen/protocols.h'), 'utf8')
  return [...header.matchAll(/^\tsvc_protocol_(\w+),$/gm)].map(([, name]) => name!)
}
