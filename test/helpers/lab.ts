// owns: host
import { BpfObject } from '../../src/kernel/bpf-object.ts'
import { readBtf } from '../../src/kernel/btf.ts'
import { compileBpf } from './compile-bpf.ts'
import { nativeOrThrow } from './native.ts'

let object: Uint8Array | undefined
export function labObject(): Uint8Array {
  object ??= compileBpf('lab')
  return object
}

/** The object lab.bpf.c, loaded, with its global variables by name. */
export class Lab {
  readonly native = nativeOrThrow()
  readonly object: BpfObject
  readonly #views = new Map<string, { view: DataView; offset: number; size: number }>()

  constructor(ringBytes = 4096) {
    const sections = readBtf(labObject()).sections
    this.object = BpfObject.load(this.native, labObject(), {
      name: 'lab',
      prepare: handle => {
        this.native.objectSetMaxEntries(handle, 'ring', ringBytes)
        const pid = new Uint8Array(Uint32Array.of(process.pid).buffer)
        const rodata = sections.find(section => section.name === '.rodata')!
        const { offset } = rodata.fields.find(field => field.name === 'target_pid')!
        this.native.objectSetData(handle, '.rodata', offset, pid)
      },
    })
    for (const { name, fields } of sections) {
      if (name === '.rodata') continue
      const view = new DataView(this.native.mapView(this.object.map(name)))
      for (const field of fields)
        this.#views.set(field.name, { view, offset: field.offset, size: field.size })
    }
  }

  set(name: string, value: number): void {
    const { view, offset } = this.#views.get(name)!
    view.setUint32(offset, value, true)
  }

  get(name: string): number {
    const { view, offset, size } = this.#views.get(name)!
    return size === 8 ? Number(view.getBigUint64(offset, true)) : view.getUint32(offset, true)
  }

  /** Makes the attached programs emit `count` records in one system call of this thread. */
  emit(count: number): void {
    this.set('burst', count)
    if (process.ppid < 0) throw new Error('getppid failed')
  }

  close(): void {
    this.object.close()
  }
}

/** Splits what a drain copied: the number in each record's head, its tag and its length. */
export function records(bytes: Uint8Array): { sequence: number; length: number; tag: number }[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = []
  for (let at = 0; at < bytes.length; ) {
    const length = view.getUint32(at, true)
    found.push({ sequence: view.getUint32(at + 8, true), length, tag: view.getUint32(at + 4, true) })
    at += 8 + ((length + 7) & ~7)
  }
  return found
}
