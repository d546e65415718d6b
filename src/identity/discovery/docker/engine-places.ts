import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TlsOptions } from '../../../foundation/lib/dialer.ts'
import {
  type DockerAddress,
  parseDockerAddress,
  shownDockerAddress,
} from '../../../foundation/lib/docker-address.ts'
import { hostPort } from '../../../foundation/lib/host-port.ts'
import { realPath } from '../../../foundation/lib/optional-files.ts'
import type { FoundPlaces } from '../_runtime-source.ts'
import { socketExists } from '../_socket.ts'
import type { EnginePlace } from './engine-client.ts'

/** Sockets of Docker and Podman (dockerd(8), podman-system-service(1)), in the order of attempts. */
const usual = ['/run/docker.sock', '/var/run/docker.sock', '/run/podman/podman.sock']
const endpointKey = 'agent.discovery.docker.endpoint'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Addresses that exist now. `endpoint` is an address in the form of the Docker client; '' for that of
 * `$DOCKER_HOST` and the usual sockets below `rootfs`.
 */
export function findEngines(
  endpoint: string,
  rootfs: string,
  env: Environment = process.env,
): FoundPlaces<EnginePlace> {
  if (endpoint !== '') return named(endpoint, endpointKey, env)
  const { DOCKER_HOST: dockerHost = '' } = env
  const meant = dockerHost === '' ? nothing : named(dockerHost, 'DOCKER_HOST', env)
  const seen = new Set(meant.places.map(({ socketPath }) => realPath(socketPath, socketPath)))
  const places = [...meant.places]
  for (const path of usual.map(each => join(rootfs, each))) {
    // `/var/run` is a link to `/run` nearly everywhere.
    const real = realPath(path, path)
    if (!seen.has(real) && socketExists(path)) places.push(socket(path))
    seen.add(real)
  }
  if (meant.hint !== '' || places.length > 0) return { ...meant, places }
  return { places, reason: 'no Docker or Podman socket found', hint: '' }
}

const nothing: FoundPlaces<EnginePlace> = { places: [], reason: '', hint: '' }

/** A configured address. */
function named(written: string, key: string, env: Environment): FoundPlaces<EnginePlace> {
  const address = parseDockerAddress(written)
  const shown = shownDockerAddress(written)
  if ('instead' in address) {
    const { reason, instead } = address
    return { places: [], reason: `${key} is ${shown}: ${reason}`, hint: `set ${key} to ${instead}` }
  }
  const place = { ...enginePlace(address, env), isMeant: true }
  if (place.socketPath === '' || socketExists(place.socketPath))
    return { places: [place], reason: '', hint: '' }
  return {
    places: [],
    reason: `socket ${place.socketPath} from ${key} not found`,
    hint: `start Docker or Podman, or correct ${key}`,
  }
}

/** Connection settings of an address, with the TLS variables of the Docker client (docker(1), "ENVIRONMENT"). */
export function enginePlace(address: DockerAddress, env: Environment): EnginePlace {
  if ('path' in address) return socket(address.path)
  const { host, scheme } = address
  const tls = dockerTls(env, scheme === 'https')
  const usualPort = scheme === 'tcp' ? [2375, 2376] : [80, 443]
  const port = address.port || usualPort[tls === undefined ? 0 : 1]!
  const name = `${tls === undefined ? 'http' : 'https'}://${hostPort(host, port)}`
  return { name, host, port, socketPath: '', tls, isMeant: false }
}

function socket(path: string): EnginePlace {
  return { name: path, host: 'docker', port: 80, socketPath: path, tls: undefined, isMeant: false }
}

/**
 * TLS settings; any value of DOCKER_TLS_VERIFY or DOCKER_TLS enables TLS, as in the Docker client. Undefined: no TLS.
 */
function dockerTls(env: Environment, isHttps: boolean): TlsOptions | undefined {
  const {
    DOCKER_TLS_VERIFY = '',
    DOCKER_TLS = '',
    DOCKER_CERT_PATH = '',
    DOCKER_CONFIG = '',
    HOME = '',
  } = env
  if (!isHttps && DOCKER_TLS_VERIFY === '' && DOCKER_TLS === '') return undefined
  const directory = DOCKER_CERT_PATH || DOCKER_CONFIG || (HOME && join(HOME, '.docker'))
  const file = (name: string) => (directory === '' ? '' : join(directory, name))
  const ifThere = (path: string) => (path !== '' && existsSync(path) ? path : '')
  return {
    // With DOCKER_CERT_PATH, ca.pem must exist; otherwise the roots of the runtime apply without it.
    caFile: DOCKER_CERT_PATH === '' ? ifThere(file('ca.pem')) : file('ca.pem'),
    certFile: ifThere(file('cert.pem')),
    keyFile: ifThere(file('key.pem')),
    serverName: '',
    insecureSkipVerify: DOCKER_TLS_VERIFY === '' && DOCKER_TLS !== '',
  }
}
