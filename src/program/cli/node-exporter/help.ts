import { build } from '../../../foundation/lib/build.ts'
import { wrapped } from '../../../foundation/lib/terminal-text.ts'
import type { ExporterFlag } from './flags.ts'

/** The output of `--version`, in the format of the replaced exporter, which scripts parse. */
export function versionText(): string {
  const { version, commit, built } = build()
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  return [
    `node_exporter, version ${version} (branch: svc, revision: ${commit})`,
    '  build user:       svc',
    `  build date:       ${built.replace(/[-Z]/g, '').replace('T', '-')}`,
    `  node version:     ${process.version}`,
    `  platform:         ${process.platform}/${arch}`,
    '',
  ].join('\n')
}

/** All flags, as help text. */
export function usageText(flags: Iterable<ExporterFlag>): string {
  const lines = ['usage: svc node-exporter [<flags>]', '', 'Flags:']
  for (const flag of flags) {
    if (flag.meant !== undefined) continue
    const term = `  ${flag.name === 'help' ? '-h, ' : '    '}${formOf(flag)}`
    const help = wrapped(flag.summary, 47).map(line => ' '.repeat(33) + line)
    if (term.length > 31) lines.push(term, ...help)
    else lines.push(term.padEnd(33) + (help[0] ?? '').trimStart(), ...help.slice(1))
  }
  return `${lines.join('\n')}\n`
}

/** All flags as a page for man(1). */
export function manualText(flags: Iterable<ExporterFlag>): string {
  const lines = [
    '.TH "SVC-NODE-EXPORTER" 1',
    '.SH NAME',
    'svc-node-exporter \\- serve metrics of this host',
    '.SH SYNOPSIS',
    '.B svc node-exporter',
    '[<flags>]',
    '.SH OPTIONS',
  ]
  const escaped = (text: string) => text.replaceAll('\\', '\\e').replaceAll('-', '\\-')
  for (const flag of flags)
    if (flag.meant === undefined) lines.push('.TP', `\\fB${escaped(formOf(flag))}\\fR`, escaped(flag.summary))
  return `${lines.join('\n')}\n`
}

function formOf({ name, takes, fallback }: ExporterFlag): string {
  if (takes === 'switch') return `--${name}`
  const shown =
    fallback === '' ? name.toUpperCase() : /^[\w:./-]+$/.test(fallback) ? fallback : JSON.stringify(fallback)
  return `--${name}=${shown}${takes === 'values' ? ' ...' : ''}`
}
