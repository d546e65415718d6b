import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { FairShare } from '../lib/fair-share.ts'
import type { Turn } from '../lib/turn.ts'
import { sharing } from './log-owner.ts'

/** What one name of a pattern means in one directory. */
export interface Listing {
  readonly files: readonly string[]
  readonly directories: readonly string[]
  /** Those of the files that may lead elsewhere. */
  readonly links: ReadonlySet<string>
  /** Its owner has no room for the rest. */
  readonly isCut: boolean
}

export interface Question {
  readonly directory: string
  /** Whose it is: see `logOwner`. */
  readonly owner: string
  /** When it was changed, in milliseconds since the Unix epoch. */
  readonly changedMs: number
  readonly name: { readonly text: string; matches(name: string): boolean }
}

interface Kept extends Listing {
  readonly owner: string
  readonly changedMs: number
  readonly listedMs: number
  /** What it counts for among all. */
  readonly cost: number
  readonly bytes: number
}

/** A directory that changed so shortly before it was listed may change again within the same tick of the file system. */
const tickMs = 100
/** Room is asked for in steps of at most so much: as many names as the system is asked for at once. */
const mostStep = 256
/** What a directory counts for beside its names, and a name for each so many characters above the first. */
const directoryCost = 4
const longName = 64
/** Of a directory with more names each two make the next listing a millisecond later: one that changes always costs no more. */
const quickNames = 1000
const namesOfMs = 2

/** About, on V8's heap. */
const listingBytes = 400
const nameBytes = 32
const linkBytes = 32
/** So often it is asked whether a directory that is being read is held by now. */
const heldMs = 100

/** Most directories have none; never added to. */
const noLinks = new Set<string>()

/**
 * Names of directories, kept until the directory changes. Their number is bounded and shared by the owners of the
 * directories, so that one that is full of files keeps nobody else's from being looked at.
 */
export class DirectoryListings {
  /** Bytes that they hold, about. */
  bytes = 0
  readonly #isHeld: (path: string) => boolean
  readonly #share: FairShare
  readonly #step: number
  /** Of this walk and of the last one; what is met again comes over. */
  #current = new Map<string, Kept>()
  #before = new Map<string, Kept>()
  /** What owners hold beyond what they have since others needed it: the next walk lists less of theirs. */
  readonly #owed = new Map<string, number>()

  /** `capacity`: names, of all owners. `isHeld`: whether a directory does not answer, and is left where it is being read. */
  constructor(capacity: number, isHeld: (path: string) => boolean) {
    this.#isHeld = isHeld
    this.#share = new FairShare(capacity)
    this.#step = Math.min(mostStep, Math.ceil(capacity / 16))
  }

  begin(): void {
    this.#before = this.#current
    this.#current = new Map()
  }

