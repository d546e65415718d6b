import type { ComponentType } from 'preact'
import type { PageId } from '../../src/view/api/ui/pages.ts'

export interface PageEntry {
  readonly id: PageId
  readonly title: string
  /** Subtitle of the page. */
  readonly subtitle: string
  /** Whether it is in the menu; others are opened from pages. */
  readonly listed: boolean
  load(): Promise<{ readonly default: ComponentType }>
}

/** The pages. The first is the default. */
export const pages: readonly PageEntry[] = [
  {
    id: 'overview',
    title: 'Overview',
    subtitle: 'Health of this host and the agent',
    listed: true,
    load: () => import('./overview.tsx'),
  },
  {
    id: 'map',
    title: 'Map',
    subtitle: 'Calls between services',
    listed: true,
    load: () => import('./map.tsx'),
  },
  {
    id: 'traces',
    title: 'Traces',
    subtitle: 'Slow and failed requests',
    listed: true,
    load: () => import('./traces.tsx'),
  },
  {
    id: 'metrics',
    title: 'Metrics',
    subtitle: 'Metrics of this host and the agent',
    listed: true,
    load: () => import('./metrics.tsx'),
  },
  {
    id: 'logs',
    title: 'Logs',
    subtitle: 'Recent and new log records',
    listed: true,
    load: () => import('./logs.tsx'),
  },
  {
    id: 'profiles',
    title: 'Profiles',
    subtitle: 'CPU time, waiting and memory by function',
    listed: true,
    load: () => import('./profiles.tsx'),
  },
  {
    id: 'pipeline',
    title: 'Pipeline',
    subtitle: 'Data flow, queues and losses',
    listed: true,
    load: () => import('./pipeline.tsx'),
  },
  {
    id: 'agent',
    title: 'Agent',
    subtitle: 'Configuration, degraded features and eBPF',
    listed: true,
    load: () => import('./agent.tsx'),
  },
  {
    id: 'service',
    title: 'Service',
    subtitle: 'Requests, errors and dependencies',
    listed: false,
    load: () => import('./service.tsx'),
  },
]
