// Records the pictures of the documentation from the demo: starts an agent, the demo and a browser, as root, and waits
// until there is data.
//   node tools/screenshot.ts [PAGE [FILE]]      PAGE: map, overview, traces, …
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { AgentProcess } from '../test/helpers/agent-process.ts'
import { LiveBrowser } from '../test/helpers/browser.ts'
import { demoPorts, startDemo } from '../test/helpers/demo.ts'
import { pause, until } from '../test/helpers/program.ts'

const root = resolve(import.meta.dirname, '..')
const [page = 'overview', to = 'docs/images/live-page.png'] = process.argv.slice(2)
const file = resolve(root, to)
const mostBytes = 300_000
/** For charts of two minutes, and profiles with symbols. */
const waitMs = Number(process.env.WAIT_SECONDS ?? 150) * 1000

const directory = mkdtempSync(join(tmpdir(), 'svc-screenshot-'))
const open: (() => Promise<unknown>)[] = []
try {
  const ports = await demoPorts()
  const agent = await AgentProcess.spawn({
    ports: Object.values(ports),
    config: {
      agent: {
        nodeexporter: { listen_address: '127.0.0.1:0' },
        profiling: { enabled: true },
        logs: { enabled: true, container_logs: false, paths: [`${directory}/*/*.log`] },
        ebpf: { network: { tcp_metrics: true, sampling: { max_spans_per_second: 1000 } } },
      },
    },
    // The name of this machine is meaningless to readers.
    wrapper: ['unshare', '--uts', 'sh', '-c', 'hostname shop-1 && exec "$@"', 'sh'],
  })
  open.push(() => agent.stop())
  await until('the agent is ready', 120_000, async () => {
    const { status } = await agent.get('/ready').catch(() => ({ status: 0 }))
    return status === 200
  })
  const demo = startDemo({ ports, agentPort: agent.port, perSecond: 20, directory })
  open.push(() => demo.end())
  const browser = await LiveBrowser.start()
  open.push(() => browser.close())
  const { page: tab, faults } = await browser.open(`http://127.0.0.1:${agent.port}/ui/${page}`, {
    width: 1280,
    height: 800,
  })
  await pause(waitMs)
  mkdirSync(dirname(file), { recursive: true })
  await tab.screenshot({ path: file })
  if (faults.length > 0) throw new Error(`the page has faults:\n${faults.join('\n')}`)
} finally {
  for (const close of open.reverse()) await close()
  rmSync(directory, { recursive: true, force: true })
}
const { size } = statSync(file)
console.log(`${file}: ${Math.ceil(size / 1000)} kB`)
if (size > mostBytes) throw new Error(`the picture has more than ${mostBytes / 1000} kB`)
