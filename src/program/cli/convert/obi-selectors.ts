// Converts OBI's selection of processes.

import type { Value } from '../../../foundation/schema/value.ts'
import type { Conversion } from './conversion.ts'
import { type AllGiven, type Given, textOf } from './obi-given.ts'

type Form = 'glob' | 'regex'

/** Keys of a selector with the same name in svc. */
const same = new Set([
  'k8s_namespace',
  'k8s_pod_name',
  'k8s_deployment_name',
  'k8s_daemonset_name',
  'k8s_statefulset_name',
  'k8s_container_name',
])

/** Keys that do not select, but configure what was selected. */
const ofTheService = new Set(['name', 'namespace', 'exports', 'sampler', 'routes', 'metrics'])

/** Limit of brace expansion; real files stay far below it. */
const mostEntries = 64

/** Sets `discovery.instrument` and `discovery.exclude`. */
export function selectors(given: AllGiven, conversion: Conversion): void {
  bySettings(given, conversion)
  const instrument = given.get('discovery.instrument')
  const services = given.get('discovery.services')
  // If both are set, OBI reads only the newer ones.
  if (instrument !== undefined) entries(instrument, 'instrument', 'glob', conversion)
  else if (services !== undefined) entries(services, 'instrument', 'regex', conversion)
  const chosen = instrument ?? services
  if (
    chosen?.value.type === 'list' &&
    chosen.value.items.length > 0 &&
    !conversion.has('discovery.instrument')
  )
    conversion.leaveOut(
      chosen.origin,
      'no entry is left, and without entries svc observes every process; write discovery.instrument before you start svc',
    )
  const excluded = given.get('discovery.exclude_instrument')
  const oldExcluded = given.get('discovery.exclude_services')
  if (excluded !== undefined) entries(excluded, 'exclude', 'glob', conversion)
  if (oldExcluded !== undefined && instrument === undefined)
    entries(oldExcluded, 'exclude', 'regex', conversion)
}

/** Port and executable outside of lists: a process must match both. */
function bySettings(given: AllGiven, conversion: Conversion): void {
  const ports = given.get('open_port')
  const glob = given.get('auto_target_exe')
  const regex = given.get('executable_path')
  const executable = glob ?? regex
  const origin = [ports, executable].flatMap(each => (each === undefined ? [] : [each.origin])).join(', ')
  if (origin === '') return
  const globs = executable && globsOf(textOf(executable.value), glob === undefined ? 'regex' : 'glob')
  if (executable !== undefined && globs === undefined) {
    conversion.leaveOut(origin, noGlob(textOf(executable.value)))
    return
  }
  for (const path of globs ?? [undefined])
    conversion.add(
      'discovery.instrument',
      {
        ...(ports && { open_ports: textOf(ports.value) }),
        ...(path !== undefined && { exe_path: path }),
      },
      origin,
      ports?.refers ?? executable?.refers,
    )
}

function noGlob(text: string): string {
  return `svc supports only "*" for any text, which cannot express ${JSON.stringify(text)}; write an entry in discovery`
}

function entries({ value, origin, refers }: Given, key: string, form: Form, conversion: Conversion): void {
  const items = value.type === 'list' ? value.items : []
  for (const [i, item] of items.entries()) {
    const at = `${origin}[${i}]`
    for (const entry of entryOf(item, at, form, conversion))
      conversion.add(`discovery.${key}`, entry, at, refers)
  }
}

/** Entries that together mean the same; none if that is impossible: fewer criteria would match more processes. */
function entryOf(
  value: Value,
  at: string,
  form: Form,
  conversion: Conversion,
): readonly Record<string, unknown>[] {
  if (value.type !== 'map') {
    conversion.leaveOut(at, 'not a selector; correct it')
    return []
  }
  let made: readonly Record<string, unknown>[] = [{}]
  const multiply = (name: string, texts: readonly string[]) => {
    made = made.flatMap(entry => texts.map(text => ({ ...entry, [name]: text })))
  }
  for (const { key, value: each } of value.entries) {
    if (each.type === 'scalar' && each.value === null) continue
    if (ofTheService.has(key)) {
      conversion.leaveOut(
        `${at}.${key}`,
        'svc has no such setting for one service; names come from the application (OTEL_SERVICE_NAME)',
      )
      continue
    }
    if (key === 'open_ports') {
      multiply('open_ports', [each.type === 'list' ? each.items.map(textOf).join(',') : textOf(each)])
      continue
    }
    if (key === 'k8s_pod_labels' && each.type === 'map') {
      const labels = each.entries.map(label => [label.key, globsOf(textOf(label.value), form)] as const)
      if (labels.every(([, globs]) => globs?.length === 1)) {
        const plain = Object.fromEntries(labels.map(([name, globs]) => [name, globs![0]]))
        made = made.map(entry => ({ ...entry, k8s_pod_labels: plain }))
        continue
      }
    }
    const isPath = key === 'exe_path' || key === 'exe_path_regexp'
    const isForm = key === 'exe_path_regexp' ? 'regex' : form
    const globs = isPath || same.has(key) ? globsOf(textOf(each), isForm) : undefined
    if (globs === undefined || made.length * globs.length > mostEntries) {
      const why =
        isPath || same.has(key)
          ? noGlob(textOf(each))
          : 'svc cannot select by it; select the processes in another way'
      conversion.leaveOut(`${at}.${key}`, `${why}. The whole entry is left out`)
      return []
    }
    multiply(isPath ? 'exe_path' : key, globs)
  }
  return made.filter(entry => Object.keys(entry).length > 0)
}

/** The same as globs with `*`; undefined if impossible. */
function globsOf(text: string, form: Form): string[] | undefined {
  if (text === '') return undefined
  if (form === 'regex') return ofRegex(text)
  return /[?[\]\\]/.test(text) ? undefined : braces(text)?.map(each => each.replaceAll(/\*+/g, '*'))
}

/** Expands `{a,b}`; undefined if braces are nested or unclosed. */
function braces(text: string): string[] | undefined {
  let made = ['']
  for (const part of text.split(/(\$?\{[^{}]*\})/)) {
    const isGroup = part.startsWith('{')
    if (!isGroup && !part.startsWith('${') && /[{}]/.test(part)) return undefined
    const choices = isGroup ? part.slice(1, -1).split(',') : [part]
    made = made.flatMap(before => choices.map(choice => before + choice))
    if (made.length > mostEntries) return undefined
  }
  return made
}

/** Globs for an unanchored expression of plain text, `.*` and anchors, or alternatives of them. */
function ofRegex(text: string): string[] | undefined {
  const globs: string[] = []
  for (const each of text.split('|')) {
    const [, start = '', inner = '', end = ''] = /^(\^?)(.*?)(\$?)$/s.exec(each)!
    if (/[\^$+?()[\]{}*.\\]/.test(inner.replaceAll(/\.\*|\\[./-]/g, ''))) return undefined
    const glob = inner.replaceAll('.*', '*').replaceAll('\\', '')
    globs.push(`${start === '' ? '*' : ''}${glob}${end === '' ? '*' : ''}`.replaceAll(/\*+/g, '*'))
  }
  return globs
}
