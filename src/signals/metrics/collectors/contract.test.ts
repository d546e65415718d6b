// owns: host
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import type { Family, Readings } from '../../../foundation/model/collector.ts'
import { isBranch, type Keys } from '../../../foundation/schema/tree.ts'
import type { Collector, Env } from './collector.ts'
import { collectors, extraCollectors } from './index.ts'
import { optionsFault } from './options-fault.ts'

const original: readonly Collector<Keys>[] = collectors
const units: readonly Collector<Keys>[] = [...original, ...extraCollectors]

/** What users of the exporter that is replaced have off unless they ask for it. */
const offByDefault =
  'buddyinfo cgroups cpu_vulnerabilities drbd drm ethtool interrupts ksmd lnstat logind meminfo_numa mountstats ' +
  'network_route ntp nvmesubsystem pcidevice perf processes qdisc runit slabinfo softirqs supervisord swap sysctl ' +
  'systemd tcpstat wifi xfrm zoneinfo'

const defaults = (unit: Collector<Keys>) =>
  Object.fromEntries(
    Object.entries(unit.options ?? {}).map(([name, key]) => [name, isBranch(key) ? undefined : key.default]),
  )

test('there are 79 collectors, and the same are on', () => {
  const names = original.map(({ name }) => name)
  assert.equal(names.length, 79)
  assert.deepEqual(names, names.toSorted())
  const off = original.filter(({ enabledByDefault }) => !enabledByDefault).map(({ name }) => name)
  assert.deepEqual(off, offByDefault.split(' '))
})

test('families are described in a sentence, and two of one name say the same', () => {
  const byName = new Map<string, Family>()
  for (const { name: unit, metrics } of units)
    for (const family of metrics) {
      const at = `${unit}: ${family.name}`
      // One character that is none of Latin-1 makes the whole page a string of twice the size (V8).
      assert.match(family.help, /^[A-Z0-9][\x20-\x7e]*[^.\s]\.$/s, at)
      assert.doesNotMatch(family.name, /^node_/, at)
      const other = byName.get(family.name) ?? family
      assert.equal(family.type, other.type, at)
      assert.equal(family.help, other.help, at)
      byName.set(family.name, family)
    }
  assert.ok(byName.size > 600, String(byName.size))
})

test('a collector shows something, and says which families it makes of what it reads', () => {
  for (const { name, metrics, dynamic } of units) {
    assert.ok(metrics.length > 0 || dynamic !== undefined, name)
    if (dynamic !== undefined) assert.match(dynamic, /^[A-Z].*\.$/, name)
  }
})

test('options are described, their defaults are taken, and no two have one flag', () => {
  const flags = new Map<string, string>()
  for (const unit of units) {
    assert.equal(optionsFault(unit, defaults(unit)), undefined, unit.name)
    for (const name of Object.keys(unit.flags ?? {})) assert.ok(unit.options?.[name], `${unit.name}: ${name}`)
    for (const name of Object.keys(unit.options ?? {})) {
      const flag = unit.flags?.[name] ?? `${unit.name}.${name.replaceAll('_', '-')}`
      if (flag === '') continue
      assert.equal(flags.get(flag), undefined, `${unit.name}.${name}: ${flag}`)
      flags.set(flag, name)
    }
  }
})

for (const unit of units) {
  test(`${unit.name}: shows what it declares, and nothing that is no number`, async () => {
    // Families of one name may have different labels, some of them named by what is there.
    const declared = new Set(unit.metrics.map(({ name }) => name))
    const found: string[] = []
    const check = (family: Family, value: number, labels: readonly (string | undefined)[]) => {
      const given = labels.filter(label => label !== undefined)
      if (!declared.has(family.name) && unit.dynamic === undefined)
        found.push(`${family.name} is not declared`)
      if (given.length !== family.labels.length) found.push(`${family.name} has labels ${given.join()}`)
      if (Number.isNaN(value)) found.push(`${family.name}{${given.join()}} is no number`)
    }
    const watched: Collector<Keys> = {
      ...unit,
      start(options: never, env: Env) {
        const reader = unit.start(options, env)
        return {
          ...(reader.wait ? { wait: (signal: AbortSignal) => reader.wait!(signal) } : {}),
          close: () => reader.close?.(),
          collect(readings: Readings) {
            reader.collect({
              set(family, value, a, b, c) {
                check(family, value, [a, b, c])
                readings.set(family, value, a, b, c)
              },
              setAll(family, value, labels) {
                check(family, value, labels)
                readings.setAll(family, value, labels)
              },
              setDistribution(family, distribution, labels) {
                check(family, distribution.sum, labels)
                readings.setDistribution(family, distribution, labels)
              },
            })
          },
        }
      },
    }
    await readWith(watched)
    assert.deepEqual(found, [])
  })

  test(`${unit.name}: a host without anything of its kind does no harm`, async t => {
    const { outcome, lines } = await readWith(unit, {}, treeOf(t, {}))
    assert.match(outcome, /^(success|no_data|failed)$/)
    for (const line of lines) assert.doesNotMatch(line, / NaN$|undefined/)
  })
}
