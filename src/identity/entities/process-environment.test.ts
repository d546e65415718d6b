import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapGrowth } from '../../../test/helpers/heap.ts'
import { runsItsProgram } from '../../../test/helpers/program.ts'
import { mayDeclare } from './declared-attributes.ts'
import { Environments } from './process-environment.ts'
import { ProcessTable } from './process-table.ts'

const environ = (variables: Readonly<Record<string, string>>) =>
  Buffer.from(
    Object.entries(variables)
      .map(([name, value]) => `${name}=${value}\0`)
      .join(''),
  )
const allowedKeys = ['team', 'app.*', ...Array.from({ length: 100 }, (_, i) => `k${i}`)]
const listed = (list: string) =>
  new Environments(allowedKeys).read(environ({ A: '1', OTEL_RESOURCE_ATTRIBUTES: list }))

test('a process names its service, its deployment and what is allowed, not where it runs or whose it is', () => {
  const own = [
    'service.name',
    'service.version',
    'deployment.environment.name',
    'team',
    'app.build',
    'app.a.b',
  ]
  const others =
    `host.name host.id HOST.NAME host_name .host.name container.id k8s.pod.name k8s_pod_name cloud.region
    aws.ecs.task.arn process.pid os.type telemetry.sdk.name service.instance.id service_instance_id
    Service.Instance.ID service.instance service.instance_id service.Instance..ID service.instanceId
    datadog.host.name dt.entity.host instance job nodeName hostid containerId net.host.name server.address
    ec2.instance.id a.host zone teams team.host Team app app_name apps.x tea servicename deployments.x
    x.service.name`.split(/\s+/)
  const environments = new Environments(allowedKeys)
  const list = [...others, ...own].map(key => `${key}=x`).join(',')
  const { attributes } = environments.read(environ({ OTEL_RESOURCE_ATTRIBUTES: list }))
  assert.deepEqual(attributes.map(([key]) => key).toSorted(), own.toSorted())
  assert.deepEqual(environments.lost, { not_allowed: others.length, too_many: 0, too_long: 0 })
  // What an operator allows does not make a process another's instance.
  for (const key of ['service.instance.id', 'service.*']) assert.ok(!mayDeclare('service.instance.id', [key]))
})

test('processes with the same environment share what they told, and each loss counts', () => {
  const environments = new Environments(allowedKeys)
  const one = environments.read(environ({ OTEL_RESOURCE_ATTRIBUTES: 'team=a,host.name=b', X: '1' }))
  assert.equal(environments.read(environ({ X: '2', OTEL_RESOURCE_ATTRIBUTES: 'team=a,host.name=b' })), one)
  assert.equal(environments.lost.not_allowed, 2)
})

test('whatever stands in an environment, little is kept of it, and nothing that is not allowed', () => {
  const word = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('host.name', 'service.name', 'team', 'k1', '%41', 'x'.repeat(300)),
  )
  const pair = fc.tuple(word, word).map(([key, value]) => `${key}=${value}`)
  const variable = fc.oneof(
    fc.array(pair, { maxLength: 80 }).map(pairs => `OTEL_RESOURCE_ATTRIBUTES=${pairs.join(',')}`),
    word.map(name => `OTEL_SERVICE_NAME=${name}`),
    word,
  )
  fc.assert(
    fc.property(fc.array(variable, { maxLength: 8 }), variables => {
      const { serviceName, attributes } = new Environments(allowedKeys).read(
        Buffer.from(variables.join('\0')),
      )
      assert.ok(Buffer.byteLength(serviceName) <= 256)
      assert.ok(attributes.length <= 32)
      const bytes = attributes.flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0)
      assert.ok(bytes <= 4_096)
      for (const [key, value] of attributes) {
        assert.ok(mayDeclare(key, allowedKeys) && Buffer.byteLength(value) <= 256)
      }
    }),
  )
})

test('what names the service is taken first, wherever it stands in a long list', () => {
  const many = Array.from({ length: 100 }, (_, i) => `k${i}=v`)
  const { attributes } = listed([...many, 'service.name=pay'].join(','))
  assert.equal(attributes.length, 32)
  assert.deepEqual(attributes[0], ['service.name', 'pay'])
})

test('a list that is longer than what is read of it gives what stands at its beginning', () => {
  const { attributes } = listed(`service.name=pay,${'x'.repeat(100_000)}=1,%zz`)
  assert.deepEqual(attributes, [['service.name', 'pay']])
})

test('long lists of many processes leave little in memory', async () => {
  // As much as one variable may hold (MAX_ARG_STRLEN), of two bytes for each character.
  const list = (i: number) => Array.from({ length: 60 }, (_, k) => `k${k}=${i}${'ä'.repeat(1_000)}`).join(',')
  const environments = new Environments(allowedKeys)
  const kept: unknown[] = []
  const grown = await heapGrowth(() => {
    for (let i = 0; i < 20; i++)
      kept.push(environments.read(environ({ OTEL_RESOURCE_ATTRIBUTES: list(kept.length) })))
  })
  assert.ok(grown < 20 * 12_000, `${grown} bytes for 20 processes`)
  assert.equal(kept.length, 120)
})

test('a process with a large environment and an endless command line is known by little', async t => {
  const attributes = Array.from({ length: 60 }, (_, i) => `k${i}=${'x'.repeat(2_000)}`).join(',')
  const child = spawn('sh', ['-c', 'read line', ...Array.from({ length: 15 }, () => 'y'.repeat(100_000))], {
    env: { OTEL_SERVICE_NAME: 'hostile', OTEL_RESOURCE_ATTRIBUTES: `host.name=evil,${attributes}` },
    argv0: `-1`.repeat(60_000),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  t.after(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  await runsItsProgram(child.pid!)
  const processes = new ProcessTable({ hostName: 'host-1', bootId: 'b', version: '1', allowedKeys })
  const told = processes.resource(child.pid!, 'sh').attributes
  assert.deepEqual([told.get('service.name'), told.get('host.name')], ['hostile', 'host-1'])
  const bytes = told.values.reduce<number>((sum, value) => sum + Buffer.byteLength(String(value)), 0)
  assert.ok(bytes < 8_192, `${bytes} bytes`)
  assert.ok(processes.bytes < 16_384, `${processes.bytes} bytes`)
  // What it told of itself goes when memory is short; who it is stays.
  const held = processes.bytes
  assert.equal(processes.shed(1), held - processes.bytes)
  const left = processes.resource(child.pid!, 'sh').attributes
  assert.deepEqual([left.get('service.name'), left.get('k1')], ['hostile', undefined])
  assert.ok(processes.lostAttributes.memory > 0 && processes.lostAttributes.not_allowed === 1)
})
