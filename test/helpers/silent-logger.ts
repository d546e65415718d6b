import { createLogger } from '../../src/foundation/lib/logger.ts'

/** Writes nothing. */
export const silentLogger = createLogger({ level: 'error', format: 'json', write: () => undefined })
