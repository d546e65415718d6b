// Metadata services of six clouds on this machine, as true to their protocols as an agent can tell: who asks without the
// header or the token, or through a proxy, is refused as the real ones do.

import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { MetadataService } from '../../src/foundation/lib/metadata-service.ts'
import type { CloudProvider, Dmi } from '../../src/foundation/model/cloud-provider.ts'

export type CloudName = CloudProvider['name']

/** What a service may do instead of answering. Tokens are given out all the same, unless `everyAnswer`. */
export type Misbehaviour =
  | 'forgets its tokens'
  | 'unsigned'
  | '404'
  | '500'
  | 'redirects'
  | 'captive portal'
  | 'huge'
  | 'huge, and says so'
  | 'compressed'
  | 'no JSON'
  | 'wrong types'
  | 'deep'
  | 'empty'
  | 'breaks off'
  | 'hangs'
  | 'trickles'

type Answer = readonly [status: number, body: string, headers?: Record<string, string>]

export interface MetadataFake {
  readonly endpoint: string
  /** That came: `GET /metadata/v1.json`. */
  readonly questions: readonly string[]
  /** Those that are open now. */
  readonly connections: ReadonlySet<Socket>
  /** That were made. */
  readonly connectionCount: number
  readonly sentBytes: number
  misbehaviour: Misbehaviour | ''
  /** The tokens misbehave too. */
  everyAnswer: boolean
  /** In place of the answer that counts. */
  document: string | undefined
  revokeTokens(): void
  stop(): Promise<void>
}

