/**
 * What a promise resolves with, and what it rejects with; where that takes longer than `ms`, what `late` returns or
 * throws, undefined without it. The work goes on.
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
