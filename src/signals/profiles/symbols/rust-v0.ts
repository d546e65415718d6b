import { punycoded } from './punycode.ts'

/** Maximum paths, types and constants, counted at each reference: references can be nested. */
const mostSteps = 16_384
const mostDepth = 256
/** Maximum lifetimes of a binder; one or two are usual. */
const mostLifetimes = 64

const basicTypes: Readonly<Record<string, string>> = {
  a: 'i8',
  b: 'bool',
  c: 'char',
  d: 'f64',
  e: 'str',
  f: 'f32',
  h: 'u8',
  i: 'isize',
  j: 'usize',
  l: 'i32',
  m: 'u32',
  n: 'i128',
  o: 'u128',
  p: '_',
  s: 'i16',
  t: 'u16',
  u: '()',
  v: '...',
  x: 'i64',
  y: 'u64',
  z: '!',
}
const signedTypes = 'aslxni'
const unsignedTypes = 'htmyoj'
const namespaces: Readonly<Record<string, string>> = { C: 'closure', S: 'shim' }

/** Not a name of this form, or too long. */
class Refused extends Error {}

/**
 * Parses a name of Rust's v0 mangling after `_R` (RFC 2603 and "Symbol Mangling" in the rustc book). Steps, depth and
 * output are limited, as hostile names can expand without bound.
 */
export class RustV0 {
  readonly #text: string
  readonly #longest: number
  #at = 0
  #written = ''
  #skipping = 0
  #steps = 0
  #depth = 0
  #lifetimes = 0

  constructor(text: string, longest: number) {
    this.#text = text
    this.#longest = longest
  }

  /** Undefined: not such a name. */
  name(): string | undefined {
    try {
      this.#path(true)
      // The instantiating crate.
      if (this.#at < this.#text.length) this.#skip(() => this.#path(false))
    } catch (error) {
      if (error instanceof Refused) return undefined
      throw error
    }
    return this.#at === this.#text.length ? this.#written : undefined
  }

  /** `inValue`: generics are written `::<…>`. */
  #path(inValue: boolean): void {
    this.#enter()
    const tag = this.#next()
    if (tag === 'C') {
      this.#disambiguator()
      this.#write(this.#identifier())
    } else if (tag === 'N') this.#nested(inValue)
    else if (tag === 'M' || tag === 'X' || tag === 'Y') this.#member(tag)
    else if (tag === 'I') {
      this.#openGenerics(inValue)
      this.#write('>')
    } else if (tag === 'B') this.#reference(() => this.#path(inValue))
    else throw new Refused()
    this.#depth--
  }

