/** A range of ports, both ends included. */
export interface PortRange {
  readonly from: number
  readonly to: number
}

/** What a process must have to be meant; all that is given must hold. Texts may contain `*`. */
export interface ProcessSelector {
  /** Ports that it listens at: one of them suffices. Empty: any. */
  readonly ports: readonly PortRange[]
  /** '' for any. */
  readonly executable: string
  /** `service.name`; '' for any. */
  readonly name: string
  /** It also asks for something that is not known of processes, so that none is meant. */
  readonly unknown: boolean
}

/** What a selector is held against. */
export interface SelectableProcess {
  readonly name: string
  readonly executable: string
  /** Asked for only where a selector names ports. */
  listening(): readonly number[]
}

export interface SelectionRules {
  /** Empty: all processes. */
  readonly instrument: readonly ProcessSelector[]
  /** Wins. */
  readonly exclude: readonly ProcessSelector[]
}

/** Why a process is observed or not. */
export interface Verdict {
  readonly observed: boolean
  readonly reason: string
}

const everything: Verdict = { observed: true, reason: 'every process is observed' }

/** Decides which processes are observed (`discovery.instrument` and `discovery.exclude`). */
export function judge(rules: SelectionRules, process: SelectableProcess): Verdict {
  const excluded = rules.exclude.findIndex(selector => means(selector, process))
  if (excluded >= 0) return { observed: false, reason: `discovery.exclude[${excluded}] means it` }
  if (rules.instrument.length === 0) return everything
  const wanted = rules.instrument.findIndex(selector => means(selector, process))
  return wanted >= 0
    ? { observed: true, reason: `discovery.instrument[${wanted}] means it` }
    : { observed: false, reason: 'no entry of discovery.instrument means it' }
}

function means(selector: ProcessSelector, process: SelectableProcess): boolean {
  return (
    !selector.unknown &&
    matches(selector.name, process.name) &&
    matches(selector.executable, process.executable) &&
    (selector.ports.length === 0 || process.listening().some(port => within(selector.ports, port)))
  )
}

function within(ranges: readonly PortRange[], port: number): boolean {
  return ranges.some(({ from, to }) => port >= from && port <= to)
}

/** Whether a text is one that a pattern with `*` stands for. An empty pattern stands for all. Linear in both lengths. */
export function matches(pattern: string, text: string): boolean {
  if (pattern === '') return true
  const parts = pattern.split('*')
  const first = parts.shift()!
  if (parts.length === 0) return text === first
  const last = parts.pop()!
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length)
    return false
  let at = first.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > text.length - last.length) return false
    at = found + part.length
  }
  return true
}
