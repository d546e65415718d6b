// owns: load
// The journal of a machine that systemd has started, read by the agent in it.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Guest, withoutGuest } from '../helpers/guest.ts'
import { guestProgram } from '../helpers/guest-bundle.ts'
import { until } from '../helpers/program.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-bundle-'))
const port = 19090
const config = {
  self_telemetry: { listen: `127.0.0.1:${port}` },
  agent: {
    ebpf: false,
    nodeexporter: false,
    discovery: false,
    logs: { container_logs: false, journald: true, position_file: '/run/svc-positions' },
  },
}

interface Shown {
  readonly body: string
  readonly severity: string
  readonly pid: number
}

let guest: Guest

before(async () => {
  if (withoutGuest) return
  guest = await Guest.start({
    init: ['/usr/lib/systemd/systemd'],
    files: { '/opt/svc/config.yaml': JSON.stringify(config) }, // JSON is YAML
    trees: await guestProgram(directory),
    links: { '/etc/systemd/system/serial-getty@ttyS0.service': '/dev/null' },
  })
  await until('systemd has started all', 120_000, async () =>
    /^(running|degraded)/.test(await guest.run('systemctl is-system-running || true')),
  )
  await guest.run('systemd-run --unit=svc /opt/svc/bin/svc run --config /opt/svc/config.yaml')
  await until('the agent answers', 120_000, () =>
    ask('/status/logs').then(
      text => text.includes('"enabled":true'),
      () => false,
    ),
  )
})
after(async () => {
  await guest?.stop()
  rmSync(directory, { recursive: true })
})

async function ask(path: string): Promise<string> {
  const reply = await guest.run(`exec 3<>/dev/tcp/127.0.0.1/${port}
    printf 'GET ${path} HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3
    cat <&3`)
  return reply.slice(reply.indexOf('\r\n\r\n') + 4)
}

async function shown(body: string): Promise<Shown> {
  let found: Shown | undefined
  await until(
    () => `"${body}" is shown`,
    60_000,
    async () => {
      const { records } = JSON.parse(await ask('/logs?limit=100')) as { records: Shown[] }
      found = records.find(record => record.body === body)
      return found !== undefined
    },
  )
  return found!
}

test('what units of a live systemd write is told at once, with its severity and process', {
  skip: withoutGuest,
}, async () => {
  await guest.run(`systemd-run --wait --unit=shop bash -c 'echo "ordered by $$$$"; echo "<3>no stock" >&2'`)
  assert.equal((await shown('no stock')).severity, 'ERROR')
  const { records } = JSON.parse(await ask('/logs?limit=100')) as { records: Shown[] }
  const ordered = records.find(({ body }) => body.startsWith('ordered by '))
  assert.equal(ordered?.pid, Number(ordered?.body.split(' ').at(-1)))
})

test('after a restart of the agent the journal goes on where it was', { skip: withoutGuest }, async () => {
  await guest.run(`systemd-cat -t shop echo before`)
  await shown('before')
  // Positions are kept once in a second, when the records are secured.
  await until('the place is kept', 30_000, async () =>
    /"journal":"s=/.test(await guest.run('cat /run/svc-positions || true')),
  )
  await guest.run('systemctl stop svc; systemd-cat -t shop echo meanwhile')
  await guest.run('systemd-run --unit=svc2 /opt/svc/bin/svc run --config /opt/svc/config.yaml')
  await until('the agent answers', 120_000, () => ask('/status/logs').then(Boolean, () => false))
  assert.equal((await shown('meanwhile')).severity, 'INFO')
})
