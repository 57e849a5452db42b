/**
 * Consistent-hash ring: each worker has many points on a circle of 2^32; a key belongs to the next point clockwise.
 * Points depend only on the worker's URL, so every thread and restart has the same ring.
 * @hot
 */
import type { CandidateView, WorkerEntry } from '#kernel'
import { hashHigh, hashLow, hashText, mix } from '../hash64.ts'

const GOLDEN = 0x9e3779b9
/** Point and owner are packed in one number for sorting; the owner takes 16 bits. */
const OWNERS = 65_536
/** Cached rings: one for each priority tier in use. */
const KEPT_RINGS = 4

export class HashRing {
  members: readonly WorkerEntry[]
  private readonly points: Uint32Array
  /** Positions in `members`. */
  private readonly owners: Uint16Array

  constructor(members: readonly WorkerEntry[], virtualNodes: number) {
    this.members = members
    const packed = new Float64Array(members.length * virtualNodes)
    let count = 0
    for (let owner = 0; owner < members.length; owner++) {
      hashText(members[owner].url)
      const low = hashLow
      const high = hashHigh
      for (let node = 1; node <= virtualNodes; node++) {
        const point = mix(mix(low + Math.imul(node, GOLDEN)) ^ high) >>> 0
        packed[count++] = point * OWNERS + owner
      }
    }
    packed.sort()
    this.points = new Uint32Array(count)
    this.owners = new Uint16Array(count)
    for (let i = 0; i < count; i++) {
      const point = Math.floor(packed[i] / OWNERS)
      this.points[i] = point
      this.owners[i] = packed[i] - point * OWNERS
    }
  }

  /**
   * Finds the first available worker clockwise from a point.
   * @param point 32 bits
   * @returns a position in the view; -1 if no candidate is on the ring
   */
  find(point: number, candidates: CandidateView): number {
    const { length } = this.points
    let at = this.firstFrom(point >>> 0)
    for (let walked = 0; walked < length; walked++) {
      if (at === length) at = 0
      const index = candidates.indexOfSlot(this.members[this.owners[at]].slot)
      if (index >= 0) return index
      at++
    }
    return -1
  }

  private firstFrom(point: number): number {
    let low = 0
    let high = this.points.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.points[middle] < point) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Caches the rings of one model on one thread. */
export class HashRings {
  private readonly virtualNodes: number
  private readonly rings: HashRing[] = []
  private next = 0

  constructor(virtualNodes: number) {
    this.virtualNodes = virtualNodes
  }

  of(members: readonly WorkerEntry[]): HashRing {
    for (let i = 0; i < this.rings.length; i++) if (this.rings[i].members === members) return this.rings[i]
    return this.sameRing(members) ?? this.add(new HashRing(members, this.virtualNodes))
  }

  /** Reuses a ring if the worker table changed but slots and URLs did not. */
  private sameRing(members: readonly WorkerEntry[]): HashRing | undefined {
    const ring = this.rings.find((known) => isSameRing(known.members, members))
    if (ring !== undefined) ring.members = members
    return ring
  }

  private add(ring: HashRing): HashRing {
    this.rings[this.next] = ring
    this.next = (this.next + 1) % KEPT_RINGS
    return ring
  }
}

function isSameRing(known: readonly WorkerEntry[], members: readonly WorkerEntry[]): boolean {
  return (
    known.length === members.length &&
    members.every(({ slot, url }, index) => known[index].slot === slot && known[index].url === url)
  )
}
