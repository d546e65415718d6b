import { number, orAuto, size } from '../foundation/schema/kinds.ts'
import { branch, key } from '../foundation/schema/tree.ts'

const Mi = 1024 * 1024

export const limits = branch('Resource limits of svc itself.', {
  memory: key(
    orAuto(size({ min: 160 * Mi, max: 64 * 1024 * Mi })),
    'auto',
    'Memory limit of the whole agent. `auto`: 40 % of the memory of the control group, else of the host, at least 160Mi, at most 512Mi. Close to the limit svc first empties caches, then drops detail, then accepts no new data and counts it.',
    { restart: true },
  ),
  cpu: key(
    orAuto(number({ min: 0.05, max: 1024 })),
    'auto',
    'CPU limit of the whole agent in cores, averaged over seconds. `auto`: 5 % of the available cores, at least 0.5. Above the limit the most expensive part does less, and svc reports it: fewer spans, profiles or process events, later detection of TLS libraries, slower reading of log files. Request metrics and host metrics stay complete.',
    { restart: true },
  ),
})
