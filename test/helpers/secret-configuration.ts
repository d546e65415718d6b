/** Ways in which a secret comes into a configuration. */
export const secretKinds = [
  'bearer-token',
  'bearer-tokens',
  'otlp-headers',
  'signal-headers',
  'secret-file',
  'secret-file-in-plain-key',
  'variable-in-secret-key',
  'variable-of-key',
  'otel-variable',
  'scrape-password',
  'scrape-token',
  'scrape-headers',
  'transform-salt',
] as const
export type SecretKind = (typeof secretKinds)[number]

/** References such as `${VAR}` are of the configuration's language. */
const reference = (to: string) => `\${${to}}`

/**
 * Branches of a configuration that hold a secret of each kind that stands in the file. The files `key` and `plain` of
 * `directory` and the variable `VARIABLE` hold those that are referred to.
 */
export function secretBranches(secretOf: (kind: SecretKind) => string, directory: string) {
  const salt = secretOf('transform-salt')
  return {
    resource: { attributes: { note: reference(`file:${directory}/plain`) } },
    otlp: {
      headers: {
        authorization: `Bearer ${secretOf('otlp-headers')}`,
        'x-file': reference(`file:${directory}/key`),
      },
      metrics: { headers: { 'x-key': secretOf('signal-headers') } },
      logs: { headers: { 'x-key': reference('VARIABLE') } },
    },
    auth: { enabled: true, bearer_token: secretOf('bearer-token') },
    pipeline: {
      transform: {
        rules: [
          { name: 'salted', actions: [{ type: 'hash_attribute', hash_attribute: { key: 'a', salt } }] },
        ],
      },
    },
    targets: [
      {
        name: 'a',
        address: '127.0.0.1:2',
        headers: { 'x-key': secretOf('scrape-headers') },
        basic_auth: { username: 'u', password: secretOf('scrape-password') },
      },
      { name: 'b', address: '127.0.0.1:3', bearer_token: secretOf('scrape-token') },
    ],
  }
}

/** The variables that hold the others. */
export function secretVariables(secretOf: (kind: SecretKind) => string): Record<string, string> {
  return {
    VARIABLE: secretOf('variable-in-secret-key'),
    SVC_SELF_TELEMETRY_AUTH_BEARER_TOKENS: `${secretOf('variable-of-key')},${secretOf('bearer-tokens')}`,
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: `x-key=${encodeURIComponent(secretOf('otel-variable'))}`,
  }
}
