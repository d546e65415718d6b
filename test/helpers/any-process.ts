import type { ProcessSelector } from '../../src/identity/entities/selection.ts'

/** Matches every process; override its fields to build a selector. */
export const anyProcess: ProcessSelector = {
  ports: [],
  executable: '',
  name: '',
  namespace: '',
  podName: '',
  deploymentName: '',
  daemonsetName: '',
  statefulsetName: '',
  containerName: '',
  podLabels: new Map(),
}
