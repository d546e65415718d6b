import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** How svc came onto this host, which decides where a hint goes. `host`: started by hand, or by something unknown. */
export type Install = 'systemd' | 'container' | 'kubernetes' | 'host'

const serviceAccount = 'var/run/secrets/kubernetes.io/serviceaccount'
const containerMarks = ['.dockerenv', 'run/.containerenv']
const units = ['etc', 'usr/lib', 'lib'].map(directory => `${directory}/systemd/system/svc.service`)

/** What the environment and the files below `root` say. In a pod the container around it is the pod's business. */
export function installOf(env: NodeJS.ProcessEnv = process.env, root = '/'): Install {
  const has = (path: string) => existsSync(join(root, path))
  if (env.KUBERNETES_SERVICE_HOST || has(serviceAccount)) return 'kubernetes'
  // systemd-nspawn and Podman set `container`; the cgroup's path is left where neither file is.
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
    return false // no /proc: nothing says that this is one
  }
}
