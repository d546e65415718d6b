// The reference page of the management API, from the operations that serve it.
import { subsystems } from '../src/agent/subsystems/index.ts'
import { operations } from '../src/api/routes.ts'
import type { AgentView } from '../src/api/types.ts'
import { profileKinds } from '../src/runtime/runtime-profiler.ts'

const intro = `# Management API

Generated from the operations in \`src/api/routes.ts\` by \`tools/gen-docs.ts\`; do not edit.

The agent serves it at \`self_telemetry.listen\` (default \`:19090\`), and to this host alone at the Unix socket
\`self_telemetry.admin_socket\`, where no token is asked for: \`curl --unix-socket /run/svc/svc.sock http://svc/status\`.
Everything is JSON unless said otherwise. The machine-readable description, OpenAPI 3.1 with every field of every
document, is \`/openapi.json\`.

- **Token**: with \`self_telemetry.auth.enabled\`, everything but the probes and \`auth.exempt\` needs
  \`Authorization: Bearer TOKEN\`. Several tokens may be valid at a time, for a change without a gap.
- **Own**: where no token is configured, what is not for anybody is for root and the user of svc on a loopback address
  (the kernel says whose connection it is), for who may open the admin socket, and for browsers that came by the link that
  \`svc ui\` prints. Others get 401. \`self_telemetry.admin.allow_remote\` lifts it for other hosts.
- **What anybody sees** of the documents lacks paths of files of other programs, and the words of receivers.
- **Names**: the \`Host\` of a request is an address, \`localhost\`, a name of this host, or one of
  \`self_telemetry.allowed_hosts\`; web pages of other origins are refused. Else 403. Probes answer to any name, and a request
  with a token is not asked.
- **Debug**: \`/debug/*\` exists while \`self_telemetry.debug\` is true or \`log_level\` is \`debug\`. \`svc\` watches itself
  for profiles only then.
- **Errors**: on every path, for every status, \`{"error": CODE, "message": SENTENCE, "details": {}}\`.
- **The live page** is at \`/ui\`; its files hold no data and need no token. What it asks for, \`/ui/api/*\`, is NDJSON
  where \`follow=1\` lets an answer go on: at most 32 do at a time.
- **HEAD** answers as GET without a body, **OPTIONS** tells the methods.
- **Limits**: 256 connections, 16 KiB of headers, 8 KiB of URL, 64 KiB of body, 30 s for a request;
  \`self_telemetry.rate_limit\` bounds requests per client, an address or a user of this host (429 with \`Retry-After\`), probes excepted.
- **TLS**: \`self_telemetry.tls\`; with \`client_ca_file\` every client must show a certificate, probes included.
  Certificates are read again by a reload.

Who may ask: *anybody*; *token*: anybody, and with \`auth.enabled\` whoever has the token; *own*: as above, and with
\`auth.enabled\` whoever has the token, or a browser that came by the link; *debug*: in debug mode only.
`

/** The page, in Markdown. */
export function apiPage(): string {
  // Nothing is asked: the operations are only listed.
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
    const who = debug ? 'debug, own' : { open: 'anybody', public: 'token', private: 'own' }[access]
    const own = Object.keys(outcomes).join(', ')
    return `| ${method} | \`${path}\` | ${summary}${query.length > 0 ? ` Query: ${query.join('; ')}.` : ''} | ${who} | ${own} |`
  })
  return `${intro}
| method | path | answers | who | statuses of its own |
|---|---|---|---|---|
${rows.join('\n')}

## Try it

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
