import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** How svc was installed on this host, which selects the hints. `host`: started manually, or by an unknown program. */
export type Install = 'systemd' | 'container' | 'kubernetes' | 'host'

const serviceAccount = 'var/run/secrets/kubernetes.io/serviceaccount'
const containerMarks = ['.dockerenv', 'run/.containerenv']
const units = ['etc', 'usr/lib', 'lib'].map(directory => `${directory}/systemd/system/svc.service`)

/** Determined from the environment and the files below `root`. In a pod, the container is part of the pod. */
export function installOf(env: NodeJS.ProcessEnv = process.env, root = '/'): Install {
  const has = (path: string) => existsSync(join(root, path))
  if (env.KUBERNETES_SERVICE_HOST || has(serviceAccount)) return 'kubernetes'
  // systemd-nspawn and Podman set `container`; without either file only the cgroup's path remains.
  if (env.container || containerMarks.some(has) || inContainerCgroup(join(root, 'proc/self/cgroup')))
    return 'container'
  return env.INVOCATION_ID || units.some(has) ? 'systemd' : 'host'
}

function inContainerCgroup(path: string): boolean {
  try {
    return /\/(docker|libpod|lxc|kubepods|cri-containerd|crio)(\/|-|\.slice)/.test(
      readFileSync(path, 'latin1').slice(0, 16_384),
    )
  } catch {
    return false // no /proc: no evidence of a container
  }
}
