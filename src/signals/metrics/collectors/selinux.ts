import { collector, gauge, type Host } from './collector.ts'

const enabled = gauge('selinux_enabled', 'Whether SELinux is on (1), or not (0).')
const configMode = gauge(
  'selinux_config_mode',
  'Mode that is configured: enforcing (1), permissive (0), or none of them (-1).',
)
const currentMode = gauge(
  'selinux_current_mode',
  'Mode now: enforcing (1), permissive (0), or not known (-1).',
)

/** State of SELinux, from /sys/fs/selinux (selinux(8)) and /etc/selinux/config. */
export const selinux = collector({
  name: 'selinux',
  summary: 'State of SELinux',
  source: '/sys/fs/selinux',
  enabledByDefault: true,
  metrics: [enabled, configMode, currentMode],
  start: (_options, { host }) => ({
    collect(readings) {
      const on = isEnabled(host)
      readings.set(enabled, on ? 1 : 0)
      if (!on) return
      readings.set(configMode, configuredMode(host.root.find('etc/selinux/config') ?? ''))
      const now = host.sys.find('fs/selinux/enforce')
      readings.set(currentMode, now === '1' ? 1 : now === '0' ? 0 : -1)
    },
  }),
})

/** Whether its file system is mounted, with a policy: without one all processes have the label of the kernel. */
function isEnabled({ sys, proc }: Host): boolean {
  if (!sys.exists('fs/selinux/enforce')) return false
  return proc.find('self/attr/current')?.replace(/\0+$/, '') !== 'kernel'
}

/** `SELINUX=` of the configuration: the first line counts (selinux_config(5)). */
export function configuredMode(config: string): number {
  for (const line of config.split('\n')) {
    const match = /^\s*SELINUX\s*=\s*"?(\w*)/.exec(line)
    if (match !== null) return match[1] === 'enforcing' ? 1 : match[1] === 'permissive' ? 0 : -1
  }
  return -1
}
