import type { PipelineLine } from '../../../api/ui/documents.ts'
import { amountText, countText, grouped, msText, partText } from '../../number-text.ts'
import { leftIn, rightIn } from '../../shown-text.ts'
import type { Line } from '../line.ts'
import type { View } from '../view.ts'
import type { Canvas } from './page.ts'

type Signal = PipelineLine['signals'][number]

/** Where data goes and where it is lost. */
export function pipelineLines({ pipeline }: View, canvas: Canvas): Line[] {
  if (pipeline === undefined) return [[], ['  Waiting for the agent.']]
  return [...signalLines(pipeline, canvas), ...lossLines(pipeline, canvas), ...nodeLines(pipeline, canvas)]
}

function signalLines({ signals }: PipelineLine, canvas: Canvas): Line[] {
  const head = ` ${leftIn('SIGNAL', 9)}${rightIn('in/s', 7)}${rightIn('out/s', 7)}${rightIn('lost/s', 7)}${rightIn('QUEUED', 8)}  QUEUE`
  return [[[head, 'dim']], ...signals.map(signal => signalLine(signal, canvas)), []]
}

function signalLine(signal: Signal, { unicode }: Canvas): Line {
  const { collected_per_s, exported_per_s, dropped_per_s, queued, queued_bytes, capacity_bytes, full_in_s } =
    signal
  const fill = capacity_bytes > 0 ? Math.min(1, queued_bytes / capacity_bytes) : 0
  const full = Math.ceil(fill * 10)
  const bar = (unicode ? '█' : '#').repeat(full) + (unicode ? '░' : '.').repeat(10 - full)
  const soon = full_in_s === null ? '' : `  full in ${msText(full_in_s * 1000)}`
  const oldest = signal.oldest_ms > 0 ? `  oldest ${msText(signal.oldest_ms)}` : ''
  return [
    ` ${leftIn(signal.signal, 9)}${rightIn(amountText(collected_per_s), 7)}${rightIn(amountText(exported_per_s), 7)}`,
    [
      rightIn(`${amountText(dropped_per_s)}${dropped_per_s > 0 ? '!' : ''}`, 7),
      dropped_per_s > 0 ? 'red' : undefined,
    ],
    `${rightIn(countText(queued), 8)}  `,
    [bar, fill > 0.8 ? 'red' : fill > 0.5 ? 'yellow' : undefined],
    ` ${partText(queued_bytes, capacity_bytes)}${signal.durable ? ' disk' : ''}`,
    [soon, 'yellow'],
    [oldest, 'dim'],
  ]
}

function lossLines({ signals }: PipelineLine, { shown }: Canvas): Line[] {
  const lost = signals.flatMap(({ signal, dropped, rejected }) => [
    ...dropped.filter(({ items }) => items > 0).map(({ reason, items }) => ({ signal, reason, items })),
    ...(rejected > 0 ? [{ signal, reason: 'rejected by the receiver', items: rejected }] : []),
  ])
  if (lost.length === 0) return [['  Nothing was lost since the start.'], []]
  const rows = lost
    .toSorted((a, b) => b.items - a.items)
    .map(
      ({ signal, reason, items }): Line => [
        ` ${leftIn(signal, 9)}`,
        [rightIn(grouped(items), 12), 'red'],
        ` ${shown(reason)}`,
      ],
    )
  return [[[' LOST SINCE THE START', 'dim']], ...rows, []]
}

function nodeLines({ nodes }: PipelineLine, { shown }: Canvas): Line[] {
  const kinds = ['source', 'processor', 'queue', 'exporter'] as const
  const look = { ok: 'green', limited: 'yellow', failed: 'red', off: 'dim' } as const
  return kinds.flatMap(kind =>
    nodes
      .filter(node => node.kind === kind)
      .map(
        ({ name, state, reason }): Line => [
          ` ${leftIn(kind, 10)}`,
          [leftIn(state, 8), look[state]],
          shown(name),
          reason === '' ? '' : `: ${shown(reason)}`,
        ],
      ),
  )
}
