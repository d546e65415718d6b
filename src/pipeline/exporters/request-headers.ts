/** Headers as sent, names in lower case, with the user agent of the OTLP specification. Throws for invalid headers. */
export function requestHeaders(
  headers: Readonly<Record<string, string>>,
  version: string,
  protocol: 'gRPC' | 'HTTP',
): Record<string, string> {
  const made: Record<string, string> = {
    'user-agent': `svc/${version} OTel-OTLP-Exporter-TypeScript/${version}`,
  }
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase()
    const { form, allowed, reserved } = rules[protocol]
    // The value may be a secret, so no message shows it.
    if (!form.test(key))
      throw new Error(`cannot send the OTLP header "${name}": ${protocol} allows ${allowed} in a name`)
    if (reserved.test(key))
      throw new Error(
        `cannot send the OTLP header "${name}": the protocol sets it; remove it from otlp.headers`,
      )
    if (protocol === 'gRPC' && key.endsWith('-bin')) made[key] = Buffer.from(value, 'utf8').toString('base64')
    else if (/^[\x20-\x7e]*$/.test(value)) made[key] = value.trim()
    else
      throw new Error(`cannot send the OTLP header "${name}": its value must be printable ASCII on one line`)
  }
  return made
}

/** Valid names (gRPC over HTTP/2, "Requests"; RFC 9110, section 5.6.2), and names reserved for the protocol. */
const rules = {
  gRPC: {
    form: /^[0-9a-z_.-]+$/,
    allowed: 'letters, digits and _ . -',
    reserved: /^(:|grpc-)|^(connection|content-length|content-type|host|te|transfer-encoding|user-agent)$/,
  },
  HTTP: {
    form: /^[!#$%&'*+.^_`|~0-9a-z-]+$/,
    allowed: "letters, digits and ! # $ % & ' * + - . ^ _ ` | ~",
    reserved:
      /^(accept-encoding|connection|content-encoding|content-length|content-type|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent)$/,
  },
} as const
