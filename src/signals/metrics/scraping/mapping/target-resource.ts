import { bareHost } from '../../../../foundation/lib/host-port.ts'
import { Attributes } from '../../../../foundation/model/attributes.ts'
import type { Resource } from '../../../../foundation/model/resource.ts'
import type { Target } from '../target.ts'
import type { Identity, TargetInfo } from './mapped-family.ts'

/**
 * Resource of metrics (OpenTelemetry specification, compatibility/prometheus_and_openmetrics, resource attributes): the
 * target, or with `identity` another one from its page. Labels of `target_info` override what is known from the URL,
 * but not the identity, so that two targets that claim the same identity stay distinct. `host`: set if the target is
 * known to run on it. Creates a new object each time.
 */
export function targetResource(
  target: Target,
  targetInfo: readonly TargetInfo[] = [],
  identity?: Identity,
  host?: Attributes,
): Resource {
  const job = identity?.job || target.labels.get('job') || target.job.name
  const instance = identity?.instance || target.labels.get('instance') || target.url
  const attributes = new Attributes()
  attributes.add('service.name', job)
  attributes.add('service.instance.id', instance)
  if (host !== undefined) setAll(attributes, host)
  addServer(attributes, target.url)
  for (const info of targetInfo) {
    const isOwn =
      (info.identity.job || target.labels.get('job') || target.job.name) === job &&
      (info.identity.instance || target.labels.get('instance') || target.url) === instance
    if (isOwn) setAll(attributes, info.labels)
  }
  return { attributes }
}

/** Sets all but the identity. */
function setAll(attributes: Attributes, more: Attributes): void {
  for (let i = 0; i < more.size; i++) {
    const key = more.keys[i]!
    if (key !== 'service.name' && key !== 'service.instance.id') attributes.set(key, more.values[i]!)
  }
}

const socketUrl = /^unix:([^:]+)/

function addServer(attributes: Attributes, url: string): void {
  const socket = socketUrl.exec(url)?.[1]
  if (socket !== undefined) {
    attributes.set('server.address', socket)
    attributes.set('url.scheme', 'http')
    return
  }
  if (!URL.canParse(url)) return
  const { protocol, hostname, port } = new URL(url)
  attributes.set('server.address', bareHost(hostname))
  attributes.set('server.port', Number(port) || (protocol === 'https:' ? 443 : 80))
  attributes.set('url.scheme', protocol.slice(0, -1))
}
