import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { bareHost } from '../../../foundation/lib/host-port.ts'
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../foundation/lib/json-fields.ts'
import { readSmallFile } from '../../../foundation/lib/small-file.ts'
import { AccessError, type ClusterAccess, type Material } from './access.ts'

const maxBytes = 1024 * 1024
const usualKey = 'agent.discovery.kubernetes.kubeconfig'
/** Unsupported ways to authenticate: those that run a program, and impersonation. */
const refused: Readonly<Record<string, string>> = {
  exec: 'gets its credentials from a program, and svc runs no other programs',
  'auth-provider': 'gets its credentials from a kubectl plugin, which svc does not support',
  as: 'impersonates another user',
}

/**
 * Reads the current context of a kubeconfig (kubernetes.io, "kubeconfig (v1)"). `key` is its configuration key. Rejects
 * with an `AccessError`.
 */
export async function readKubeconfig(path: string, key = usualKey): Promise<ClusterAccess> {
  let text: string
  try {
    text = (await readSmallFile(path, maxBytes)).toString('utf8')
  } catch (error) {
    throw new AccessError(
      `cannot read the kubeconfig ${path}: ${(error as Error).message}`,
      `make ${path} readable for svc, or correct ${key}`,
      error,
    )
  }
  return parseKubeconfig(text, path, key)
}

/** Throws an `AccessError`. Relative paths start at the directory of the file. */
export function parseKubeconfig(text: string, path: string, key = usualKey): ClusterAccess {
  const fail = (fault: string, hint = `correct ${path}`): never => {
    throw new AccessError(`cannot use the kubeconfig ${path}: ${fault}`, hint)
  }
  const document = text.length > maxBytes ? undefined : parseYaml(text)
  if (document === undefined) return fail('it is not YAML, or too large')
  const current = textOf(document['current-context'])
  if (current === '') return fail('current-context is missing', `kubectl config use-context NAME`)
  const context = named(document.contexts, current, 'context')
  if (context === undefined) return fail(`it has no context "${current}"`)
  const clusterName = textOf(context.cluster)
  const cluster = named(document.clusters, clusterName, 'cluster')
  if (cluster === undefined) return fail(`it has no cluster "${clusterName}"`)
  const userName = textOf(context.user)
  const user = named(document.users, userName, 'user') ?? (userName === '' ? {} : undefined)
  if (user === undefined) return fail(`it has no user "${userName}"`)
  for (const [way, why] of Object.entries(refused))
    if (user[way] !== undefined)
      return fail(
        `the user "${userName}" ${why}`,
        `set ${key} to a file whose user has a service account token or a client certificate`,
      )
  if (textOf(cluster['proxy-url']) !== '')
    return fail(
      `the cluster "${clusterName}" is behind a proxy`,
      'remove proxy-url, or run svc in the cluster',
    )
  const server = serverOf(cluster.server)
  if (server === undefined) return fail(`the server of the cluster "${clusterName}" is not a URL`)
  const material = (part: JsonObject, name: string) => materialOf(part, name, dirname(path))
  const access: ClusterAccess = {
    kubeconfig: path,
    ...server,
    serverName: textOf(cluster['tls-server-name']),
    insecureSkipVerify: cluster['insecure-skip-tls-verify'] === true,
    ca: material(cluster, 'certificate-authority'),
    certificate: material(user, 'client-certificate'),
    key: material(user, 'client-key'),
    token: tokenOf(user, dirname(path)),
    basic: textOf(user.username) === '' ? '' : `${textOf(user.username)}:${textOf(user.password)}`,
    cluster: clusterName,
    namespace: textOf(context.namespace, 253),
  }
  const hasSecret = access.token !== undefined || access.basic !== ''
  if (!access.secure && hasSecret && !isLoopback(access.host))
    return fail(
      `the credentials of user "${userName}" would go to ${access.host} in clear text`,
      `use https:// in the server of the cluster "${clusterName}"`,
    )
  return access
}

function parseYaml(text: string): JsonObject | undefined {
  try {
    const document: unknown = parse(text, { logLevel: 'error', stringKeys: true })
    return isObject(document) ? document : undefined
  } catch {
    // The error may quote a password.
    return undefined
  }
}

/** The entry of that name in a list of `{name, [what]: {…}}`. */
function named(entries: unknown, name: string, what: string): JsonObject | undefined {
  const entry = listOf(entries, 10_000).find(each => objectOf(each).name === name)
  return entry === undefined ? undefined : objectOf(objectOf(entry)[what])
}

function serverOf(value: unknown): Pick<ClusterAccess, 'host' | 'port' | 'secure' | 'basePath'> | undefined {
  const text = textOf(value)
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const secure = url.protocol === 'https:'
  return {
    host: bareHost(url.hostname),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    secure,
    basePath: url.pathname.replace(/\/$/, ''),
  }
}

/** Inline base64 data overrides a file. */
function materialOf(part: JsonObject, name: string, directory: string): Material | undefined {
  const data = textOf(part[`${name}-data`], maxBytes)
  if (data !== '') return { text: Buffer.from(data, 'base64').toString('utf8') }
  const file = textOf(part[name], 4096)
  return file === '' ? undefined : { file: resolve(directory, file) }
}

/** A file overrides an inline token, as in client-go. */
function tokenOf(user: JsonObject, directory: string): Material | undefined {
  const file = textOf(user.tokenFile, 4096)
  if (file !== '') return { file: resolve(directory, file) }
  const text = textOf(user.token, 64 * 1024)
  return text === '' ? undefined : { text }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
