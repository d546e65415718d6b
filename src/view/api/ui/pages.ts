/** The pages below `/ui/`, in menu order. `service` is opened from others. */
export const pageIds = [
  'overview',
  'map',
  'traces',
  'metrics',
  'logs',
  'profiles',
  'pipeline',
  'agent',
  'service',
] as const

export type PageId = (typeof pageIds)[number]
