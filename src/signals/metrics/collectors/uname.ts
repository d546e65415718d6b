import { loadNative, Unsupported } from '../../../kernel/native.ts'
import { collector, gauge } from './collector.ts'

const info = gauge('uname_info', 'What the kernel calls itself and this host. The value is 1.', {
  labels: ['domainname', 'machine', 'nodename', 'release', 'sysname', 'version'],
})

/** Names of the kernel and the host, by uname(2). */
export const uname = collector({
  name: 'uname',
  summary: 'Names of the kernel and the host',
  source: 'uname(2)',
  enabledByDefault: true,
  metrics: [info],
  start: () => ({
    collect(readings) {
      const native = loadNative()
      if (native instanceof Unsupported) throw new Error(native.reason)
      const [sysname = '', nodename = '', release = '', version = '', machine = '', domain = ''] =
        native.uname()
      readings.setAll(info, 1, [domain, machine, nodename, release, sysname, version])
    },
  }),
})