/** Listens at 127.0.0.1, or where it is told to. */
export async function startMetadataService(
  name: CloudName,
  host = '127.0.0.1',
  port = 0,
): Promise<MetadataFake> {
  const tokens = new Set<string>()
  const questions: string[] = []
  const connections = new Set<Socket>()
  let connectionCount = 0
  let sentBytes = 0
  const server = createServer((request, response) => {
    questions.push(`${request.method} ${request.url}`)
    const answer = answers[name](request, tokens, fake.document)
    const isToken = request.method === 'PUT' && answer[0] === 200
    const fault = isToken && !fake.everyAnswer ? '' : fake.misbehaviour
    if (isToken && fake.misbehaviour === 'forgets its tokens') tokens.clear()
    give(response, fault, answer, bytes => {
      sentBytes += bytes
    })
  })
  server.on('connection', socket => {
    connections.add(socket)
    connectionCount++
    socket.on('error', () => undefined)
    socket.once('close', () => connections.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const fake: MetadataFake = {
    endpoint: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`,
    questions,
    connections,
    get connectionCount() {
      return connectionCount
    },
    get sentBytes() {
      return sentBytes
    },
    misbehaviour: '',
    everyAnswer: false,
    document: undefined,
    revokeTokens: () => tokens.clear(),
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of connections) socket.destroy()
      }),
  }
  return fake
}

/** What a provider reads of a service. */
export async function readCloud(provider: CloudProvider, endpoint: string, timeoutMs = 30_000) {
  const service = new MetadataService({ endpoint, timeoutMs })
  try {
    return await provider.read(service)
  } finally {
    service.close()
  }
}

/** The firmware of a machine, of which only these are told. */
export function firmware(told: Partial<Dmi>): Dmi {
  const names = [
    'bios_vendor',
    'bios_version',
    'board_asset_tag',
    'chassis_asset_tag',
    'product_name',
  ] as const
  const more = ['product_serial', 'product_uuid', 'sys_vendor', 'hypervisor_uuid'] as const
  return { ...Object.fromEntries([...names, ...more].map(name => [name, ''])), ...told } as unknown as Dmi
}

/** The firmware of a machine of each cloud. */
export const machines: Readonly<Record<CloudName, Partial<Dmi>>> = {
  aws: { sys_vendor: 'Amazon EC2', bios_vendor: 'Amazon EC2', product_name: 'm5.large', bios_version: '1.0' },
  gcp: { sys_vendor: 'Google', bios_vendor: 'Google', product_name: 'Google Compute Engine' },
  azure: {
    sys_vendor: 'Microsoft Corporation',
    product_name: 'Virtual Machine',
    chassis_asset_tag: '7783-7084-3265-9085-8269-3286-77',
  },
  alibaba: { sys_vendor: 'Alibaba Cloud', product_name: 'Alibaba Cloud ECS', bios_vendor: 'SeaBIOS' },
  oracle: { sys_vendor: 'QEMU', bios_vendor: 'SeaBIOS', chassis_asset_tag: 'OracleCloud.com' },
  digitalocean: { sys_vendor: 'DigitalOcean', bios_vendor: 'DigitalOcean', product_name: 'Droplet' },
}

const answers: Readonly<
  Record<CloudName, (request: IncomingMessage, tokens: Set<string>, document: string | undefined) => Answer>
> = {
  aws(request, tokens, document = JSON.stringify(ec2Identity)) {
    if (request.headers['x-forwarded-for'] !== undefined) return [403, page('403 - Forbidden')]
    if (request.url === '/latest/api/token')
      return giveToken(request, 'x-aws-ec2-metadata-token-ttl-seconds', tokens)
    if (!tokens.has(String(request.headers['x-aws-ec2-metadata-token'])))
      return [401, page('401 - Unauthorized')]
    if (request.url === '/latest/dynamic/instance-identity/document') return [200, document]
    if (request.url === '/latest/meta-data/services/partition') return [200, 'aws']
    if (request.url === '/latest/meta-data/hostname')
      return [200, 'ip-10-0-3-7.eu-central-1.compute.internal']
    return [404, page('404 - Not Found')]
  },
  gcp(request, _tokens, document) {
    if (request.headers['metadata-flavor'] !== 'Google' || request.headers['x-forwarded-for'] !== undefined)
      return [403, page('Forbidden')]
    const text = computeEngine[request.url?.replace('/computeMetadata/v1/', '') ?? '']
    const headers = { 'metadata-flavor': 'Google', server: 'Metadata Server for VM' }
    return text === undefined ? [404, page('404'), headers] : [200, document ?? text, headers]
  },
  azure(request, _tokens, document = JSON.stringify(azureCompute)) {
    const { pathname, searchParams } = new URL(request.url!, 'http://x')
    const json = { 'content-type': 'application/json; charset=utf-8' }
    if (request.headers.metadata !== 'true' || request.headers['x-forwarded-for'] !== undefined)
      return [400, '{ "error": "Bad request. Required metadata header not specified" }', json]
    if (!/^20\d\d-\d\d-\d\d$/.test(searchParams.get('api-version') ?? ''))
      return [400, '{ "error": "Bad request. api-version was not specified in the request" }', json]
    return pathname === '/metadata/instance/compute'
      ? [200, document, json]
      : [404, '{ "error": "Not found" }', json]
  },
  alibaba(request, tokens, document = JSON.stringify(ecsIdentity)) {
    if (request.url === '/latest/api/token')
      return giveToken(request, 'x-aliyun-ecs-metadata-token-ttl-seconds', tokens)
    if (!tokens.has(String(request.headers['x-aliyun-ecs-metadata-token'])))
      return [403, page('403 - Forbidden')]
    if (request.url === '/latest/dynamic/instance-identity/document') return [200, document]
    return request.url === '/latest/meta-data/hostname' ? [200, 'iZbp1abcdefghijklmnopZ'] : [404, page('404')]
  },
  oracle(request, _tokens, document = JSON.stringify(ociInstance)) {
    if (request.headers.authorization !== 'Bearer Oracle') return [403, page('403')]
    const forwarded = ['forwarded', 'x-forwarded-for', 'x-forwarded-host'].some(
      name => name in request.headers,
    )
    return request.url === '/opc/v2/instance/' && !forwarded ? [200, document] : [404, page('404')]
  },
  digitalocean: (request, _tokens, document = JSON.stringify(droplet)) =>
    request.url === '/metadata/v1.json'
      ? [200, document, { 'content-type': 'application/json' }]
      : [404, 'not found'],
}

/** As EC2 and ECS do: for 1 to 21,600 seconds. */
function giveToken({ method, headers }: IncomingMessage, name: string, tokens: Set<string>): Answer {
  if (method !== 'PUT') return [405, page('405 - Method Not Allowed')]
  const seconds = Number(headers[name] ?? 0)
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 21_600) return [400, page('400 - Bad Request')]
  const token = `AQAEA${createHash('sha256').update(randomBytes(32)).digest('base64url')}==`
  tokens.add(token)
  return [200, token, { [name]: String(seconds) }]
}

function give(
  response: ServerResponse,
  fault: Misbehaviour | '',
  [status, body, headers = {}]: Answer,
  sent: (bytes: number) => void,
): void {
  const end = (status: number, body: string, more: Record<string, string> = {}) =>
    response.writeHead(status, { ...headers, ...more }).end(body)
  const json = { 'content-type': 'application/json' }
  switch (fault) {
    case 'unsigned':
      response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
      return
    case '404':
      return void end(404, page('404 - Not Found'))
    case '500':
      return void end(500, page('500 - Internal Server Error'))
    case 'redirects':
      return void end(302, '', { location: 'http://127.0.0.1:1/' })
    case 'captive portal':
      return void response
        .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
        .end(`<html>\n<body>Sign in to the network</body>\n</html>`)
    case 'huge':
      response.writeHead(200, { ...headers, ...json })
      return void pour(response, sent)
    case 'huge, and says so':
      response.writeHead(200, { ...headers, ...json, 'content-length': String(1e9) })
      return void pour(response, sent)
    case 'compressed':
      return void end(200, body, { 'content-encoding': 'gzip' })
    case 'no JSON':
      return void end(200, '{"instanceId":\n', json)
    case 'wrong types':
      return void end(
        200,
        '{"instanceId":17,"vmId":[],"droplet_id":{},"id":null,"region":{"a":1},"location":7}',
        json,
      )
    case 'deep':
      return void end(200, '['.repeat(200_000), json)
    case 'empty':
      return void end(200, '')
    case 'breaks off':
      response.writeHead(200, { ...headers, ...json, 'content-length': '100' }).write('{')
      return void setImmediate(() => response.destroy())
    case 'hangs':
      return
    case 'trickles': {
      response.writeHead(200, { ...headers, ...json })
      const timer = setInterval(() => response.write(' '), 5)
      return void response.once('close', () => clearInterval(timer))
    }
    default:
      end(status, body)
  }
}

/** A gigabyte, for as long as it is taken. */
function pour(response: ServerResponse, sent: (bytes: number) => void): void {
  const piece = Buffer.alloc(64 * 1024, 0x20)
  let left = 1e9
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= piece.length
      sent(piece.length)
      if (!response.write(piece)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}

function page(title: string): string {
  return `<?xml version="1.0" encoding="iso-8859-1"?>\n<html><head><title>${title}</title></head></html>\n`
}

const ec2Identity = {
  accountId: '123456789012',
  architecture: 'x86_64',
  availabilityZone: 'eu-central-1b',
  billingProducts: null,
  imageId: 'ami-0abcdef1234567890',
  instanceId: 'i-0123456789abcdef0',
  instanceType: 'm5.large',
  kernelId: null,
  pendingTime: '2026-10-01T08:00:00Z',
  privateIp: '10.0.3.7',
  region: 'eu-central-1',
  version: '2017-09-30',
}

const computeEngine: Readonly<Record<string, string>> = {
  // Above what a double holds exactly.
  'instance/id': '7385713846219837123',
  'instance/zone': 'projects/123456789012/zones/europe-west3-c',
  'instance/name': 'shop-1',
  'instance/machine-type': 'projects/123456789012/machineTypes/e2-medium',
  'instance/image': 'projects/debian-cloud/global/images/debian-12-bookworm-v20261001',
  'project/project-id': 'shop-project',
}

const azureCompute = {
  azEnvironment: 'AzurePublicCloud',
  location: 'westeurope',
  name: 'shop-1',
  osType: 'Linux',
  resourceGroupName: 'shop',
  resourceId:
    '/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourceGroups/shop/providers/Microsoft.Compute/virtualMachines/shop-1',
  storageProfile: {
    dataDisks: [],
    imageReference: { id: '', offer: 'debian-12', publisher: 'Debian', sku: '12-gen2', version: 'latest' },
  },
  subscriptionId: '8d10da13-8125-4ba9-a717-bf7490507b3d',
  tagsList: [],
  userData: 'c2VjcmV0',
  vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
  vmSize: 'Standard_D2s_v5',
  zone: '2',
}

const ecsIdentity = {
  'zone-id': 'cn-hangzhou-i',
  'serial-number': '4acd2b47-b328-4762-852f-998b1d5a1f0e',
  'instance-id': 'i-bp13znx0m0me8cquu0ab',
  'region-id': 'cn-hangzhou',
  'private-ipv4': '192.168.0.7',
  'owner-account-id': '1609128345678901',
  mac: '00:16:3e:0f:01:02',
  'image-id': 'debian_12_6_x64_20G_alibase_20260901.vhd',
  'instance-type': 'ecs.g6e.large',
}

const ociInstance = {
  availabilityDomain: 'EMIr:PHX-AD-1',
  faultDomain: 'FAULT-DOMAIN-3',
  compartmentId: 'ocid1.tenancy.oc1..exampleuniqueID',
  displayName: 'shop-1',
  hostname: 'shop-1-host',
  id: 'ocid1.instance.oc1.phx.exampleuniqueID',
  image: 'ocid1.image.oc1.phx.exampleuniqueID',
  metadata: { ssh_authorized_keys: 'ssh-ed25519 AAAA' },
  region: 'phx',
  canonicalRegionName: 'us-phoenix-1',
  regionInfo: { realmKey: 'oc1', regionKey: 'PHX', regionIdentifier: 'us-phoenix-1' },
  shape: 'VM.Standard.E4.Flex',
  state: 'Running',
  tenantId: 'ocid1.tenancy.oc1..exampletenant',
  timeCreated: 1600381928581,
}

const droplet = {
  droplet_id: 2756294,
  hostname: 'shop-1',
  vendor_data: '#cloud-config\ndisable_root: false\n',
  public_keys: ['ssh-ed25519 AAAA'],
  region: 'nyc3',
  interfaces: { private: [], public: [] },
  dns: { nameservers: ['8.8.8.8'] },
  features: { dhcp_enabled: true },
}
