// owns: process
import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { FakeContainerd } from '../../../test/helpers/fake-containerd.ts'
import { until } from '../../../test/helpers/program.ts'
import { ReportedContainers } from '../../../test/helpers/reported-containers.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { ContainerRuntimes } from './container-runtimes.ts'

const isRoot = process.geteuid?.() === 0
const anybody = 65_534

test('a socket that may not be opened is a fault with a hint, but that of containerd not beside Docker', {
  skip: isRoot ? false : 'another user is taken on by root',
}, async t => {
  const containerd = await FakeContainerd.start()
  t.after(() => containerd.close())
  chmodSync(containerd.rootfs, 0o755)
  chmodSync(containerd.socket, 0o600)
  const alone = await refused(t, containerd.rootfs)
  assert.match(alone.containerd!.state.reason, /no permission to open .*\/containerd\.sock \(EACCES\)/)
  assert.match(alone.containerd!.state.hint, /gid under \[grpc\]/)
  assert.equal(alone.docker!.state.hint, '')
  const docker = createServer()
  const path = join(containerd.rootfs, 'run/docker.sock')
  await new Promise<void>(resolve => docker.listen(path, resolve))
  t.after(() => docker.close())
  chmodSync(path, 0o600)
  const beside = await refused(t, containerd.rootfs)
  assert.match(beside.containerd!.state.reason, /no permission to open/)
  assert.equal(beside.containerd!.state.hint, '')
  assert.match(beside.docker!.state.hint, /socket's group \(docker\)/)
})

/** The runtimes as somebody without rights finds them. */
async function refused(t: TestContext, rootfs: string): Promise<ContainerRuntimes> {
  const told = new ReportedContainers()
  const runtimes = new ContainerRuntimes({ endpoint: '', env: {}, rootfs, sink: told, log: silentLogger })
  t.after(() => runtimes.stop())
  process.seteuid!(anybody)
  try {
    runtimes.start()
    const isSettled = () => [runtimes.docker!, runtimes.containerd!].every(({ state }) => state.reason !== '')
    await until('both are refused', 20_000, isSettled)
  } finally {
    process.seteuid!(0)
  }
  return runtimes
}
