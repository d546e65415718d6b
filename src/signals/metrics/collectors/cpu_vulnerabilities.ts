import { someTextAt } from './_small-file.ts'
import { collector, gauge } from './collector.ts'

const vulnerability = gauge(
  'cpu_vulnerabilities_info',
  'Always 1; the labels are a flaw of the CPUs, whether it concerns them, and what is done about it.',
  { labels: ['codename', 'mitigation', 'state'] },
)
const directory = 'devices/system/cpu/vulnerabilities'

/** CPU vulnerabilities, from /sys/devices/system/cpu/vulnerabilities (kernel, admin-guide/hw-vuln). */
export const cpu_vulnerabilities = collector({
  name: 'cpu_vulnerabilities',
  summary: 'CPU vulnerabilities and their mitigations',
  source: '/sys/devices/system/cpu/vulnerabilities',
  enabledByDefault: false,
  metrics: [vulnerability],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      for (const name of sys.list(directory)) {
        const text = someTextAt(sys, `${directory}/${name}`)
        if (text === undefined)
          throw new Error(`cannot read ${sys.at(`${directory}/${name}`)}: permission denied`)
        const { state, mitigation } = parseVulnerability(text)
        readings.set(vulnerability, 1, name, mitigation, state)
      }
    },
  }),
})

/** State before the first colon, comma or semicolon, if it is a known one; otherwise unknown. */
export function parseVulnerability(text: string): { readonly state: string; readonly mitigation: string } {
  const parts = /^(not affected|vulnerable|mitigation|unknown)[:;,]?\s*(.*)$/i.exec(text)
  if (parts === null) return { state: 'unknown', mitigation: text }
  const state = parts[1]!.toLowerCase()
  return { state, mitigation: state === 'not affected' ? '' : parts[2]! }
}
