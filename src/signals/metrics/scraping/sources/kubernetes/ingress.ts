import { listOf, objectOf, textOf } from '../../../../../foundation/lib/json-fields.ts'
import { namespaceLabel, objectName } from './meta-labels.ts'
import type { Labels, Role } from './watched.ts'

const maxRules = 10_000

/** A target per path of each host of an ingress (networking.k8s.io/v1 `Ingress`). */
export const ingressRole: Role = {
  resource: 'ingresses',
  joins: [],
  hasNode: false,
  read(object, meta) {
    const named = objectName(object)
    if (named === undefined) return undefined
    const spec = objectOf(object.spec)
    const labels = new Map<string, string>()
    if (named.namespace !== '') labels.set(namespaceLabel, meta.text(named.namespace))
    meta.set(labels, 'ingress_class_name', textOf(spec.ingressClassName, 253))
    meta.addObject(labels, 'ingress', object)
    const tls = listOf(spec.tls, maxRules).flatMap(each => listOf(objectOf(each).hosts, maxRules))
    const secured = new Set(tls.map(each => textOf(each, 253)))
    const targets: Labels[] = []
    for (const rule of listOf(spec.rules, maxRules)) {
      const { host: written, http } = objectOf(rule)
      const host = textOf(written, 253)
      const scheme = isSecured(secured, host) ? 'https' : 'http'
      for (const path of pathsOf(http)) {
        const target = new Map(host === '' ? [] : [['__address__', host]])
        meta.set(target, 'ingress_scheme', scheme)
        meta.set(target, 'ingress_host', host)
        meta.set(target, 'ingress_path', path)
        targets.push(target)
      }
    }
    const group = { source: `ingress/${named.key}`, targets, labels }
    return { key: named.key, refs: [], group: () => group }
  },
}

function pathsOf(http: unknown): readonly string[] {
  const paths = listOf(objectOf(http).paths, maxRules).map(each => textOf(objectOf(each).path, 4096) || '/')
  return paths.length === 0 ? ['/'] : paths
}

/**
 * Whether a host matches one of the certificates' names, in which `*` stands for the first label (RFC 6125, section
 * 6.4.3).
 */
function isSecured(secured: ReadonlySet<string>, host: string): boolean {
  const dot = host.indexOf('.')
  return secured.has(host) || (dot >= 0 && secured.has(`*${host.slice(dot)}`))
}
