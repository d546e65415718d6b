import { readSmallFile } from '../../../foundation/lib/small-file.ts'
import { AccessError, type ClusterAccess, type Material } from './access.ts'
import { readKubeconfig } from './kubeconfig.ts'

const maxFileBytes = 1024 * 1024

/** PEM texts and a header value, each '' if missing. */
export interface Identity {
  readonly authorization: string
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

/** Credentials for the API server. Files are read again when they may have been renewed. */
export class Credentials {
  #access: ClusterAccess
  readonly #maxAgeMs: number
  #known: Identity | undefined
  #readAtMs = 0

  constructor(access: ClusterAccess, maxAgeMs: number) {
    this.#access = access
    this.#maxAgeMs = maxAgeMs
  }

  /** The next `load` reads all files. */
  forget(): void {
    this.#known = undefined
  }

  /** Rejects with an `AccessError`. */
  async load(): Promise<Identity> {
    const now = performance.now()
    if (this.#known !== undefined && now - this.#readAtMs < this.#maxAgeMs) return this.#known
    this.#access = await renewed(this.#access)
    const { ca, certificate, key, token, basic } = this.#access
    const read = (material: Material | undefined, what: string) => this.#read(material, what)
    const secret = (await read(token, 'token')).trim()
    const identity = {
      authorization: authorizationOf(secret, basic),
      ca: await read(ca, 'authority'),
      certificate: await read(certificate, 'certificate'),
      key: await read(key, 'key'),
    }
    this.#known = identity
    this.#readAtMs = now
    return identity
  }

  async #read(material: Material | undefined, what: string): Promise<string> {
    if (material === undefined) return ''
    if ('text' in material) return material.text
    const { file } = material
    const inPod = this.#access.kubeconfig === ''
    const hint = inPod
      ? 'set automountServiceAccountToken: true in the pod of svc'
      : `make ${file} readable for svc, or correct ${this.#access.kubeconfig}`
    let text: string
    try {
      text = (await readSmallFile(file, maxFileBytes)).toString('utf8')
    } catch (error) {
      throw new AccessError(`cannot read the ${what} ${file}: ${(error as Error).message}`, hint, error)
    }
    if (text.trim() === '') throw new AccessError(`the ${what} ${file} is empty`, hint)
    return text
  }
}

/** Current content of the kubeconfig. Credentials for another server are not sent to this one. */
async function renewed(access: ClusterAccess): Promise<ClusterAccess> {
  if (access.kubeconfig === '') return access
  try {
    const read = await readKubeconfig(access.kubeconfig)
    const serverOf = ({ host, port, secure, basePath }: ClusterAccess) =>
      [secure, host, port, basePath].join()
    return serverOf(read) === serverOf(access) ? read : access
  } catch {
    return access // The file is being written, or is gone: the previous content is still good.
  }
}

function authorizationOf(token: string, basic: string): string {
  // Other characters could end the header.
  if (token !== '') return /^[\x21-\x7e]+$/.test(token) ? `Bearer ${token}` : ''
  return basic === '' ? '' : `Basic ${Buffer.from(basic).toString('base64')}`
}
