// The configuration, the degraded features and the eBPF programs of the agent.

import { useSignal } from '@preact/signals'
import type { AgentDocument } from '../../src/view/api/ui/documents.ts'
import { announce } from '../lib/announce.ts'
import { apiUrl, readText } from '../lib/api.ts'
import { duration } from '../lib/format.ts'
import { useDocument } from '../lib/live.ts'
import { Command } from '../parts/command.tsx'
import { download } from '../parts/download.ts'
import { Head, Pill } from '../parts/small.tsx'
import { Reading } from '../parts/state.tsx'
import { Configuration } from './agent/configuration.tsx'
import { Doctor } from './agent/doctor.tsx'
import { Kernel } from './agent/kernel.tsx'
import { Memory } from './agent/memory.tsx'

export default function AgentPage() {
  const again = useSignal(0)
  const reading = useDocument<AgentDocument>(apiUrl('agent'), again.value)
  return (
    <>
      <Head title="Agent" subtitle="Configuration, degraded features and eBPF">
        <button
          type="button"
          onClick={() => {
            again.value++
          }}
        >
          Refresh
        </button>
      </Head>
      <Reading of={reading} what="the agent">
        {() => (
          <>
            <div class="grid">
              <About agent={reading.value!} />
              <Limits rows={reading.value!.degraded} />
            </div>
            <Memory memory={reading.value!.memory} />
            <Doctor />
            <Configuration agent={reading.value!} onReload={() => again.value++} />
            <Kernel agent={reading.value!} />
          </>
        )}
      </Reading>
    </>
  )
}

function About({ agent }: { readonly agent: AgentDocument }) {
  const { version, commit, built, runtime, pid, uptime_s, config_file } = agent
  const fault = useSignal('')
  const logs = async () => {
    try {
      download('svc-log.ndjson', 'application/x-ndjson', await readText('/admin/logs'))
      announce('Log downloaded.')
      fault.value = ''
    } catch (error) {
      fault.value = (error as Error).message
    }
  }
  const facts: readonly (readonly [string, string])[] = [
    ['Version', `${version}, commit ${commit}`],
    ['Built', built],
    ['Runtime', `Node.js ${runtime}`],
    ['Process ID', String(pid)],
    ['Uptime', duration(uptime_s * 1000)],
    ['Configuration', config_file === '' ? 'no file (defaults)' : config_file],
  ]
  return (
    <section class="card stack" aria-label="About">
      <h2>About</h2>
      <dl class="facts">
        {facts.map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{value}</dd>])}
      </dl>
      <div class="row">
        <button type="button" onClick={logs}>
          Download log
        </button>
        <span class="soft">Support bundle:</span>
        <Command text="svc diagnostics --output svc.tar.gz" />
      </div>
      {fault.value === '' ? null : <p class="notice">{fault.value}</p>}
    </section>
  )
}

function Limits({ rows }: { readonly rows: AgentDocument['degraded'] }) {
  return (
    <section class="card stack" aria-label="Degraded features">
      <h2>Degraded features</h2>
      {rows.length === 0 ? (
        <p class="note">None.</p>
      ) : (
        <ul class="stack">
          {rows.map(({ subsystem, reason, hint }) => (
            <li key={`${subsystem} ${reason}`}>
              <Pill level="limited" text={subsystem} /> {reason}
              {hint === '' ? null : <p class="soft">{hint}</p>}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
