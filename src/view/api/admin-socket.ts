// The Unix socket on which commands of this host reach the agent.

import { chmodSync, lstatSync, mkdtempSync, renameSync, rmSync, type Stats } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { makeOwnDirectory } from '../../foundation/lib/own-directory.ts'

/** Longest path of a socket, without the terminating zero (unix(7)). */
const mostPathBytes = 107
const answerMs = 1000

/**
 * Makes a server listen on a Unix socket that only its owner may open, and returns a function that removes it. The
 * socket is created in a private directory and then moved: its permissions are never wider, an abandoned socket is
 * replaced at once, and the end of the server cannot remove the socket of another agent. Rejects with a readable
 * message if the path is another kind of file, or a server answers there.
 */
export async function listenOnSocket(server: Server, path: string): Promise<() => void> {
  const fault = (why: string, cause?: unknown) =>
    new Error(`cannot listen on ${path} (self_telemetry.admin_socket): ${why}`, { cause })
  const there = statOf(path)
  if (there !== undefined) {
    if (!there.isSocket())
      throw fault('the path exists and is not a socket; remove it, or choose another path')
    if (await answers(path)) throw fault('another agent uses it; give each agent its own path')
  }
  const directory = dirname(path)
  let own: string | undefined
  try {
    makeOwnDirectory(directory, { mode: 0o755, isShared: true })
    own = mkdtempSync(join(directory, '.svc-'))
    const made = join(own, 's')
    if (Buffer.byteLength(made) > mostPathBytes)
      throw new Error('its directory is too long; choose a shorter path')
    await listen(server, made)
    chmodSync(made, 0o600)
    const { dev, ino } = lstatSync(made)
    renameSync(made, path)
    return () => {
      const now = statOf(path)
      if (now?.dev === dev && now.ino === ino) rmSync(path, { force: true })
    }
  } catch (error) {
    server.close()
    throw fault((error as Error).message, error)
  } finally {
    if (own !== undefined) rmSync(own, { recursive: true, force: true })
  }
}

function statOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Whether a server accepts connections on a socket. Only a refusal shows that none does. */
function answers(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    const done = (answered: boolean) => {
      socket.destroy()
      resolve(answered)
    }
    socket.setTimeout(answerMs, () => done(true))
    socket.once('connect', () => done(true))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      done(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    )
  })
}
