import type { ProtocolUnit } from '../model/exchange.ts'
import { http1 } from './http1.ts'

/** Every application protocol, in the order in which documents list them. */
export const protocols: readonly ProtocolUnit[] = [http1]
