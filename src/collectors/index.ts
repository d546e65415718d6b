import { loadavg } from './loadavg.ts'
import { vmstat } from './vmstat.ts'

/** All host collectors, in the order of their names. */
export const collectors = [loadavg, vmstat] as const
