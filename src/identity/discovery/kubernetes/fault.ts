import { AccessError } from './access.ts'
import { ApiError } from './api-client.ts'
import { FormatError } from './list-reader.ts'

/** Reason why something is unknown, and a hint. */
export interface Fault {
  readonly reason: string
  readonly hint: string
  /** Wait requested by the server, in milliseconds; 0 for none. */
  readonly retryAfterMs: number
  /** The server answered, but the answer cannot be used. */
  readonly isAnswer: boolean
}

/** A request to the API server. */
export interface Question {
  readonly place: string
  /** Verb and resource as in RBAC: `list` and `pods`. */
  readonly verb: 'get' | 'list' | 'watch'
  readonly resource: string
  /** '' for all namespaces. */
  readonly namespace: string
}

/** Reason and hint for an error of a request. */
export function explain(error: unknown, question: Question): Fault {
  const { place, verb, resource } = question
  const cannot = `cannot ${verb} ${resource} at ${place}`
  if (error instanceof AccessError)
    return { reason: error.message, hint: error.hint, retryAfterMs: 0, isAnswer: false }
  if (error instanceof FormatError)
    return {
      reason: `${cannot}: ${error.message}`,
      hint: 'check that this address is the API server itself, not a proxy in front of it',
      retryAfterMs: 0,
      isAnswer: true,
    }
  if (error instanceof ApiError && error.status !== 0 && error.status !== 200) return refusal(error, question)
  const { message, cause } = error as Error
  const isUnread = error instanceof ApiError && error.status === 200
  const isTls = tlsCodes.test(String((cause as NodeJS.ErrnoException | undefined)?.code))
  return {
    // Without the resource: an unreachable server is a single fault.
    reason: isUnread ? `${cannot}: ${message}` : `cannot reach the API server ${place}: ${message}`,
    hint: isTls
      ? 'check that certificate-authority and server of the kubeconfig (in a pod: its ca.crt) belong to this cluster'
      : 'check that the API server runs and that this host can reach it',
    retryAfterMs: 0,
    isAnswer: false,
  }
}

const tlsCodes = /^ERR_(TLS|O?SSL)_|CERT|ISSUER|SIGNATURE/

function refusal({ status, retryAfterMs, user }: ApiError, question: Question): Fault {
  const { place, verb, resource, namespace } = question
  const whole = { retryAfterMs, isAnswer: status < 500 && status !== 401 && status !== 403 && status !== 429 }
  if (status === 401)
    return {
      reason: `the API server ${place} rejected our credentials (401)`,
      hint: 'renew the token or certificate of the account',
      ...whole,
    }
  if (status === 403) {
    const where = namespace === '' ? '' : ` in the namespace ${namespace}`
    const role = namespace === '' ? 'ClusterRole' : 'Role'
    const verbs = verb === 'get' ? 'get' : 'get, list and watch'
    return {
      reason: `${user || 'the service account'} is not allowed to ${verb} ${resource}${where} (403)`,
      hint: `grant it ${verbs} on ${resource}${where} by a ${role}`,
      ...whole,
    }
  }
  if (status === 429 || status === 503)
    return {
      reason: `the API server ${place} is too busy (${status})`,
      hint: 'no action needed; svc retries',
      ...whole,
    }
  return {
    reason: `cannot ${verb} ${resource} at ${place}: HTTP ${status}`,
    hint: 'check that this address is the API server itself, and read its log',
    ...whole,
  }
}
