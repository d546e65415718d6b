import { number, orAuto, size } from '../schema/kinds.ts'
import { branch, key } from '../schema/tree.ts'

const Mi = 1024 * 1024

export const limits = branch('What svc itself may take of its host.', {
  memory: key(
    orAuto(size({ min: 160 * Mi, max: 64 * 1024 * Mi })),
    'auto',
    'Memory of the whole agent. `auto`: 40 % of what the control group, else the host, has, at least 160Mi, at most 512Mi. Near it svc first empties caches, then leaves out detail, then takes in nothing new but counts it.',
    { restart: true },
  ),
  cpu: key(
    orAuto(number({ min: 0.05, max: 1024 })),
    'auto',
    'CPU of the whole agent in cores, on average over seconds. `auto`: 5 % of those that it may use, at least 0.5. Above it the part that costs most does less, and svc says so: fewer spans, profiles or process events, TLS libraries found later, log files read more slowly. Request metrics and host metrics stay whole.',
    { restart: true },
  ),
})
