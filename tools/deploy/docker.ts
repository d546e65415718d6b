// Docker and Compose files to run svc, and a Dockerfile to build it.
import { stringify } from 'yaml'
import { status } from '../../src/program/cli/status.ts'
import type { Generated } from '../generated.ts'
import { start } from '../package/image.ts'
import { options } from './docker-options.ts'

/** The command, in lines of at most 100 characters. */
export function dockerRun(): string {
  const words = options().map(([name, value]) => (value === '' ? `--${name}` : `--${name} ${value}`))
  const lines = ['docker run --detach --name svc']
  for (const word of [...words, 'svc']) {
    const line = `${lines.at(-1)} ${word}`
    if (line.length <= 98) lines[lines.length - 1] = line
    else lines.push(`  ${word}`)
  }
  return lines.join(' \\\n')
}

function compose(): string {
  const values = (wanted: string) => options().flatMap(([name, value]) => (name === wanted ? [value] : []))
  const one = (name: string) => values(name)[0]
  const volumes = values('volume')
  const named = volumes.map(each => each.split(':')[0]!).filter(name => !name.startsWith('/'))
  const service = {
    image: 'svc',
    restart: one('restart'),
    stop_grace_period: `${one('stop-timeout')}s`,
    read_only: true,
    pid: one('pid'),
    network_mode: one('network'),
    cgroup: one('cgroupns'),
    mem_limit: one('memory'),
    cap_drop: values('cap-drop'),
    cap_add: values('cap-add'),
    security_opt: values('security-opt'),
    tmpfs: values('tmpfs'),
    volumes,
    environment: values('env'),
    healthcheck: { test: ['CMD', 'svc', status.name], interval: '1m', timeout: '10s', start_period: '30s' },
  }
  const text = stringify({ services: { svc: service }, volumes: Object.fromEntries(named.map(n => [n, {}])) })
  return `# Written by tools/gen-deploy.ts. docs/docker.md explains each line.\n${text}`
}

/** `npm run package` builds the image archive; this Dockerfile builds the same image from its layers. */
function dockerfile(): string {
  const { User, Env, Entrypoint, Cmd } = start
  return `# Written by tools/gen-deploy.ts. Builds the image from the sources, in the root of the repository:
#   docker build --file deploy/docker/Dockerfile --tag svc .
FROM debian:12 AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates git npm python3
WORKDIR /src
COPY . .
RUN npm run package
RUN mkdir /layout /image && tar -x -C /layout -f build/package/svc-*-oci.tar && \\
  for layer in $(python3 -c 'import json; print(*json.load(open("/layout/manifest.json"))[0]["Layers"])'); do \\
  tar -x -z -C /image -f "/layout/$layer"; done

FROM scratch
COPY --from=build /image/ /
USER ${User}
${Env.map(each => `ENV ${each}`).join('\n')}
ENTRYPOINT ${JSON.stringify(Entrypoint)}
CMD ${JSON.stringify(Cmd)}
`
}

const ignored = ['# A build creates these itself.', 'build', 'dist', 'node_modules']

const directory = 'deploy/docker'
export const dockerFiles: readonly Generated[] = [
  { file: `${directory}/compose.yaml`, text: compose },
  { file: `${directory}/Dockerfile`, text: dockerfile },
  { file: `${directory}/Dockerfile.dockerignore`, text: () => `${ignored.join('\n')}\n` },
]
