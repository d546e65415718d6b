import { alibaba } from './alibaba.ts'
import { aws } from './aws.ts'
import { azure } from './azure.ts'
import { digitalocean } from './digitalocean.ts'
import { gcp } from './gcp.ts'
import { oracle } from './oracle.ts'

/** The units of this area: each reads the metadata service of a cloud. */
export const clouds = [aws, gcp, azure, alibaba, oracle, digitalocean] as const
