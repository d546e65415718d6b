/** A text, or a file that is read again as it may be renewed. */
export type Material = { readonly text: string } | { readonly file: string }

/** Address of the API server, and our credentials. */
export interface ClusterAccess {
  /** Path of the kubeconfig; '' for the service account of our own pod. */
  readonly kubeconfig: string
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** Prefix of every path, without a slash at the end. */
  readonly basePath: string
  /** Name in the certificate; '' for the host. */
  readonly serverName: string
  readonly insecureSkipVerify: boolean
  /** Certificate authority; undefined for the roots of the runtime. */
  readonly ca: Material | undefined
  readonly certificate: Material | undefined
  readonly key: Material | undefined
  readonly token: Material | undefined
  /** `user:password`; '' for none. */
  readonly basic: string
  /** `k8s.cluster.name`; '' if unknown. */
  readonly cluster: string
  readonly namespace: string
}

/** No access to the cluster: the reason, and a hint; '' if no action is needed. */
export class AccessError extends Error {
  override readonly name = 'AccessError'
  readonly hint: string

  constructor(reason: string, hint: string, cause?: unknown) {
    super(reason, { cause })
    this.hint = hint
  }
}
