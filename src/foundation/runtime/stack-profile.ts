// Common form of all profiles of this process before encoding: stacks with values.

/** One level of a stack. Pseudo-functions of V8 or this agent are in parentheses, without a file. */
export interface Frame {
  readonly name: string
  /** `src/…`, `node_modules/…`, `node:…`, or empty. Never a path of this host. */
  readonly file: string
  /** From 1; 0: unknown. */
  readonly line: number
}

/** The type and unit of a sample's value. */
export interface ValueType {
  readonly type: string
  readonly unit: 'count' | 'bytes' | 'nanoseconds'
}

export interface StackSample {
  /** Innermost first. */
  readonly stack: readonly Frame[]
  /** In the order of the profile's types. */
  readonly values: readonly number[]
}

export interface StackProfile {
  readonly name: string
  readonly types: readonly ValueType[]
  /** Index into `types` of the type that is shown by default. */
  readonly shown: number
  readonly samples: readonly StackSample[]
  /** Milliseconds since the Unix epoch. */
  readonly startMs: number
  /** Undefined for a snapshot. */
  readonly durationMs?: number
  readonly period: ValueType & { readonly value: number }
  /** Sentences for readers of the profile. */
  readonly comments: readonly string[]
}

/** A frame without code. */
export function named(name: string): Frame {
  return { name, file: '', line: 0 }
}

/** `name file:line`, as far as known. */
export function frameText({ name, file, line }: Frame): string {
  return file === '' ? name : line > 0 ? `${name} ${file}:${line}` : `${name} ${file}`
}
