import type { ComponentType } from 'preact'
import type { PageId } from '../../src/api/ui/pages.ts'

export interface PageEntry {
  readonly id: PageId
  readonly title: string
  /** The question that it answers. */
  readonly question: string
  /** In the list of pages; others are opened from these. */
  readonly listed: boolean
  load(): Promise<{ readonly default: ComponentType }>
}

/** The pages. The first is shown where none is named. */
export const pages: readonly PageEntry[] = [
  {
    id: 'overview',
    title: 'Overview',
    question: 'Is this host all right, and is the agent?',
    listed: true,
    load: () => import('./overview.tsx'),
  },
  {
    id: 'map',
    title: 'Map',
    question: 'Who talks to whom?',
    listed: true,
    load: () => import('./map.tsx'),
  },
  {
    id: 'traces',
    title: 'Traces',
    question: 'What was slow or failed?',
    listed: true,
    load: () => import('./traces.tsx'),
  },
  {
    id: 'metrics',
    title: 'Metrics',
    question: 'What does this host measure?',
    listed: true,
    load: () => import('./metrics.tsx'),
  },
  {
    id: 'logs',
    title: 'Logs',
    question: 'What was said around then?',
    listed: true,
    load: () => import('./logs.tsx'),
  },
  {
    id: 'profiles',
    title: 'Profiles',
    question: 'Where does time go?',
    listed: true,
    load: () => import('./profiles.tsx'),
  },
  {
    id: 'pipeline',
    title: 'Pipeline',
    question: 'Where does data go, where is it lost?',
    listed: true,
    load: () => import('./pipeline.tsx'),
  },
  {
    id: 'agent',
    title: 'Agent',
    question: 'How is it set up, what can it not do?',
    listed: true,
    load: () => import('./agent.tsx'),
  },
  {
    id: 'service',
    title: 'Service',
    question: 'What does this service do?',
    listed: false,
    load: () => import('./service.tsx'),
  },
]
