import type { ElfFile } from '../../../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../../../foundation/lib/elf/elf-format.ts'
import { type FoundSymbol, findSymbols } from '../symbol-search.ts'

/** Field offsets in V8's objects, in bytes from their untagged address, and type numbers. */
export interface V8Constants {
  readonly functionShared: number
  readonly sharedName: number
  readonly sharedScript: number
  readonly scriptName: number
  readonly scriptSource: number
  readonly instanceType: number
  readonly stringLength: number
  readonly oneByteChars: number
  readonly twoByteChars: number
  readonly consFirst: number
  readonly consSecond: number
  readonly thinActual: number
  readonly slicedParent: number
  readonly slicedOffset: number
  readonly externalResource: number
  /** Instance types in maps. Strings are below `firstNonstring`. */
  readonly sharedType: number
  readonly scriptType: number
  readonly scopeInfoType: number
  readonly firstNonstring: number
  /** Words of a ScopeInfo before its variables: 3, or 5 if they include the positions (V8 13). */
  readonly scopeHeaderWords: number
}

const prefix = 'v8dbg_'

/** Symbol names end with the type of the field, which changes between versions. */
const names: { readonly [name in keyof V8Constants]: readonly string[] } = {
  functionShared: ['class_JSFunction__shared__'],
  sharedName: ['class_SharedFunctionInfo__name_or_scope_info__'],
  sharedScript: ['class_SharedFunctionInfo__script__', 'class_SharedFunctionInfo__script_or_debug_info__'],
  scriptName: ['class_Script__name__'],
  scriptSource: ['class_Script__source__'],
  instanceType: ['class_Map__instance_type__'],
  stringLength: ['class_String__length__'],
  oneByteChars: ['class_SeqOneByteString__chars__'],
  twoByteChars: ['class_SeqTwoByteString__chars__'],
  consFirst: ['class_ConsString__first__'],
  consSecond: ['class_ConsString__second__'],
  thinActual: ['class_ThinString__actual__'],
  slicedParent: ['class_SlicedString__parent__'],
  slicedOffset: ['class_SlicedString__offset__'],
  externalResource: ['class_ExternalString__resource__'],
  sharedType: ['type_SharedFunctionInfo__'],
  scriptType: ['type_Script__'],
  scopeInfoType: ['type_ScopeInfo__'],
  firstNonstring: ['FirstNonstringType'],
  scopeHeaderWords: ['scopeinfo_idx_first_vars'],
}

/** Assumptions of this code and the kernel side: 64-bit words without compression. */
const expected: readonly (readonly [string, number])[] = [
  ['TaggedSize', 8],
  ['HeapObjectTag', 1],
  ['HeapObjectTagMask', 3],
  ['SmiTag', 0],
  ['SmiTagMask', 1],
  ['SmiShiftSize', 31],
  ['StringRepresentationMask', 7],
  ['SeqStringTag', 0],
  ['ConsStringTag', 1],
  ['ExternalStringTag', 2],
  ['SlicedStringTag', 3],
  ['ThinStringTag', 5],
  ['StringEncodingMask', 8],
  ['OneByteStringTag', 8],
  ['off_fp_context', -8],
  ['off_fp_function', -16],
]

/** Larger than all V8 objects whose fields are read here. */
const mostOffset = 128

/**
 * V8's heap metadata for debuggers, in the symbols `v8dbg_*` (`tools/gen-postmortem-metadata.py` of V8). Undefined for
 * a file without them; a reason if this version is not supported.
 */
export function readConstants(elf: ElfFile): V8Constants | string | undefined {
  const symbols = findSymbols(elf, prefix)
  if (symbols.size === 0) return undefined
  const numberOf = (name: string) => {
    const symbol = symbols.get(prefix + name)
    return symbol && value(elf, symbol)
  }
  for (const [name, want] of expected) {
    const found = numberOf(name)
    if (found !== want) return `V8 with ${name} ${found ?? 'unknown'} is not supported`
  }
  const constants: Record<string, number> = {}
  for (const [key, prefixes] of Object.entries(names)) {
    const name = nameOf(symbols, prefixes)
    const found = name === undefined ? undefined : numberOf(name)
    if (found === undefined || found < 0) return `V8 without ${prefixes[0]} is not supported`
    const isOffset = prefixes[0]!.startsWith('class_')
    if (isOffset && found > mostOffset) return `V8 with ${name} ${found} is not supported`
    constants[key] = found
  }
  // Up to V8 8, ScopeInfo was a FixedArray, with an additional word at the start.
  const parent = nameOf(symbols, ['parent_ScopeInfo__'])
  if (parent !== undefined && parent !== 'parent_ScopeInfo__HeapObject')
    return 'V8 older than version 9 is not supported'
  return constants as unknown as V8Constants
}

function nameOf(symbols: ReadonlyMap<string, FoundSymbol>, prefixes: readonly string[]): string | undefined {
  for (const each of prefixes)
    for (const name of symbols.keys()) if (name.startsWith(prefix + each)) return name.slice(prefix.length)
  return undefined
}

/** Values are `int`. Zeros have no bytes in the file. */
function value(elf: ElfFile, { address }: FoundSymbol): number {
  const offset = elf.offsetOf(address)
  try {
    return offset === undefined ? 0 : elf.read(offset, 4).readInt32LE()
  } catch (error) {
    if (error instanceof ElfError) return 0
    throw error
  }
}
