import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { FakeContainerd } from '../../../test/helpers/fake-containerd.ts'
import { until } from '../../../test/helpers/program.ts'
import { ReportedContainers } from '../../../test/helpers/reported-containers.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { ContainerRuntimes } from './container-runtimes.ts'

const [ofBoth, own] = ['a'.repeat(64), 'b'.repeat(64)]

test('what Docker tells of is Docker’s, in whatever namespace of containerd it is', async t => {
  const containerd = await FakeContainerd.start()
  t.after(() => containerd.close())
  containerd.containers = [ofBoth, own].map(id => ({ id, namespace: 'engine' }))
  const docker = createServer(({ url = '' }, answer) => {
    if (url === '/version') answer.end('{"ApiVersion":"1.41","Version":"20.10"}')
    else if (url.includes('/events')) answer.flushHeaders()
    else if (url.includes('/containers/json')) answer.end(JSON.stringify([{ Id: ofBoth }]))
    else answer.end(JSON.stringify({ Name: '/web', State: { Status: 'running' } }))
  })
  const { rootfs } = containerd
  await new Promise<void>(resolve => docker.listen(join(rootfs, 'run/docker.sock'), resolve))
  t.after(() => {
    docker.closeAllConnections()
    docker.close()
  })
  const told = new ReportedContainers()
  const runtimes = new ContainerRuntimes({ endpoint: '', env: {}, rootfs, sink: told, log: silentLogger })
  t.after(() => runtimes.stop())
  runtimes.start()
  await until(
    'both are told',
    20_000,
    () => told.present.get(ofBoth)?.name === 'web' && told.present.has(own),
  )
  const asked = () => containerd.calls.filter(call => call === 'task').length
  const before = asked()
  containerd.emit('/tasks/start', 'engine', ofBoth)
  await until('containerd was asked again', 20_000, () => asked() > before)
  containerd.emit('/containers/delete', 'engine', ofBoth)
  containerd.emit('/containers/delete', 'engine', own)
  await until('the other is gone', 20_000, () => !told.present.has(own))
  assert.equal(told.present.get(ofBoth)?.name, 'web')
  assert.deepEqual([runtimes.knows(ofBoth), runtimes.knows(own)], [true, false])
})
