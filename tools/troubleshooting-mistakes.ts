// Every kind of mistake in a configuration, for the page about troubles: from the messages that a test holds.
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
  return `## What svc validate says

Each with its file, line and column, the line itself, and what was probably meant. All at once; nothing is started.

Files that keys name (certificates, keys, tokens, a kubeconfig) are looked at on this host, where what they are for is
switched on. What is not there, is no PEM of its kind, has ended or does not belong together is a mistake; what this user
may not read is a warning, for the agent may be another. A configuration for another host, as in CI:
\`svc validate --no-files FILE\`. A start does not look at them all: what lacks its files says so in \`svc status\` while all
else works, and only TLS of the management API and of \`agent.nodeexporter\` keeps the agent from starting.

${table(['mistake', 'for example'], rows)}`
}
