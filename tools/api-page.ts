// The reference page of the management API, from the operations that serve it.

import { profileKinds } from '../src/foundation/runtime/runtime-profiler.ts'
import { subsystems } from '../src/program/subsystems/index.ts'
import { operations } from '../src/view/api/routes.ts'
import type { AgentView } from '../src/view/api/types.ts'

const intro = `# Management API

Generated from the operations in \`src/view/api/routes.ts\` by \`tools/gen-docs.ts\`; do not edit.

The agent serves it at \`self_telemetry.listen\` (default \`:19090\`), and locally on the Unix socket
\`self_telemetry.admin_socket\`, which needs no token: \`curl --unix-socket /run/svc/svc.sock http://svc/status\`.
Responses are JSON unless noted otherwise. \`/openapi.json\` is the machine-readable description: OpenAPI 3.1 with all
fields of all documents.

- **Token**: with \`self_telemetry.auth.enabled\`, all paths except probes and \`auth.exempt\` need
  \`Authorization: Bearer TOKEN\`. Several tokens can be valid at the same time, for rotation without downtime.
- **Private paths**: without a configured token, paths that are not public accept only root and the user of svc on a
  loopback address (the kernel identifies the user of the connection), users who may open the admin socket, and browsers
  that used the link from \`svc ui\`. Others get 401. \`self_telemetry.admin.allow_remote\` lifts this for other hosts.
- **Public documents** omit file paths of other programs and messages of receivers.
- **Names**: the \`Host\` of a request must be an address, \`localhost\`, a name of this host, or one of
  \`self_telemetry.allowed_hosts\`, and requests from web pages of other origins are rejected; otherwise the status is 403.
  Probes accept any name, and so do requests with a token.
- **Debug**: \`/debug/*\` exists while \`self_telemetry.debug\` is true or \`log_level\` is \`debug\`. Only then \`svc\` profiles
  itself.
- **Errors**: on every path, for every status, \`{"error": CODE, "message": SENTENCE, "details": {}}\`.
- **The live page** is at \`/ui\`; its files contain no data and need no token. Its data, \`/ui/api/*\`, is NDJSON if
  \`follow=1\` keeps the response open: at most 32 at the same time.
- **HEAD** responds like GET without a body, **OPTIONS** lists the methods.
- **Limits**: 256 connections, 16 KiB of headers, 8 KiB of URL, 64 KiB of body, 30 s for a request;
  \`self_telemetry.rate_limit\` limits requests per client, an address or a user of this host (429 with \`Retry-After\`),
  except probes.
- **TLS**: \`self_telemetry.tls\`; with \`client_ca_file\` every client needs a certificate, including probes.
  A reload reads the certificates again.

Access: *anyone*; *token*: anyone, and with \`auth.enabled\` only clients with the token; *own*: private paths as above,
and with \`auth.enabled\` clients with the token and browsers that used the link; *debug*: only in debug mode.
`

/** The page, in Markdown. */
export function apiPage(): string {
  // Sends no requests: the operations are only listed.
  const pages = subsystems.flatMap(subsystem => subsystem.pages ?? [])
  const view = {
    profiles: profileKinds,
    pages,
    ui: {},
    browsers: {},
    pageDirectory: '',
  } as unknown as AgentView
  const listed = operations(view, '/metrics').filter(({ isFile }) => !isFile)
  const rows = listed.map(({ method, path, summary, access, parameters, outcomes, debug }) => {
    const query = (parameters ?? []).map(parameter => {
      const { name, fallback } = parameter
      if ('minimum' in parameter)
        return `\`${name}\` ${parameter.minimum}..${parameter.maximum}, default ${fallback}`
      const values = parameter.values?.map(value => `\`${value}\``).join(', ') ?? 'text'
      return `\`${name}\` ${values}${fallback === '' ? '' : `, default \`${fallback}\``}`
    })
    const who = debug ? 'debug, own' : { open: 'anyone', public: 'token', private: 'own' }[access]
    const own = Object.keys(outcomes).join(', ')
    return `| ${method} | \`${path}\` | ${summary}${query.length > 0 ? ` Query: ${query.join('; ')}.` : ''} | ${who} | ${own} |`
  })
  return `${intro}
| method | path | response | access | additional statuses |
|---|---|---|---|---|
${rows.join('\n')}

## Examples

\`\`\`sh
curl -s http://127.0.0.1:19090/status
curl -s -X POST http://127.0.0.1:19090/admin/reload
curl -s -X POST http://127.0.0.1:19090/admin/flush
curl -s 'http://127.0.0.1:19090/debug/pprof/goroutine?debug=2'             # with self_telemetry.debug: true
curl -so trace.json 'http://127.0.0.1:19090/debug/pprof/trace?seconds=2'   # for https://ui.perfetto.dev
\`\`\`

\`\`\`sh not-run: needs Go
go tool pprof -top 'http://127.0.0.1:19090/profiles?seconds=10'  # all processes of the host
go tool pprof -top http://127.0.0.1:19090/debug/pprof/heap       # with self_telemetry.debug: true
\`\`\`
`
}
