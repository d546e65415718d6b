import type { Schema } from './schema.ts'

/** A document about a subsystem; `Own` is its source. */
export interface StatusPage<Own = unknown> {
  readonly path: string
  readonly id: string
  readonly summary: string
  readonly schema: Schema<unknown>
  /** If absent, available to all who may read the status. */
  readonly access?: 'private'
  readonly costly?: true
  read(own: Own): unknown
}