  #nested(inValue: boolean): void {
    const namespace = this.#next()
    if (!/[A-Za-z]/.test(namespace)) throw new Refused()
    this.#path(inValue)
    const number = this.#disambiguator()
    const name = this.#identifier()
    if (/[A-Z]/.test(namespace)) {
      const kind = namespaces[namespace] ?? namespace
      this.#write(`::{${kind}${name === '' ? '' : `:${name}`}#${number}}`)
    } else if (name !== '') this.#write(`::${name}`)
  }

  /** Member of an inherent implementation, of a trait implementation, or of a trait. */
  #member(tag: 'M' | 'X' | 'Y'): void {
    if (tag !== 'Y') {
      this.#disambiguator()
      this.#skip(() => this.#path(false))
    }
    this.#write('<')
    this.#type()
    if (tag !== 'M') {
      this.#write(' as ')
      this.#path(false)
    }
    this.#write('>')
  }

  #openGenerics(inValue: boolean): void {
    this.#path(inValue)
    this.#write(inValue ? '::<' : '<')
    this.#list(() => this.#generic())
  }

  #generic(): void {
    if (this.#take('L')) this.#lifetime(this.#base62())
    else if (this.#take('K')) this.#constant()
    else this.#type()
  }

  #type(): void {
    this.#enter()
    const tag = this.#next()
    const basic = basicTypes[tag]
    if (basic !== undefined) this.#write(basic)
    else if (tag === 'R' || tag === 'Q') this.#borrow(tag)
    else if (tag === 'P' || tag === 'O') {
      this.#write(tag === 'P' ? '*const ' : '*mut ')
      this.#type()
    } else if (tag === 'A' || tag === 'S') this.#array(tag)
    else if (tag === 'T') this.#tuple()
    else if (tag === 'F') this.#binder(() => this.#signature())
    else if (tag === 'D') this.#dynamic()
    else if (tag === 'B') this.#reference(() => this.#type())
    else {
      this.#at--
      this.#path(false)
    }
    this.#depth--
  }

  #borrow(tag: 'R' | 'Q'): void {
    this.#write('&')
    const lifetime = this.#take('L') ? this.#base62() : 0
    if (lifetime > 0) {
      this.#lifetime(lifetime)
      this.#write(' ')
    }
    if (tag === 'Q') this.#write('mut ')
    this.#type()
  }

  #array(tag: 'A' | 'S'): void {
    this.#write('[')
    this.#type()
    if (tag === 'A') {
      this.#write('; ')
      this.#constant()
    }
    this.#write(']')
  }

  #tuple(): void {
    this.#write('(')
    if (this.#list(() => this.#type()) === 1) this.#write(',')
    this.#write(')')
  }

  #signature(): void {
    if (this.#take('U')) this.#write('unsafe ')
    if (this.#take('K')) {
      const abi = this.#take('C') ? 'C' : this.#identifier().replaceAll('_', '-')
      this.#write(`extern "${abi}" `)
    }
    this.#write('fn(')
    this.#list(() => this.#type())
    this.#write(')')
    if (this.#take('u')) return
    this.#write(' -> ')
    this.#type()
  }

  #dynamic(): void {
    this.#write('dyn ')
    this.#binder(() => this.#list(() => this.#dynamicTrait(), ' + '))
    if (!this.#take('L')) throw new Refused()
    const lifetime = this.#base62()
    if (lifetime > 0) {
      this.#write(' + ')
      this.#lifetime(lifetime)
    }
  }

  /** Associated types are listed among the generics of the trait. */
  #dynamicTrait(): void {
    let open = this.#openPath()
    while (this.#take('p')) {
      this.#write(open ? ', ' : '<')
      open = true
      this.#write(`${this.#identifier()} = `)
      this.#type()
    }
    if (open) this.#write('>')
  }

  /** Writes a path; true: without the closing bracket of its generics. */
  #openPath(): boolean {
    if (this.#take('B')) {
      let open = false
      this.#reference(() => {
        open = this.#openPath()
      })
      return open
    }
    if (this.#take('I')) {
      this.#openGenerics(false)
      return true
    }
    this.#path(false)
    return false
  }

  #constant(): void {
    this.#enter()
    const tag = this.#next()
    if (tag === 'B') this.#reference(() => this.#constant())
    else if (tag === 'p') this.#write('_')
    else if (unsignedTypes.includes(tag)) this.#write(this.#number())
    else if (signedTypes.includes(tag)) this.#write((this.#take('n') ? '-' : '') + this.#number())
    else if (tag === 'b') this.#write(this.#truth())
    else if (tag === 'c') this.#write(this.#character())
    else throw new Refused()
    this.#depth--
  }

  #number(): string {
    const digits = this.#hexadecimal()
    return digits.length > 16 ? `0x${digits}` : BigInt(`0x${digits || '0'}`).toString()
  }

  #truth(): string {
    const digits = this.#hexadecimal()
    if (digits !== '' && digits !== '1') throw new Refused()
    return digits === '1' ? 'true' : 'false'
  }

  #character(): string {
    const code = Number.parseInt(this.#hexadecimal() || '0', 16)
    if (!(code <= 0x10ffff) || (code >= 0xd800 && code <= 0xdfff)) throw new Refused()
    const named = { 9: '\\t', 10: '\\n', 13: '\\r', 39: "\\'", 92: '\\\\' }[code]
    const isPlain = code >= 0x20 && code < 0x7f
    return `'${named ?? (isPlain ? String.fromCharCode(code) : `\\u{${code.toString(16)}}`)}'`
  }

  /** Without leading zeros. */
  #hexadecimal(): string {
    const start = this.#at
    while (/[0-9a-f]/.test(this.#text[this.#at] ?? '')) this.#at++
    const digits = this.#text.slice(start, this.#at)
    if (!this.#take('_')) throw new Refused()
    return digits.replace(/^0+/, '')
  }

  #binder(content: () => void): void {
    const count = this.#take('G') ? this.#base62() + 1 : 0
    if (count > mostLifetimes) throw new Refused()
    const before = this.#lifetimes
    if (count > 0) {
      this.#write('for<')
      for (let i = 0; i < count; i++) {
        if (i > 0) this.#write(', ')
        this.#lifetimes++
        this.#lifetime(1)
      }
      this.#write('> ')
    }
    content()
    this.#lifetimes = before
  }

  /** 0: erased; 1: innermost bound lifetime. */
  #lifetime(index: number): void {
    if (index === 0) {
      this.#write("'_")
      return
    }
    const depth = this.#lifetimes - index
    // In skipped parts, references may miss their binder.
    if (depth < 0) throw new Refused()
    this.#write(depth < 26 ? `'${String.fromCharCode(97 + depth)}` : `'_${depth}`)
  }

  /** Elements up to an `E`; returns their number. */
  #list(element: () => void, between = ', '): number {
    let count = 0
    while (!this.#take('E')) {
      if (count++ > 0) this.#write(between)
      element()
    }
    return count
  }

  /** Parses an earlier part again. */
  #reference(read: () => void): void {
    const from = this.#at - 1
    const to = this.#base62()
    if (to >= from) throw new Refused()
    if (this.#skipping > 0) return
    const after = this.#at
    this.#at = to
    this.#enter()
    read()
    this.#depth--
    this.#at = after
  }

  #skip(read: () => void): void {
    this.#skipping++
    read()
    this.#skipping--
  }

  #identifier(): string {
    const isPunycode = this.#take('u')
    const digits = /^(0|[1-9][0-9]{0,3})/.exec(this.#text.slice(this.#at, this.#at + 4))?.[0]
    if (digits === undefined) throw new Refused()
    this.#at += digits.length
    this.#take('_')
    const end = this.#at + Number(digits)
    if (end > this.#text.length) throw new Refused()
    const bytes = this.#text.slice(this.#at, end)
    this.#at = end
    if (!isPunycode) return bytes
    const name = punycoded(bytes)
    if (name === undefined) throw new Refused()
    return name
  }

  #disambiguator(): number {
    return this.#take('s') ? this.#base62() + 1 : 0
  }

  /** Inexact above 2^53: only hashes are that large, and they are not written. */
  #base62(): number {
    let value = 0
    let digits = 0
    for (; !this.#take('_'); digits++) {
      const digit = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.indexOf(this.#next())
      if (digit < 0 || digits > 12) throw new Refused()
      value = value * 62 + digit
    }
    return digits === 0 ? 0 : value + 1
  }

  #next(): string {
    const character = this.#text[this.#at]
    if (character === undefined) throw new Refused()
    this.#at++
    return character
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at++
    return true
  }

  #enter(): void {
    if (++this.#steps > mostSteps || ++this.#depth > mostDepth) throw new Refused()
  }

  #write(text: string): void {
    if (this.#skipping > 0) return
    if (this.#written.length + text.length > this.#longest) throw new Refused()
    this.#written += text
  }
}
