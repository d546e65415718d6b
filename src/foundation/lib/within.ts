/**
 * Settles like `work`; if that takes longer than `ms`, returns or throws like `late`, or resolves with undefined
 * without it. The work continues.
 */
export async function within<T, L = undefined>(
  ms: number,
  work: Promise<T>,
  late: () => L = () => undefined as L,
): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined
  const passed = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  try {
    return await Promise.race([work, passed.then(late)])
  } finally {
    clearTimeout(timer)
  }
}
