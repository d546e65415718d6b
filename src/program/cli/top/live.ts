import { terminalText } from '../../../foundation/lib/terminal-text.ts'
import type { OverviewLine, PipelineLine, ServiceLine } from '../../../view/api/ui/documents.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { interrupted } from '../interrupted.ts'
import { penOf } from '../pen.ts'
import { followLines, parsed } from '../running-agent.ts'
import { output } from '../terminal.ts'
import { frameOf, pageRows } from './frame.ts'
import { type Line, lineText, lineWidth } from './line.ts'
import { overviewPath } from './lines.ts'
import { Screen } from './screen.ts'
import { newView, type Page, press, take, type View } from './view.ts'

/** Silence after which the agent, or the connection to it, counts as broken. */
const silenceMs = 5000

/**
 * Shows the live view until the user ends it. True: the agent has gone. Throws other errors, after restoring the
 * terminal.
 */
export async function live(client: AgentClient, what: string): Promise<boolean> {
  const top = new Top(client, what)
  return top.run()
}

class Top {
  readonly #client: AgentClient
  readonly #what: string
  readonly #view: View = newView()
  readonly #over = interrupted()
  readonly #screen: Screen
  readonly #pen = penOf(output().color)
  #heardMs = performance.now()
  /** The detail that the current page follows, aborted when the page changes. */
  #beside: { readonly page: Page; readonly name: string; readonly end: AbortController } | undefined
  #fault: unknown
  #isDue = false

  constructor(client: AgentClient, what: string) {
    this.#client = client
    this.#what = what
    this.#screen = new Screen({ onKey: key => this.#press(key), onResize: () => this.#paint() })
  }

  async run(): Promise<boolean> {
    const silence = setInterval(() => this.#watchSilence(), 1000)
    this.#screen.open()
    try {
      this.#paint()
      await followLines(
        this.#client,
        `${overviewPath}&follow=1`,
        this.#what,
        line => {
          this.#heardMs = performance.now()
          take(this.#view, parsed<OverviewLine>(line, this.#what))
          this.#view.trouble = ''
          this.#soon()
        },
        this.#over.signal,
      )
      if (this.#fault !== undefined) throw this.#fault
      return !this.#over.signal.aborted
    } finally {
      clearInterval(silence)
      this.#beside?.end.abort()
      this.#over.stop()
      this.#screen.close()
    }
  }

  #press(key: string): void {
    const { rows } = output()
    const wish = press(this.#view, key, pageRows({ rows }))
    if (wish === 'quit') this.#over.abort()
    else if (wish === 'suspend') this.#screen.suspend()
    else {
      this.#lookBeside()
      this.#soon()
    }
  }

  /** Follows only what the current page shows. */
  #lookBeside(): void {
    const { page, selected } = this.#view
    const name = page === 'service' ? selected : ''
    if (this.#beside?.page === page && this.#beside.name === name) return
    this.#beside?.end.abort()
    this.#beside = undefined
    if (page === 'services') return
    const beside = { page, name, end: new AbortController() }
    this.#beside = beside
    const path = page === 'service' ? `/ui/api/service?name=${encodeURIComponent(name)}` : '/ui/api/pipeline?'
    const onLine = (line: string) => {
      if (this.#beside !== beside) return
      if (page === 'service') this.#view.service = parsed<ServiceLine>(line, this.#what)
      else this.#view.pipeline = parsed<PipelineLine>(line, this.#what)
      this.#soon()
    }
    followLines(this.#client, `${path}&follow=1`, this.#what, onLine, beside.end.signal).catch(error => {
      this.#fault ??= error
      this.#over.abort()
    })
  }

  /** Draws simultaneous keys and lines once. */
  #soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#paint()
    })
  }

  #watchSilence(): void {
    const silentMs = performance.now() - this.#heardMs
    if (silentMs < silenceMs) return
    const seconds = Math.round(silentMs / 1000)
    this.#view.trouble = `The agent at ${this.#client.address} has sent nothing for ${seconds} s: the display is out of date.`
    this.#soon()
  }

  #paint(): void {
    const { unicode, columns, rows } = output()
    const canvas = { columns, rows, unicode, shown: (text: string) => terminalText(text, unicode) }
    const lines = frameOf(this.#view, canvas).slice(0, rows)
    // In the last column, erasing to the right would erase that character.
    const eraseRest = (line: Line) => (lineWidth(line) < columns ? '\x1b[K' : '')
    this.#screen.paint(lines.map(line => lineText(line, columns, this.#pen) + eraseRest(line)))
  }
}
