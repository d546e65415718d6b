import { join } from 'node:path'
import { textOf } from '../../../foundation/lib/json-fields.ts'
import { readSmallFile } from '../../../foundation/lib/small-file.ts'
import { AccessError, type ClusterAccess } from './access.ts'
import { readKubeconfig } from './kubeconfig.ts'

/** Service account directory of a pod (Kubernetes, "Accessing the Kubernetes API from a Pod"). */
export const serviceAccountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface AccessOptions {
  /** Path of a kubeconfig; '' for the service account of our own pod. */
  readonly kubeconfig: string
  readonly environment: NodeJS.ProcessEnv
  readonly serviceAccountDirectory: string
  /** Configuration key of the kubeconfig, for hints. */
  readonly key?: string
}

/** Rejects with an `AccessError`; it has no hint if there is no cluster. */
export async function findAccess(options: AccessOptions): Promise<ClusterAccess> {
  return options.kubeconfig === ''
    ? await ofPod(options)
    : await readKubeconfig(options.kubeconfig, options.key)
}

async function ofPod({
  environment,
  serviceAccountDirectory: directory,
}: AccessOptions): Promise<ClusterAccess> {
  const host = environment.KUBERNETES_SERVICE_HOST ?? ''
  const port = Number(environment.KUBERNETES_SERVICE_PORT_HTTPS || environment.KUBERNETES_SERVICE_PORT || 443)
  if (host === '')
    throw new AccessError(
      'not in a pod (KUBERNETES_SERVICE_HOST is not set), and no kubeconfig is configured',
      '',
    )
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new AccessError(
      'KUBERNETES_SERVICE_PORT is not a port',
      'leave KUBERNETES_SERVICE_PORT as Kubernetes sets it',
    )
  const namespace = await readSmallFile(join(directory, 'namespace'), 4_096).catch(() => '')
  return {
    kubeconfig: '',
    host,
    port,
    secure: true,
    basePath: '',
    serverName: '',
    insecureSkipVerify: false,
    ca: { file: join(directory, 'ca.crt') },
    certificate: undefined,
    key: undefined,
    token: { file: join(directory, 'token') },
    basic: '',
    cluster: '',
    namespace: textOf(namespace.toString().trim(), 253),
  }
}
