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
      // A bond may go while it is read: then there is none of this reading rather than half of it.
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

/** `lower_` is how current kernels name the link to a device, `slave_` how Linux before 3.14 did. */
function state(sys: Tree, master: string, slave: string): string {
  const path = (prefix: string) => `class/net/${master}/${prefix}_${slave}/bonding_slave/mii_status`
  return sys.find(path('lower')) ?? read(sys, path('slave'))
}

function words(text: string): readonly string[] {
  return text === '' ? [] : text.split(/\s+/)
}
