import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { FairShare } from '../../foundation/lib/fair-share.ts'
import type { Turn } from '../../foundation/lib/turn.ts'
import { sharing } from './log-owner.ts'

/** Matches of one name of a pattern in one directory. */
export interface Listing {
  readonly files: readonly string[]
  readonly directories: readonly string[]
  /** Files that are symbolic links. */
  readonly links: ReadonlySet<string>
  /** Whether names are missing, as the owner has reached its share. */
  readonly isCut: boolean
}

export interface Question {
  readonly directory: string
  /** Owner of the directory: see `logOwner`. */
  readonly owner: string
  /** Time of its last change, in milliseconds since the Unix epoch. */
  readonly changedMs: number
  readonly name: { readonly text: string; matches(name: string): boolean }
}

interface Kept extends Listing {
  readonly owner: string
  readonly changedMs: number
  readonly listedMs: number
  /** Cost against the limit for all. */
  readonly cost: number
  readonly bytes: number
}

/** A directory changed this recently before its listing may change again within one tick of the file system clock. */
const tickMs = 100
/** Maximum step of reserved room: the number of names per system call. */
const mostStep = 256
/** Cost of a directory without its names, and characters per further unit of cost of a name. */
const directoryCost = 4
const longName = 64
/**
 * Above this number of names, every two delay the next listing by a millisecond, which bounds the cost of one that
 * always changes.
 */
const quickNames = 1000
const namesOfMs = 2

/** About, on V8's heap. */
const listingBytes = 400
const nameBytes = 32
const linkBytes = 32
/** Interval of checks whether the directory being read is held, in milliseconds. */
const heldMs = 100

/** Shared empty set, never changed. */
const noLinks = new Set<string>()

/**
 * Directory listings, cached until the directory changes. Their number is limited and shared by the owners of the
 * directories, so that one full directory does not prevent listings of others.
 */
export class DirectoryListings {
  /** Approximate memory, in bytes. */
  bytes = 0
  readonly #isHeld: (path: string) => boolean
  readonly #share: FairShare
  readonly #step: number
  /** Listings of this walk and of the last one; those used again move over. */
  #current = new Map<string, Kept>()
  #before = new Map<string, Kept>()
  /** Amount that owners hold over their share since others need it: the next walk lists less of theirs. */
  readonly #owed = new Map<string, number>()

  /**
   * `capacity`: names of all owners. `isHeld`: whether a directory does not respond, so that reading it is abandoned.
   */
  constructor(capacity: number, isHeld: (path: string) => boolean) {
    this.#isHeld = isHeld
    this.#share = new FairShare(capacity)
    this.#step = Math.min(mostStep, Math.ceil(capacity / 16))
  }

  begin(): void {
    this.#before = this.#current
    this.#current = new Map()
  }

  /** Forgets listings that this walk did not use. */
  end(): void {
    for (const key of this.#before.keys()) this.#forget(this.#before, key)
  }

  /** Lists a directory. `full`: even if it did not change. A directory that cannot be read has no names. */
  async list(question: Question, full: boolean, turn: Turn): Promise<Listing> {
    const key = `${question.name.text} ${question.directory}`
    const met = this.#current.get(key)
    if (met !== undefined) return met
    const known = this.#before.get(key)
    if (known !== undefined && this.#isCurrent(known, question, full)) {
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

  /**
   * Frees about so many bytes of the owners with the most, and returns how many. The next walk lists these directories
   * again.
   */
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

  #isCurrent(known: Kept, { owner, changedMs }: Question, full: boolean): boolean {
    const nowMs = Date.now()
    const ageMs = nowMs - known.listedMs
    if (known.owner !== owner || this.#owed.has(owner)) return false
    if (ageMs >= 0 && ageMs < (known.cost - quickNames) / namesOfMs) return true
    if (full || (known.isCut && this.#share.hasRoom(this.#step))) return false
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

  /** One step of room for an owner: unused, or taken from the owner with the most. */
  #grant(owner: string): boolean {
    const who = sharing(owner)
    while (!this.#share.hasRoom(this.#step)) {
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

/** Waits for work unless it is held. False: it was abandoned. Failed work counts as done. */
async function unlessHeld(work: Promise<void>, isHeld: () => boolean): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const left = new Promise<boolean>(resolve => {
    timer = setInterval(() => isHeld() && resolve(false), heldMs)
  })
  // A directory that is gone or unreadable has no names.
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
