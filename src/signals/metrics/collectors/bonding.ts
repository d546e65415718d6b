import { collector, gauge, NoData, type Tree } from './collector.ts'

const slaves = gauge('bonding_slaves', 'Network devices that a bond has.', { labels: ['master'] })
const active = gauge('bonding_active', 'Network devices of a bond whose link is up.', { labels: ['master'] })

/** Bonds and their devices, from /sys/class/net (Linux, Documentation/networking/bonding.rst). */
export const bonding = collector({
  name: 'bonding',
  summary: 'Slaves of bonded network devices',
  source: '/sys/class/net',
  enabledByDefault: true,
  metrics: [slaves, active],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      // A bond that disappears during the reading is omitted rather than shown in part.
      const bonds = words(read(sys, 'class/net/bonding_masters')).map(master => {
        const states = words(read(sys, `class/net/${master}/bonding/slaves`)).map(slave =>
          state(sys, master, slave),
        )
        return { master, slaves: states.length, active: states.filter(text => text === 'up').length }
      })
      for (const bond of bonds) {
        readings.set(slaves, bond.slaves, bond.master)
        readings.set(active, bond.active, bond.master)
      }
    },
  }),
})

function read(sys: Tree, path: string): string {
  const text = sys.find(path)
  if (text === undefined) throw new NoData(`${sys.at(path)} not found: no network device is bonded`)
  return text
}

/** State of a slave; its link is `lower_…`, or `slave_…` in Linux before 3.14. */
function state(sys: Tree, master: string, slave: string): string {
  const path = (prefix: string) => `class/net/${master}/${prefix}_${slave}/bonding_slave/mii_status`
  return sys.find(path('lower')) ?? read(sys, path('slave'))
}

function words(text: string): readonly string[] {
  return text === '' ? [] : text.split(/\s+/)
}
