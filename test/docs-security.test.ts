// owns: host
// reads: the tree
// docs/security.md names every file that an agent opens and every address that it asks.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { AgentProcess } from './helpers/agent-process.ts'
import { withoutBpf } from './helpers/compile-bpf.ts'
import { freePort, until } from './helpers/program.ts'
import { onlyInSoak } from './helpers/soak.ts'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/security.md'), 'utf8')

const withoutTrace: string | false =
  onlyInSoak ||
  withoutBpf ||
  (spawnSync('strace', ['-V']).status === 0 ? false : 'system calls are seen by strace, which is not there')

/** What stands as code in the first cells of a section's table. */
function named(section: string): readonly string[] {
  const [, rest = ''] = page.split(`\n## ${section}\n`)
  const [text = ''] = rest.split('\n## ')
  return [...text.matchAll(/^\| (.*?) \|/gm)].flatMap(([, first]) =>
    [...first!.matchAll(/`([^`]+)`/g)].map(([, code]) => code!),
  )
}

/** `*` is a part of a name, `**` any depth, the directory itself included. */
function pattern(path: string): RegExp {
  const escaped = path
    .replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('/**', '(/.*)?')
    .replaceAll(/(?<!\.)\*/g, '[^/]*')
  return new RegExp(`^${escaped}$`)
}

/** Successful calls with a path: its name, and whether it may be written. */
const pathCall =
  /^\d+ +(open|openat|openat2|creat|mkdir|mkdirat|rename|renameat|renameat2|unlink|unlinkat|execve)\((.*)\) += \d+/

interface Seen {
  readonly read: ReadonlySet<string>
  readonly written: ReadonlySet<string>
  /** Of the network, and of sockets in the file system. */
  readonly asked: ReadonlySet<string>
}

function seenIn(trace: string, own: string): Seen {
  const [read, written, asked] = [new Set<string>(), new Set<string>(), new Set<string>()]
  for (const line of trace.split('\n')) {
    const [, call = '', given = ''] = pathCall.exec(line) ?? []
    for (const [, path] of call === '' ? [] : given.matchAll(/"(\/[^"]*)"/g)) {
      if (path!.startsWith(own) || path!.startsWith(root)) continue
      const reads = call === 'execve' || (call.startsWith('open') && !/O_WRONLY|O_RDWR|O_CREAT/.test(given))
      ;(reads ? read : written).add(path!)
    }
    if (!/^\d+ +connect\(/.test(line)) continue
    const [, address] =
      /inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"/.exec(line)?.filter(Boolean) ?? []
    const [, socket] = /sun_path="(\/[^"]+)"/.exec(line) ?? []
    if (address !== undefined) asked.add(address)
    if (socket !== undefined && !socket.startsWith(own)) read.add(socket)
  }
  return { read, written, asked }
}

test('every file that an agent opens, and every address that it asks, is named', {
  skip: withoutTrace,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-trace-'))
  const trace = join(directory, 'trace')
  const metricsPort = await freePort()
  const calls =
    'open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,connect,execve'
  const agent = await AgentProcess.start({
    // As a grandchild, so that the agent itself is the process that is known.
    wrapper: ['strace', '-D', '-f', '-qq', '-e', `trace=${calls}`, '-o', trace],
    endpoint: `localhost:${await freePort()}`,
    config: {
      agent: {
        nodeexporter: { enabled: true, listen_address: `127.0.0.1:${metricsPort}`, ebpf_enhanced: true },
        profiling: { enabled: true, off_cpu: true, memory: true },
        discovery: { enabled: true },
        logs: { enabled: true, journald: true, position_file: join(directory, 'positions') },
        ebpf: { process: { enabled: true }, syscalls: { enabled: true }, network: { flows: true } },
      },
      pipeline: {
        export: { queue: { enabled: true, directory: join(directory, 'queue') } },
        pii_redaction: { enabled: true, mode: 'hash' },
      },
    },
  })
  try {
    await agent.get('/profiles?seconds=2')
    await agent.get('/ui')
    await agent.get('/ui/api/doctor')
    await until('the host metrics are read', 20_000, async () =>
      (await agent.get('/status')).text.includes('traces'),
    )
    const spent = spawnSync('curl', ['-s', `http://127.0.0.1:${metricsPort}/metrics`])
    assert.equal(spent.status, 0)
  } finally {
    await agent.stop()
  }
  const own = directory.slice(0, directory.lastIndexOf('/svc-')) // tests keep what an agent writes there
  const { read, written, asked } = seenIn(readFileSync(trace, 'utf8'), `${own}/svc-`)
  rmSync(directory, { recursive: true })
  assert.ok(read.size > 100, 'the trace is nearly empty')
  const files = named('Files').map(pattern)
  const isKernel = (path: string) => /^\/(proc|sys)(\/|$)/.test(path)
  assert.deepEqual(
    [...read].filter(path => !isKernel(path) && !files.some(file => file.test(path))),
    [],
  )
  const writable = /^(\/var\/lib\/svc|\/run\/svc)(\/|$)|^\/dev\/null$|^\/proc\/(self|\d+)\/comm$/
  assert.deepEqual(
    [...written].filter(path => !writable.test(path)),
    [],
  )
  const local = /^(127\.0\.0\.\d+|::1|0\.0\.0\.0)$/
  const addresses = named('Addresses')
  assert.deepEqual(
    [...asked].filter(
      address => !local.test(address) && !addresses.includes(address) && !isResolver(address),
    ),
    [],
  )
})

function isResolver(address: string): boolean {
  return readFileSync('/etc/resolv.conf', 'utf8').includes(`nameserver ${address}`)
}

test('patterns mean what the page says they mean', () => {
  const check = (glob: string, path: string, want: boolean) =>
    assert.equal(pattern(glob).test(path), want, `${glob} ${path}`)
  check('/a/**', '/a', true)
  check('/a/**', '/a/b/c', true)
  check('/a/**', '/ab', false)
  check('/tmp/perf-*.map', '/tmp/perf-17.map', true)
  check('/tmp/perf-*.map', '/tmp/perf-1/x.map', false)
  assert.ok(named('Files').includes('/var/lib/svc/**'))
  assert.ok(named('Addresses').includes('169.254.169.254'))
  const trace =
    '17 openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3\n17 openat(AT_FDCWD, "/etc/x", O_RDONLY) = -1 ENOENT\n'
  assert.deepEqual([...seenIn(trace, '/tmp').read], ['/etc/passwd'])
})
