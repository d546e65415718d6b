import { amountText, countText, partText, sizeText } from '../../../../foundation/lib/number-text.ts'
import { fitted } from '../../../../foundation/lib/terminal-text.ts'
import { type HostFigures, hostFigures } from '../figures.ts'
import { type Line, lineWidth, type Piece, spread } from '../line.ts'
import type { OverviewTick, View } from '../view.ts'
import type { Canvas } from './page.ts'

const million = 1e6
const longestName = 24

/** The host, and on the right the agent's usage and losses. On a narrow screen the host's numbers are cut first. */
export function headLine({ start, tick }: View, canvas: Canvas): Line {
  const { columns, shown } = canvas
  const agent = tick === undefined ? [] : agentPieces(tick.agent)
  const facts = factsOf(hostFigures(start, tick), canvas)
  const name = fitted(shown(start?.host.name ?? ''), longestName)
  const line = (): Piece[] => [' ', [name, 'bold'], ...facts.map(fact => `  ${fact}`)]
  while (facts.length > 0 && lineWidth(line()) + 2 + lineWidth(agent) > columns) facts.pop()
  return spread(line(), agent, columns)
}

function factsOf(figures: HostFigures, { unicode }: Canvas): string[] {
  const { cpuPercent, usedBytes, memoryBytes, receivedPerS, sentPerS } = figures
  const [down, up] = unicode ? ['↓', '↑'] : ['v', '^']
  const facts: string[] = []
  if (cpuPercent !== undefined) facts.push(`cpu ${Math.round(cpuPercent)}%`)
  if (usedBytes !== undefined) {
    const isPart = memoryBytes !== undefined && memoryBytes > usedBytes
    facts.push(`mem ${isPart ? partText(usedBytes, memoryBytes) : sizeText(usedBytes)}`)
  }
  if (receivedPerS !== undefined || sentPerS !== undefined)
    facts.push(`net ${rate(receivedPerS)}${down} ${rate(sentPerS)}${up} MB/s`)
  return facts
}

function agentPieces({ cpu_percent, rss_bytes, dropped }: OverviewTick['agent']): Piece[] {
  const lost: Piece = dropped > 0 ? [`drops ${countText(dropped)}!`, 'red'] : 'drops 0'
  return [`svc ${amountText(cpu_percent)}% cpu ${sizeText(rss_bytes)}  `, lost]
}

function rate(bytes: number | undefined): string {
  if (bytes === undefined) return '-'
  const value = bytes / million
  return value < 0.05 ? '0' : value < 0.95 ? value.toFixed(1) : String(Math.round(value))
}
