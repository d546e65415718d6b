/** It stands there, or in a file that is read again and again because it is renewed. */
export type Material = { readonly text: string } | { readonly file: string }

/** How the API server is reached, and who we are to it. */
export interface ClusterAccess {
  /** '' for the account of our own pod, else where it is written. */
  readonly kubeconfig: string
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** Before every path; without a slash at its end. */
  readonly basePath: string
  /** '': the host. */
  readonly serverName: string
  readonly insecureSkipVerify: boolean
  /** Undefined: the roots that the runtime brings. */
  readonly ca: Material | undefined
  readonly certificate: Material | undefined
  readonly key: Material | undefined
  readonly token: Material | undefined
  /** `user:password`; '' for none. */
  readonly basic: string
  /** `k8s.cluster.name`; '' where nobody says. */
  readonly cluster: string
  readonly namespace: string
}

/** Why the cluster cannot be asked, and what to do about it; '' where nothing is to be done. */
export class AccessError extends Error {
  override readonly name = 'AccessError'
  readonly hint: string

  constructor(reason: string, hint: string, cause?: unknown) {
    super(reason, { cause })
    this.hint = hint
  }
}
