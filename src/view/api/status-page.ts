import type { ApiPath } from '../../config/api-paths.ts'
import type { Schema } from './schema.ts'

/** A document about a subsystem; `Own` is its source. */
export interface StatusPage<Own = unknown> {
  readonly path: ApiPath
  readonly id: string
  readonly summary: string
  readonly schema: Schema<unknown>
  /** If absent, available to all who may read the status. */
  readonly access?: 'private'
  readonly costly?: true
  read(own: Own): unknown
}
