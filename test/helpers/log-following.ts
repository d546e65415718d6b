// Follows logs and keeps what it is handed: for tests, and as a program that a test kills.
//   log-following.ts PATTERN POSITIONS OUTPUT    writes each line to OUTPUT, `path\tline`; says "following" when it does

import { fdatasyncSync, openSync, realpathSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { RemoteFiles } from '../../src/kernel/remote-files.ts'
import type { FollowedFile, LineReader, LogSource } from '../../src/signals/logs/line-reader.ts'
import { LogFollower, type LogFollowerOptions } from '../../src/signals/logs/log-follower.ts'
import { LogPositions } from '../../src/signals/logs/log-positions.ts'
import { RemoteLogs } from '../../src/signals/logs/remote-logs.ts'
import { silentLogger } from './silent-logger.ts'

export type TakeLine = (line: string, file: FollowedFile) => void

/** Hands on each line as it is. */
export class PlainReader implements LineReader {
  readonly odd = 0
  readonly heldFrom: number = -1
  readonly #file: FollowedFile
  readonly #take: TakeLine

  constructor(file: FollowedFile, take: TakeLine) {
    this.#file = file
    this.#take = take
  }

  line(bytes: Uint8Array, from: number, to: number): void {
    this.#take(Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString(), this.#file)
  }

  flush(): void {}
}

export function plainSource(patterns: readonly string[], take: TakeLine): LogSource {
  return {
    name: 'files',
    patterns: () => patterns,
    excluded: () => false,
    reader: file => new PlainReader(file, take),
  }
}

/** Lines in their order, and the follower that brings them. */
export class Following {
  readonly lines: string[] = []
  readonly files: FollowedFile[] = []
  readonly warnings: string[] = []
  readonly follower: LogFollower
  pressure = 0

  constructor(patterns: readonly string[], positionFile: string, options: Partial<LogFollowerOptions> = {}) {
    const warn = (message: string) => this.warnings.push(message)
    this.follower = new LogFollower({
      sources: [
        plainSource(patterns, (line, file) => {
          this.lines.push(line)
          this.files.push(file)
        }),
      ],
      positions: new LogPositions(positionFile, warn),
      remoteLogs: new RemoteLogs(new RemoteFiles({ log: silentLogger })),
      startAt: 'end',
      maxLineBytes: 64 * 1024,
      pressure: () => this.pressure,
      secured: () => Promise.resolve(),
      warn,
      ...options,
    })
  }

  static async start(
    patterns: readonly string[],
    positionFile: string,
    options: Partial<LogFollowerOptions> = {},
  ): Promise<Following> {
    // A file that was made in the millisecond of the start may be from before or after it, and is read from its beginning.
    await sleep(2)
    const following = new Following(patterns, positionFile, options)
    await following.follower.start()
    return following
  }

  stop(): Promise<void> {
    return this.follower.stop()
  }
}

async function main([pattern, positionFile, output]: string[]): Promise<void> {
  const fd = openSync(output!, 'a')
  // The last one may have been killed in the midst of a line.
  let waiting = '\n'
  const write = () => {
    if (waiting !== '') writeSync(fd, waiting)
    waiting = ''
  }
  const following = await Following.start([pattern!], positionFile!, {
    sources: [
      plainSource([pattern!], line => {
        waiting += `${line}\n`
        if (waiting.length > 64 * 1024) write()
      }),
    ],
    secured: async () => {
      await new Promise(resolve => setTimeout(resolve, 50))
      write()
      fdatasyncSync(fd)
    },
  })
  setInterval(write, 20)
  process.stdout.write('following\n')
  process.stdin.resume().once('end', async () => {
    await following.stop()
    write()
    process.stdout.write(`${JSON.stringify(following.follower.state)}\n`)
    process.exit()
  })
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename)
  await main(process.argv.slice(2))