  /** What was not met in this walk is forgotten. */
  end(): void {
    for (const key of this.#before.keys()) this.#forget(this.#before, key)
  }

  /** `anew`: even where the directory did not change. What cannot be read has no names. */
  async list(question: Question, anew: boolean, turn: Turn): Promise<Listing> {
    const key = `${question.name.text} ${question.directory}`
    const met = this.#current.get(key)
    if (met !== undefined) return met
    const known = this.#before.get(key)
    if (known !== undefined && this.#holds(known, question, anew)) {
      this.#before.delete(key)
      this.#current.set(key, known)
      return known
    }
    this.#forget(this.#before, key)
    const listing = await this.#read(question, turn)
    this.#current.set(key, listing)
    this.bytes += listing.bytes
    return listing
  }

  /** Forgets about so many bytes of those who hold most, and returns how many. The next walk lists these directories again. */
  shed(bytes: number): number {
    let freed = 0
    for (let last = -1; freed < bytes && freed > last; ) {
      last = freed
      const owner = this.#share.richest()?.group
      for (const listings of [this.#before, this.#current])
        for (const [key, listing] of listings) {
          if (listing.owner !== owner) continue
          freed += listing.bytes
          this.#forget(listings, key)
        }
    }
    return freed
  }

  #holds(known: Kept, { owner, changedMs }: Question, anew: boolean): boolean {
    const nowMs = Date.now()
    const ageMs = nowMs - known.listedMs
    if (known.owner !== owner || this.#owed.has(owner)) return false
    if (ageMs >= 0 && ageMs < (known.cost - quickNames) / namesOfMs) return true
    if (anew || (known.isCut && this.#share.fits(this.#step))) return false
    return known.changedMs === changedMs && known.listedMs - changedMs > tickMs
  }

  async #read({ directory, owner, changedMs, name }: Question, turn: Turn): Promise<Kept> {
    const files: string[] = []
    const directories: string[] = []
    let links = noLinks
    const listedMs = Date.now()
    let bytes = listingBytes + directory.length
    let cost = directoryCost
    let room = 0
    const isWithin = () => {
      while (room < cost && this.#grant(owner)) room += this.#step
      return room >= cost
    }
    let isLeft = false
    const readAll = async () => {
      if (!isWithin()) return
      for await (const entry of await opendir(directory || '/', { bufferSize: mostStep })) {
        if (isLeft) return
        const isMeant = name.matches(entry.name)
        cost += isMeant ? 1 + Math.floor(entry.name.length / longName) : 1
        if (!isWithin()) return
        if (isMeant && keep(entry, files, directories)) {
          bytes += nameBytes + entry.name.length
          if (entry.isSymbolicLink()) {
            if (links.size === 0) links = new Set()
            links.add(entry.name)
            bytes += linkBytes
          }
        }
        await turn.rest()
      }
    }
    isLeft = !(await unlessHeld(readAll(), () => this.#isHeld(directory || '/')))
    if (isLeft) {
      this.#share.remove(sharing(owner), room)
      const none = { files: [], directories: [], links: noLinks, isCut: false, cost: 0 }
      return { owner, changedMs: Number.NaN, listedMs, ...none, bytes: listingBytes }
    }
    const isCut = room < cost
    cost = Math.min(cost, room)
    this.#share.remove(sharing(owner), room - cost)
    return { owner, changedMs, listedMs, files, directories, links, isCut, cost, bytes }
  }

  /** One step of room for an owner: free, or that of who has most. */
  #grant(owner: string): boolean {
    const who = sharing(owner)
    while (!this.#share.fits(this.#step)) {
      const giver = this.#share.giver(who, this.#step)
      if (giver === undefined || giver.group === owner) return false
      this.#share.remove(giver, this.#step)
      this.#owed.set(giver.group, (this.#owed.get(giver.group) ?? 0) + this.#step)
    }
    this.#share.add(who, this.#step)
    return true
  }

  #forget(listings: Map<string, Kept>, key: string): void {
    const listing = listings.get(key)
    if (listing === undefined) return
    listings.delete(key)
    this.bytes -= listing.bytes
    const owed = this.#owed.get(listing.owner) ?? 0
    const paid = Math.min(owed, listing.cost)
    if (paid === owed) this.#owed.delete(listing.owner)
    else this.#owed.set(listing.owner, owed - paid)
    this.#share.remove(sharing(listing.owner), listing.cost - paid)
  }
}

/** False: what is being done is left to itself. Where it fails it is done. */
async function unlessHeld(work: Promise<void>, isHeld: () => boolean): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const left = new Promise<boolean>(resolve => {
    timer = setInterval(() => isHeld() && resolve(false), heldMs)
  })
  // What is gone, or may not be read, holds nothing for us.
  const done = work.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([done, left])
  } finally {
    clearInterval(timer)
  }
}

function keep(entry: Dirent, files: string[], directories: string[]): boolean {
  if (entry.isDirectory()) directories.push(entry.name)
  else if (entry.isFile() || entry.isSymbolicLink()) files.push(entry.name)
  else return false
  return true
}
