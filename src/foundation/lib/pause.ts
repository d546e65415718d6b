/** Resolves after a time, or as soon as `stop` is raised. Keeps no process alive. */
export function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer)
      stop.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms).unref()
    if (stop.aborted) end()
    else stop.addEventListener('abort', end)
  })
}
