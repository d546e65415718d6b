/** A value that an attribute may have. A number with no fraction is an integer on the wire, any other a double. */
export type AttributeValue = string | number | boolean | readonly string[]

/**
 * An ordered, reusable set of attributes: `clear` keeps the arrays, so that filling it again allocates nothing. Keys
 * and values are parallel arrays, of which only the first `size` entries are valid.
 */
export class Attributes {
  readonly keys: string[] = []
  readonly values: AttributeValue[] = []
  size = 0

  /** Copies the entries of a plain object, in its order. */
  static of(entries: Readonly<Record<string, AttributeValue>>): Attributes {
    const attributes = new Attributes()
    for (const key of Object.keys(entries)) attributes.set(key, entries[key]!)
    return attributes
  }

  clear(): void {
    this.size = 0
  }

  /** Clears the set and drops references to its values: for sets that stay empty in a pool. */
  forget(): void {
    for (let i = 0; i < this.size; i++) this.values[i] = ''
    this.size = 0
  }

  /** Adds an attribute. The caller guarantees that the key is not present yet. */
  add(key: string, value: AttributeValue): void {
    this.keys[this.size] = key
    this.values[this.size] = value
    this.size++
  }

  /** Adds an attribute or replaces its value. */
  set(key: string, value: AttributeValue): void {
    const at = this.#indexOf(key)
    if (at < 0) this.add(key, value)
    else this.values[at] = value
  }

  get(key: string): AttributeValue | undefined {
    const at = this.#indexOf(key)
    return at < 0 ? undefined : this.values[at]
  }

  delete(key: string): boolean {
    const at = this.#indexOf(key)
    if (at < 0) return false
    for (let i = at + 1; i < this.size; i++) {
      this.keys[i - 1] = this.keys[i]!
      this.values[i - 1] = this.values[i]!
    }
    this.size--
    return true
  }

  /** Returns a copy. */
  copy(): Attributes {
    const copy = new Attributes()
    for (let i = 0; i < this.size; i++) copy.add(this.keys[i]!, this.values[i]!)
    return copy
  }

  /** Returns a plain object, for display and tests. */
  toObject(): Record<string, AttributeValue> {
    const object: Record<string, AttributeValue> = {}
    for (let i = 0; i < this.size; i++) object[this.keys[i]!] = this.values[i]!
    return object
  }

  #indexOf(key: string): number {
    for (let i = 0; i < this.size; i++) if (this.keys[i] === key) return i
    return -1
  }
}
