// A real systemd of its own: see test/fixtures/systemd/manager.sh.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withoutRoot } from './host-needs.ts'
import { until } from './program.ts'

export const systemdFixtures = join(import.meta.dirname, '../fixtures/systemd')

const missing = ['/usr/lib/systemd/systemd', '/usr/bin/dbus-daemon', '/usr/bin/busctl'].filter(
  path => !existsSync(path),
)

/** Why tests with it are skipped; false where they run. */
export const withoutSystemd = missing.length > 0 ? `a real systemd needs ${missing.join(', ')}` : withoutRoot

const destination = 'org.freedesktop.systemd1'

/** A manager of user nobody, in namespaces of its own. Its units see `directory` as /run/own. */
export class UserSystemd {
  readonly directory: string
  readonly #process: ChildProcess

  private constructor(directory: string, process: ChildProcess) {
    this.directory = directory
    this.#process = process
  }

  /** With the units of a directory, of which it starts default.target. */
  static async start(units: string): Promise<UserSystemd> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-systemd-'))
    const child = spawn('bash', [join(systemdFixtures, 'manager.sh'), directory, units])
    let said = ''
    let out = ''
    child.stderr.on('data', text => {
      said += text
    })
    child.stdout.on('data', text => {
      out += text
    })
    const ended = () => child.exitCode !== null
    await until(
      () => `systemd is ready: ${said}`,
      60_000,
      () => out.includes('ready') || ended(),
    )
    assert.ok(out.includes('ready'), said)
    return new UserSystemd(directory, child)
  }

  /** Of its bus. */
  get address(): string {
    return `unix:path=${join(this.directory, 'bus')}`
  }

  /** Asks it by a program that has a D-Bus of its own. */
  busctl(...args: readonly string[]): string {
    const { stdout, stderr } = spawnSync('busctl', [`--address=${this.address}`, ...args])
    assert.equal(String(stderr), '')
    return String(stdout).trim()
  }

  /** A property of its own, or the answer of one of its methods, as busctl writes it. */
  manager(call: 'get-property' | 'call', ...args: readonly string[]): string {
    return this.busctl(call, destination, '/org/freedesktop/systemd1', `${destination}.Manager`, ...args)
  }

  /** A property of a service, without its type and its quotation marks. */
  service(name: string, kind: 'Unit' | 'Service', property: string): string {
    const path = `/org/freedesktop/systemd1/unit/${name.replaceAll('.', '_2e')}`
    const said = this.busctl('get-property', destination, path, `${destination}.${kind}`, property)
    const value: unknown = JSON.parse(said.slice(said.indexOf(' ') + 1))
    return String(value)
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null) {
      this.#process.stdin!.end()
      await new Promise(resolve => this.#process.once('close', resolve))
    }
    rmSync(this.directory, { recursive: true, force: true })
  }
}
