// owns: process
// The units as systemd reads them. What they do to the agent is tested in a machine of its own, by service-guest.test.ts.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { table } from '../../src/program/doctor/table.ts'

const analyze = '/usr/bin/systemd-analyze'
const skip = existsSync(analyze) ? false : `units are checked by ${analyze}, of Debian's package systemd`
/** Tenths: 3.5 is "OK". What is left is named at the end of the units. */
const mostExposed = 35

const units = resolve(import.meta.dirname, '../../deploy/systemd')
const directory = mkdtempSync(join(tmpdir(), 'svc-units-'))
after(() => rmSync(directory, { recursive: true }))

/** A root that has the units, and a program in place of svc. */
function rootWith(name: string, dropIns: readonly string[]): string {
  const root = join(directory, name)
  const system = join(root, 'usr/lib/systemd/system')
  mkdirSync(join(system, 'svc.service.d'), { recursive: true })
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  for (const program of ['usr/bin/svc', 'usr/bin/sh']) {
    writeFileSync(join(root, program), '#!/bin/true\n', { mode: 0o755 })
  }
  symlinkSync('usr/bin', join(root, 'bin'))
  for (const target of ['sysinit', 'basic', 'shutdown', 'network', 'multi-user'])
    writeFileSync(join(system, `${target}.target`), '[Unit]\nDescription=A target\n')
  for (const unit of ['svc.service', 'svc-doctor.service']) writeFileSync(join(system, unit), text(unit))
  for (const name of dropIns)
    writeFileSync(join(system, 'svc.service.d', `${name}.conf`), text(`${name}.conf.example`))
  return root
}

/** The status of the check, and what it said. */
function verify(root: string): unknown[] {
  const paths = ['svc.service', 'svc-doctor.service'].map(unit => join(root, 'usr/lib/systemd/system', unit))
  const args = [`--root=${root}`, '--man=no', '--recursive-errors=yes', 'verify', ...paths]
  const { status, stdout, stderr } = spawnSync(analyze, args, { encoding: 'utf8' })
  return [status, stdout, stderr]
}

function text(name: string): string {
  return readFileSync(join(units, name), 'utf8')
}

test('a mistake in a unit is found', { skip }, () => {
  const root = rootWith('mistake', [])
  const path = join(root, 'usr/lib/systemd/system/svc.service')
  for (const [from, to, said] of [
    ['ProtectHome=', 'ProtectHouse=', /Unknown key.* 'ProtectHouse'/],
    ['/usr/bin/svc run', '/usr/bin/svk run', /svk is not executable|svk.*No such file/],
    ['@system-service', '@system-services', /nknown.*system-services|Failed to parse.*system-services/],
  ] as const) {
    writeFileSync(path, text('svc.service').replace(from, to))
    assert.match(verify(root).join(' '), said)
  }
})

test('systemd takes the units, and each drop-in, without a warning', { skip }, () => {
  for (const dropIns of [[], ['old-kernel'], ['collector'], ['docker']]) {
    const root = rootWith(`verify-${dropIns.join()}`, dropIns)
    assert.deepEqual(verify(root), [0, '', ''])
  }
})

test('systemd rates what the agent could do as OK, and less in mode collector', { skip }, t => {
  const exposure = (dropIns: readonly string[]) => {
    const root = rootWith(`security-${dropIns.join()}`, dropIns)
    const args = ['security', `--root=${root}`, '--offline=yes', '--no-pager', `--threshold=${mostExposed}`]
    const { status, stdout, stderr } = spawnSync(
      analyze,
      [...args, join(root, 'usr/lib/systemd/system/svc.service')],
      { encoding: 'utf8' },
    )
    assert.equal(status, 0, `${stdout}${stderr}`)
    const level = Number(/Overall exposure level for svc\.service: ([\d.]+)/.exec(stdout)?.[1])
    t.diagnostic(`${dropIns.join() || 'agent'}: ${level}`)
    return level
  }
  assert.ok(exposure(['collector']) < exposure([]))
})

/** Values of a directive, of all its lines. */
function values(unit: string, directive: string): string[] {
  const lines = [...text(unit).matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))]
  return lines.flatMap(([, value]) => value!.split(' '))
}

test('what doctor tells owners of a unit to add is in the units', () => {
  const wanted = new Map<string, Set<string>>()
  for (const { capabilities = [], faults } of table) {
    add(
      'AmbientCapabilities',
      capabilities.map(name => `CAP_${name}`),
    )
    for (const { hints } of Object.values(faults)) {
      const [, directive, value] = /^(\w+)=(\S[\w@ -]*)$/.exec(hints.systemd ?? '') ?? []
      // Drop-ins, and what the kernel or the host must be like, are not for everybody.
      if (
        directive &&
        /^(SystemCallFilter|RestrictAddressFamilies|StateDirectory|RuntimeDirectory|LimitMEMLOCK)$/.test(
          directive,
        )
      )
        add(directive, value!.split(' '))
    }
  }
  function add(directive: string, all: readonly string[]): void {
    wanted.set(directive, new Set([...(wanted.get(directive) ?? []), ...all]))
  }
  assert.ok(wanted.size >= 4, [...wanted.keys()].join())
  for (const unit of ['svc.service', 'svc-doctor.service'])
    for (const [directive, all] of wanted)
      for (const value of all)
        assert.ok(values(unit, directive).includes(value), `${unit}: ${directive}=${value}`)
  assert.deepEqual(
    values('svc.service', 'AmbientCapabilities'),
    values('svc.service', 'CapabilityBoundingSet'),
  )
})
