import { arch, cpus, hostname, release } from 'node:os'
import { build } from '../lib/build.ts'
import { errorText } from '../lib/logger.ts'
import { ExitCode } from '../lib/start-error.ts'
import { type Command, configFlag, jsonFlag, modeFlag } from './arguments.ts'
import { configurationOf } from './configuration.ts'
import {
  type Check,
  type CheckState,
  configChecks,
  exportChecks,
  managementCheck,
  runtimeChecks,
} from './doctor-checks.ts'
import { outputColor, print } from './terminal.ts'

export const doctor: Command = {
  name: 'doctor',
  summary: 'try what the agent needs of this host, and say what is missing and how to mend it',
  flags: [configFlag, modeFlag, jsonFlag],
  async run(args) {
    const loaded = configurationOf(args)
    const checks = [
      ...configChecks(loaded),
      ...runtimeChecks(),
      ...(await kernelChecks(loaded.config.agent.ebpf.enabled)),
      await managementCheck(loaded.config.self_telemetry),
      ...(await exportChecks(loaded.config)),
    ]
    const good = !checks.some(({ state }) => state === 'missing' || state === 'limited')
    if (args.has('json')) print(`${JSON.stringify({ host: host(), ok: good, checks }, null, 2)}\n`)
    else print(report(hostLine(), checks, outputColor()))
    return good ? ExitCode.ok : ExitCode.general
  },
}

/**
 * Each need of the kernel, tried on this host. One that fails in another way than it knows is unknown, not missing,
 * and none is a problem where eBPF is off.
 */
async function kernelChecks(ebpf: boolean): Promise<Check[]> {
  const { needs } = await import('../kernel/needs.ts')
  return needs.map(({ name, try: tryNeed }) => {
    try {
      const result = tryNeed()
      if (ebpf || result.state === 'ok') return { name, ...result }
      return { name, state: 'note', detail: `${result.detail} (agent.ebpf is off)` }
    } catch (error) {
      return { name, state: 'unknown', detail: `the check itself failed: ${errorText(error)}` }
    }
  })
}

function host() {
  const { version } = build()
  return {
    name: hostname(),
    os: process.platform,
    kernel: release(),
    arch: arch(),
    cpus: cpus().length,
    version,
  }
}

function hostLine(): string {
  const { os, kernel, arch: machine, cpus: count, version } = host()
  return `svc ${version} on ${os} ${kernel} ${machine}, ${count} CPU${count === 1 ? '' : 's'}`
}

const colours: Record<CheckState, number> = { ok: 32, limited: 33, missing: 31, unknown: 36, note: 90 }

/** The checks as a table for people, in plain ASCII, with a summary as its last line. */
export function report(title: string, checks: readonly Check[], color: boolean): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const indent = ' '.repeat(width + 11)
  const lines = [title]
  for (const { name, state, detail, lose, mend } of checks) {
    const shown = color ? `\x1b[${colours[state]}m${state.padEnd(8)}\x1b[0m` : state.padEnd(8)
    lines.push(`${name.padEnd(width)}  ${shown} ${detail}`)
    if (lose) lines.push(`${indent}you lose: ${lose}`)
    if (mend) lines.push(`${indent}mend: ${mend.replaceAll('\n', `\n${indent}      `)}`)
  }
  const counted = (['limited', 'missing', 'unknown'] as const)
    .map(state => [checks.filter(check => check.state === state).length, state] as const)
    .filter(([count]) => count > 0)
    .map(([count, state]) => `${count} ${state}`)
  lines.push(counted.length === 0 ? 'Everything works.' : `${counted.join(', ')}. Everything else works.`)
  return `${lines.join('\n')}\n`
}
