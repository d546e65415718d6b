// owns: host
// What any user can do to whoever looks at their processes: keep the lock of their memory for ever.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { AgentProcess } from './helpers/agent-process.ts'
import { mountBindfs } from './helpers/bindfs.ts'
import { withoutBpf } from './helpers/compile-bpf.ts'
import { until } from './helpers/program.ts'
import { onlyInSoak } from './helpers/soak.ts'

const processes = 100

/** Each asks the server again and again in one thread, and holds the lock in another. */
const hostile = `
import ctypes, os, socket, sys, threading, time
directory, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
for i in range(count):
    if os.fork() == 0: break
else:
    time.sleep(600)
pages = libc.mmap(None, 65536, 3, 1, os.open(f'{directory}/page{i}', os.O_RDWR), 0)
ctypes.memset(pages, 65, 65536)
server = socket.create_connection(('127.0.0.1', port))
print('ready', flush=True)
sys.stdin.buffer.raw.read(1)
threading.Thread(target=lambda: libc.mmap(pages, 65536, 3, 0x32, -1, 0), daemon=True).start()
while True:
    server.send(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
    server.recv(65536)
    time.sleep(0.2)
`

test('processes that keep the lock of their memory hold no agent, at its start, in its work or at its end', {
  // Whoever else looks at processes waits meanwhile: ps(1), and what runs the tests.
  skip: onlyInSoak || withoutBpf,
}, async t => {
  let answered = 0
  const server = createServer((_request, response) => {
    answered++
    response.end('ok')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const group = { pid: 0 }
  t.after(() => {
    server.close()
    server.closeAllConnections()
    if (group.pid > 0) process.kill(-group.pid, 'SIGKILL')
  })
  const mount = await mountBindfs(t, 1)
  chmodSync(mount.directory, 0o755)
  for (let i = 0; i < processes; i++) {
    const page = join(mount.directory, 'source', `page${i}`)
    writeFileSync(page, Buffer.alloc(65_536))
    chmodSync(page, 0o666)
  }
  const args = ['-c', hostile, join(mount.directory, 'm0'), String(port), String(processes)]
  const parent = spawn('python3', args, {
    uid: 65_534,
    gid: 65_534,
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  group.pid = parent.pid!
  let said = ''
  parent.stdout!.on('data', text => {
    said += text
  })
  await until('all are ready', 60_000, () => said.split('ready').length > processes)
  await mount.hang()
  const guard = setTimeout(() => mount.answer(), 30_000)
  t.after(() => clearTimeout(guard))
  parent.stdin!.write('g'.repeat(processes))
  await until('they ask the server', 60_000, () => answered > processes)

  const agent = await AgentProcess.start({
    ports: [port],
    config: { agent: { profiling: { enabled: true } } },
  })
  const slowest: number[] = []
  const since = performance.now()
  while (performance.now() - since < 5_000) {
    const begun = performance.now()
    assert.equal((await agent.get('/healthz')).status, 200)
    slowest.push(performance.now() - begun)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  slowest.sort((a, b) => b - a)
  const { text } = await agent.get('/metrics')
  const count = (name: string) => Number(new RegExp(`^${name}.* (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
  t.diagnostic(`slowest ${slowest.slice(0, 3).map(Math.round).join(', ')} ms of ${slowest.length}`)
  t.diagnostic(text.match(/^svc_process_memory_unread.*$/gm)?.join(' ') ?? 'none')
  assert.ok(count('svc_process_memory_unread_total\\{reader="strings",reason="late"\\}') >= 1)
  assert.ok(slowest.at(Math.floor(slowest.length / 20))! < 1_000, `${slowest.slice(0, 20)}`)
  const ending = performance.now()
  const { code } = await agent.stop()
  t.diagnostic(`ended in ${Math.round(performance.now() - ending)} ms`)
  assert.equal(code, 0)
  assert.ok(performance.now() - ending < 5_000, 'SIGTERM ends it within 5 s')
})
