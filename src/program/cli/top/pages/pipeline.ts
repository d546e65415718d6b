import {
  amountText,
  countText,
  grouped,
  msText,
  partText,
  sizeText,
} from '../../../../foundation/lib/number-text.ts'
import { padLeft, padRight } from '../../../../foundation/lib/terminal-text.ts'
import type { PipelineLine } from '../../../../view/api/ui/documents.ts'
import { fillOf } from '../../bars.ts'
import { lossesOf, meaningOf } from '../../losses.ts'
import type { Line } from '../line.ts'
import type { View } from '../view.ts'
import type { Canvas } from './page.ts'

type Signal = PipelineLine['signals'][number]

/** Data flow and losses. */
export function pipelineLines({ pipeline }: View, canvas: Canvas): Line[] {
  if (pipeline === undefined) return [[], ['  Waiting for the agent.']]
  return [...signalLines(pipeline, canvas), ...lossLines(pipeline, canvas), ...nodeLines(pipeline, canvas)]
}

function signalLines({ signals }: PipelineLine, canvas: Canvas): Line[] {
  const head = ` ${padRight('SIGNAL', 9)}${padLeft('in/s', 7)}${padLeft('out/s', 7)}${padLeft('drop/s', 7)}${padLeft('QUEUED', 8)}  QUEUE`
  return [[[head, 'dim']], ...signals.map(signal => signalLine(signal, canvas)), []]
}

function signalLine(signal: Signal, { unicode }: Canvas): Line {
  const { collected_per_s, exported_per_s, dropped_per_s, queued, queued_bytes, capacity_bytes, full_in_s } =
    signal
  // Configured drops alone are no problem; whether others still continue is unknown.
  const isLossy = dropped_per_s > 0 && lossesOf({ signals: [signal] }).some(({ isIntended }) => !isIntended)
  const fill = capacity_bytes > 0 ? queued_bytes / capacity_bytes : 0
  const soon = full_in_s === null ? '' : `  full in ${msText(full_in_s * 1000)}`
  const oldest = signal.oldest_ms > 0 ? `  oldest ${msText(signal.oldest_ms)}` : ''
  return [
    ` ${padRight(signal.signal, 9)}${padLeft(amountText(collected_per_s), 7)}${padLeft(amountText(exported_per_s), 7)}`,
    [padLeft(`${amountText(dropped_per_s)}${isLossy ? '!' : ''}`, 7), isLossy ? 'red' : undefined],
    `${padLeft(countText(queued), 8)}  `,
    [fillOf(fill, unicode), fill > 0.8 ? 'red' : fill > 0.5 ? 'yellow' : undefined],
    ` ${signal.durable ? `${sizeText(queued_bytes)} disk` : partText(queued_bytes, capacity_bytes)}`,
    [soon, 'yellow'],
    [oldest, 'dim'],
  ]
}

function lossLines(pipeline: PipelineLine, { shown }: Canvas): Line[] {
  const lost = lossesOf(pipeline)
  if (lost.length === 0) return [['  Nothing dropped since start.'], []]
  const rows = lost.map(
    (loss): Line => [
      ` ${padRight(loss.signal, 9)}`,
      [padLeft(grouped(loss.items), 12), loss.isIntended ? undefined : 'red'],
      `${loss.isIntended ? ' ' : '!'} ${shown(loss.reason)}${meaningOf(loss)}`,
    ],
  )
  return [[[' DROPPED SINCE START', 'dim']], ...rows, []]
}

function nodeLines({ nodes }: PipelineLine, { shown }: Canvas): Line[] {
  const kinds = ['source', 'processor', 'queue', 'exporter'] as const
  const look = { ok: 'green', limited: 'yellow', failed: 'red', off: 'dim' } as const
  return kinds.flatMap(kind =>
    nodes
      .filter(node => node.kind === kind)
      .map(
        ({ name, state, reason }): Line => [
          ` ${padRight(kind, 10)}`,
          [padRight(state, 8), look[state]],
          shown(name),
          reason === '' ? '' : `: ${shown(reason)}`,
        ],
      ),
  )
}
