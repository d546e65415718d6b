// What every profile of this process is before it is encoded: stacks with values.

/** One level of a stack. What V8 or this agent made up stands in parentheses, without a file. */
export interface Frame {
  readonly name: string
  /** `src/…`, `node_modules/…`, `node:…`, or empty. Never a path of this host. */
  readonly file: string
  /** From 1; 0: unknown. */
  readonly line: number
}

/** What one value of a sample counts. */
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
  /** Index into `types` of what is shown first. */
  readonly shown: number
  readonly samples: readonly StackSample[]
  /** Milliseconds since the Unix epoch. */
  readonly startMs: number
  /** Left out where the profile is of a moment. */
  readonly durationMs?: number
  readonly period: ValueType & { readonly value: number }
  /** Sentences for whoever reads the profile. */
  readonly comments: readonly string[]
}

/** A frame that stands for no code. */
export function named(name: string): Frame {
  return { name, file: '', line: 0 }
}

/** `name file:line`, as far as known. */
export function frameText({ name, file, line }: Frame): string {
  return file === '' ? name : line > 0 ? `${name} ${file}:${line}` : `${name} ${file}`
}
