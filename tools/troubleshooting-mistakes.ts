// Every kind of mistake in a configuration, for the troubleshooting page: from the messages asserted in a test.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { code, table } from './markdown.ts'

/** The section, in Markdown. */
export function mistakes(): string {
  const golden = readFileSync(join(import.meta.dirname, '../test/golden/bad-config.txt'), 'utf8')
  const rows = golden.split(/^# /m).flatMap(part => {
    const [kind = '', first = ''] = part.split('\n')
    const said = first.replace(/^[\w.]+:(\d+:\d+:)? /, '')
    return said === '' ? [] : [[kind, code(said.replaceAll('`', '’'))]]
  })
  return `## Configuration errors

\`svc validate\` reports all errors at once, each with file, line and column, the line itself, and a correction if there is
one. It does not start the agent.

It also checks files named in keys (certificates, keys, tokens, a kubeconfig) on this host, if their feature is enabled.
Missing files, invalid PEM files, expired certificates and keys that do not match are errors; files that this user may not
read are warnings, because the agent may run as another user. To check a configuration for another host, as in CI:
\`svc validate --no-files FILE\`. The agent does not check all of these files at startup: a feature without its files is shown
in \`svc status\` while the rest works. Only TLS files of the management API and of \`agent.nodeexporter\` stop the start.

${table(['error', 'example'], rows)}`
}
