// Configuration and state of the agent, and its eBPF programs and maps.

import { type LoadedConfig, schema, shownKeys } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { leaves } from '../../foundation/schema/tree.ts'
import { countedMaps, loadedPrograms } from '../../kernel/loaded.ts'
import type { TlsAttachment } from '../../signals/capture/tls/tls-probes.ts'
import type { AgentDocument } from '../../view/api/ui/documents.ts'
import { Tracing } from '../agent/tracing.ts'
import type { DocumentContext } from './document-context.ts'
import { degradations } from './view.ts'

export async function agentPage(parts: DocumentContext): Promise<AgentDocument> {
  const loaded = parts.loaded()
  const { version, commit, built } = build()
  return {
    version,
    commit,
    built,
    runtime: process.version,
    pid: process.pid,
    uptime_s: (performance.now() - parts.startedMs) / 1000,
    config_file: loaded.filePath ?? '',
    config: configOf(loaded),
    reload: reloadOf(parts),
    degraded: degradations(parts.faults()),
    memory: parts.memory.state,
    programs: programsOf(parts),
    maps: countedMaps().map(({ name, object, type, entries, maxEntries }) => ({
      name: `${object}: ${name}`,
      type,
      entries,
      max_entries: maxEntries,
    })),
    attachments: attachmentsOf(parts),
  }
}

function configOf(loaded: LoadedConfig): AgentDocument['config'] {
  const described = new Map(leaves(schema))
  return shownKeys(loaded).map(({ key, value, origin }) => {
    const leaf = described.get(key)!
    return {
      key,
      value: yamlOf(value),
      default: leaf.defaultText ?? yamlOf(leaf.kind.show(leaf.default, shown => shown)),
      origin,
      summary: leaf.description,
      requires_restart: leaf.restart === true,
    }
  })
}

/** Words that YAML does not read as text (YAML 1.1 and 1.2). */
const notTexts = /^(?:true|false|null|yes|no|on|off|y|n|~)$/i
const plainText = /^(?:[A-Za-z/][\w./:*+-]*|\d+[A-Za-z]{1,3})$/

/** In YAML, on one line: JSON is YAML, and a plain word needs no quotes. */
export function yamlOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? ''
  const isPlain = plainText.test(value) && !notTexts.test(value) && !value.endsWith(':')
  return isPlain ? value : JSON.stringify(value)
}

function reloadOf(parts: DocumentContext): AgentDocument['reload'] {
  const { reloads, lastSuccessful, lastAttemptMs, requiresRestart } = parts.reloads()
  const at = new Date(lastAttemptMs).toISOString()
  const last = lastSuccessful
    ? `${at}: applied`
    : `${at}: rejected; previous configuration still active (reason above)`
  return { last: reloads === 0 ? '' : last, requires_restart: [...requiresRestart] }
}

function programsOf({ ebpfDebug }: DocumentContext): AgentDocument['programs'] {
  const measured = ebpfDebug.measures
  return loadedPrograms().map(({ name, type, section, attached, links, runCount, runTimeNs }) => {
    // Programs for libraries have no fixed place of attachment.
    const isOfFiles = /^u(?:ret)?probe/.test(section)
    const place = isOfFiles
      ? `${links} file${links === 1 ? '' : 's'}`
      : links > 1
        ? `${section}, ${links} times`
        : section
    return {
      name,
      type,
      attached: attached ? place : '',
      run_count: measured ? runCount : null,
      ns_per_run: measured && runCount > 0 ? runTimeNs / runCount : null,
    }
  })
}

function attachedFiles(tracing: DocumentContext['tracing']): TlsAttachment[] {
  const found = tracing instanceof Tracing ? tracing.tls?.attachments() : undefined
  return (found ?? []).filter(({ attached }) => attached)
}

function attachmentsOf({ tracing }: DocumentContext): AgentDocument['attachments'] {
  const tls = tracing instanceof Tracing ? tracing.tls : undefined
  return attachedFiles(tracing).map(({ path, library, symbols, inode }) => ({
    path,
    functions: `TLS (${library}): ${symbols.join(', ')}`,
    pids: [...(tls?.usersOf(inode) ?? [])],
  }))
}
