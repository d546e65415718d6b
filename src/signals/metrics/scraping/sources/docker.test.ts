// owns: host
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Dockerd, withoutDocker } from '../../../../../test/helpers/dockerd.ts'
import { until } from '../../../../../test/helpers/program.ts'
import { isAtFault, ReportedTargets } from '../../../../../test/helpers/reported-targets.ts'
import type { TargetSource } from '../source.ts'
import { openSource } from './index.ts'

function start(
  t: TestContext,
  host: string,
  refreshMs = 100,
): { source: TargetSource; told: ReportedTargets } {
  const told = new ReportedTargets()
  const source = openSource(
    { kind: 'docker', host, port: 80, hostNetworkingHost: 'localhost', refreshMs },
    told.options,
  )
  t.after(() => source.stop())
  source.start()
  return { source, told }
}

type Answers = Record<string, unknown>

async function daemon(t: TestContext, answers: Answers): Promise<{ server: Server; host: string }> {
  const server = createServer((request, response) => {
    const path = request.url!.replace(/^\/v1\.41/, '')
    const answer = path === '/version' && !(path in answers) ? { ApiVersion: '1.41' } : answers[path]
    if (answer === undefined) response.writeHead(500)
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? { message: 'no' }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, host: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const containers = [
  {
    Id: 'c1',
    Names: ['/web'],
    Labels: { 'com.example/team': 'blue' },
    HostConfig: { NetworkMode: 'shop' },
    NetworkSettings: {
      Networks: {
        zoo: { NetworkID: 'n2', IPAddress: '10.2.0.2' },
        shop: { NetworkID: 'n1', IPAddress: '10.1.0.2' },
      },
    },
    Ports: [
      { IP: '0.0.0.0', PrivatePort: 8080, PublicPort: 80, Type: 'tcp' },
      { PrivatePort: 53, Type: 'udp' },
      { PrivatePort: 9100, Type: 'tcp' },
    ],
  },
  {
    Id: 'c2',
    Names: ['/side'],
    HostConfig: { NetworkMode: 'container:c1' },
    NetworkSettings: { Networks: {} },
    Ports: [],
  },
  {
    Id: 'c3',
    Names: ['/host'],
    HostConfig: { NetworkMode: 'host' },
    NetworkSettings: { Networks: { host: { IPAddress: '' } } },
  },
  {
    Id: 'c4',
    Names: ['/none'],
    HostConfig: { NetworkMode: 'none' },
    NetworkSettings: { Networks: { none: { IPAddress: '' } } },
  },
  {
    Id: 'c5',
    Names: ['/circle'],
    HostConfig: { NetworkMode: 'container:c5' },
    NetworkSettings: { Networks: {} },
  },
]
const networks = [
  { Id: 'n1', Name: 'shop', Scope: 'local', Internal: false, Ingress: false, Labels: { a: 'b' } },
]

test('containers are targets by their ports and networks', async t => {
  const answers: Answers = { '/containers/json': containers, '/networks': networks }
  const { host } = await daemon(t, answers)
  const { source, told } = start(t, host)
  await told.has('10.1.0.2:80,10.1.0.2:8080,10.1.0.2:9100,localhost', source)
  const web = {
    __meta_docker_container_id: 'c1',
    __meta_docker_container_name: '/web',
    __meta_docker_container_network_mode: 'shop',
    __meta_docker_container_label_com_example_team: 'blue',
  }
  const network = {
    __meta_docker_network_id: 'n1',
    __meta_docker_network_name: 'shop',
    __meta_docker_network_scope: 'local',
    __meta_docker_network_internal: 'false',
    __meta_docker_network_ingress: 'false',
    __meta_docker_network_label_a: 'b',
    __meta_docker_network_ip: '10.1.0.2',
  }
  assert.deepEqual(told.at('10.1.0.2:8080'), {
    ...web,
    ...network,
    __address__: '10.1.0.2:8080',
    __meta_docker_port_private: '8080',
    __meta_docker_port_public: '80',
    __meta_docker_port_public_ip: '0.0.0.0',
  })
  assert.deepEqual(told.at('10.1.0.2:9100'), {
    ...web,
    ...network,
    __address__: '10.1.0.2:9100',
    __meta_docker_port_private: '9100',
  })
  assert.deepEqual(told.at('10.1.0.2:80'), {
    ...network,
    __address__: '10.1.0.2:80',
    __meta_docker_container_id: 'c2',
    __meta_docker_container_name: '/side',
    __meta_docker_container_network_mode: 'container:c1',
  })
  assert.equal(told.at('localhost')?.__meta_docker_container_name, '/host')
  const check = async (answer: unknown, reason: RegExp) => {
    answers['/containers/json'] = answer
    await isAtFault(source, reason)
    assert.equal(told.targets.length, 4)
  }
  await check(undefined, /HTTP 500 to \/v1\.41\/containers\/json: no/)
  await check('[{', /not JSON/)
  await check({}, /not a list/)
  answers['/containers/json'] = [7, null, {}, { Id: 'x', Names: 7 }, { Id: 'y', Names: ['/y'], Ports: 'z' }]
  await told.has('', source)
  assert.equal(source.state.connected, true)
})

test('what is no daemon has a reason and a hint', async t => {
  const check = async (host: string, reason: RegExp, hint: RegExp) => {
    const { source } = start(t, host)
    await isAtFault(source, reason)
    assert.match(source.state.hint, hint)
  }
  await check('ssh://host', /svc does not support ssh/, /unix:\/\/\/run\/svc\/far\.sock/)
  await check('unix:///nowhere/docker.sock', /ENOENT|no such/i, /start Docker/)
  const { host } = await daemon(t, { '/version': { ApiVersion: 7 } })
  await check(host, /not the Docker Engine API/, /a running Docker daemon/)
})

test('a real daemon tells its containers', { skip: withoutDocker }, async t => {
  const dockerd = await Dockerd.start()
  t.after(() => dockerd.stop())
  const { source, told } = start(t, `unix://${dockerd.socket}`)
  await told.has('', source)
  const run = ['run', '-d', '--stop-signal', 'KILL', '--label', 'team=shop']
  const id = await dockerd.docker(...run, '--net', 'host', '--name', 'web', 'shop:1.2', 'sleep', '1000')
  await dockerd.container('alone')
  await told.has('localhost', source)
  const { __meta_docker_network_id: network, ...target } = told.targets[0]!
  assert.match(network!, /^[0-9a-f]{64}$/)
  assert.deepEqual(target, {
    __address__: 'localhost',
    __meta_docker_container_id: id,
    __meta_docker_container_name: '/web',
    __meta_docker_container_network_mode: 'host',
    __meta_docker_container_label_team: 'shop',
    __meta_docker_network_name: 'host',
    __meta_docker_network_scope: 'local',
    __meta_docker_network_internal: 'false',
    __meta_docker_network_ingress: 'false',
  })
  await dockerd.docker('rm', '-f', id)
  await told.has('', source)
  await dockerd.end()
  await until('it is wrong', 20_000, () => !source.state.connected && source.state.hint.includes('Docker'))
})
