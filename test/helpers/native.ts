import { test } from 'node:test'
import { loadNative, type Native, Unsupported } from '../../src/kernel/native.ts'

/** The addon, which tests cannot do without. */
export function nativeOrThrow(): Native {
  const native = loadNative()
  if (native instanceof Unsupported) throw new Error(`${native.reason}: ${native.hint}`)
  return native
}

/** The same on a kernel that has nothing in which programs keep what belongs to a socket or a task, as before 5.11. */
export function olderNative(): Native {
  const native = nativeOrThrow()
  const log = "libbpf: map 'kept': failed to create: Invalid argument(-22)\n"
  const objectLoad: Native['objectLoad'] = object =>
    native.objectMaps(object).some(({ type }) => type.endsWith('_storage'))
      ? { errno: 22, code: 'EINVAL', log }
      : native.objectLoad(object)
  return Object.create(native, { objectLoad: { value: objectLoad } }) as Native
}

let current = nativeOrThrow

/** The addon of the test of `testOnKernels` that runs. */
export const testedNative = (): Native => current()

/** A test of what is loaded by `testedNative`, for each of both kernels. */
export function testOnKernels(
  name: string,
  options: { readonly skip: string | false },
  body: () => void | Promise<void>,
): void {
  for (const [where, native] of [
    ['', nativeOrThrow],
    [', before Linux 5.12 as well', olderNative],
  ] as const)
    test(`${name}${where}`, options, async () => {
      current = native
      try {
        await body()
      } finally {
        current = nativeOrThrow
      }
    })
}
