import { type JsonObject, listOf, parseObject, textOf } from '../../foundation/lib/json-fields.ts'
import type { Container } from '../../foundation/model/entity.ts'
import { imageId, imageName, labelsOf } from './_docker-container.ts'

// Reads `annotations` in a bundle's config.json, as written by runtimes (OCI runtime specification 1.0, config.md).

/**
 * Container of the CRI plugin of containerd (containerd, pkg/cri/annotations), or of nerdctl. `pid` as in `Container`.
 */
export function containerdContainer(id: string, annotations: JsonObject, pid: number): Container {
  const of = (key: string) => textOf(annotations[`io.kubernetes.cri.${key}`])
  const name = of('container-name')
  // The labels that the kubelet sets; no file contains the labels themselves.
  const labels = {
    'io.kubernetes.pod.name': of('sandbox-name'),
    'io.kubernetes.pod.namespace': of('sandbox-namespace'),
    'io.kubernetes.container.name': name,
  }
  return {
    ...unnamed,
    id,
    runtime: 'containerd',
    name: name || textOf(annotations['nerdctl/name']),
    image: imageName(of('image-name')),
    labels: new Map(Object.entries(labels).filter(([, label]) => label !== '')),
    podUid: of('sandbox-uid'),
    podContainer: name,
    pid,
  }
}

/** Container of CRI-O (cri-o, pkg/annotations). The kubelet's labels are in one JSON text. */
export function crioContainer(id: string, annotations: JsonObject): Container {
  const of = (key: string) => textOf(annotations[`io.kubernetes.cri-o.${key}`])
  const labels = labelsOf(objectIn(annotations['io.kubernetes.cri-o.Labels']))
  const kubernetes = (key: string) => textOf(annotations[key]) || (labels.get(key) ?? '')
  const logPath = textOf(annotations['io.kubernetes.cri-o.LogPath'], maxPathChars)
  return {
    ...unnamed,
    id,
    runtime: 'cri-o',
    name: of('Name'),
    image: imageName(of('ImageName')) || imageName(of('Image')),
    imageId: imageId(of('ImageRef')),
    labels,
    podUid: kubernetes('io.kubernetes.pod.uid'),
    // A pod's sandbox container has no name in the pod.
    podContainer: of('ContainerType') === 'sandbox' ? '' : kubernetes('io.kubernetes.container.name'),
    logPath: logPath.startsWith('/') ? logPath : '',
  }
}

/** Container of Podman, whose annotations have no names: those are in the list of its storage. */
export function podmanContainer(id: string, listed: JsonObject | undefined, logPath: string): Container {
  const metadata = objectIn(listed?.metadata)
  return {
    ...unnamed,
    id,
    runtime: 'podman',
    // The metadata contain the first name, from before a rename.
    name: textOf(listOf(listed?.names)[0]),
    image: imageName(metadata?.['image-name']),
    imageId: imageId(listed?.image),
    logPath,
  }
}

/** An object encoded as a string within JSON. */
function objectIn(text: unknown): JsonObject | undefined {
  return parseObject(Buffer.from(textOf(text, maxNestedChars)))
}

const maxNestedChars = 256 * 1024
/** Linux, limits.h, PATH_MAX. */
const maxPathChars = 4096

const unnamed = {
  name: '',
  image: '',
  imageId: '',
  labels: new Map<string, string>(),
  state: '',
  health: '',
  pid: 0,
  podUid: '',
  podContainer: '',
  logPath: '',
}
