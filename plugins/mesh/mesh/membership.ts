/**
 * This gateway's place in the mesh: takes its name, renews it every second, and follows what the engine says about the
 * others and about its data. All times are of the engine's clock.
 */
import {
  type EngineNode,
  type EngineState,
  type Logger,
  type MeshEngine,
  type MeshMember,
  messageOf,
} from '#kernel'
import { meshErrors } from './errors.ts'

const RENEWAL_MS = 1_000
const SUSPECTED_MS = 2_000
const DOWN_MS = 5_000
/** Nodes that are down are listed for a minute. */
const FORGET_MS = DOWN_MS + 60_000
/** Longest wait for the name of a gateway that was killed, a renewal more than its time. */
const NAME_WAIT_MS = DOWN_MS + RENEWAL_MS
const NAME_RETRY_MS = 250

/** What this gateway says about itself. */
export type About = Omit<MeshMember, 'name' | 'incarnation' | 'status'> & {
  readonly status: 'Init' | 'Alive' | 'Leaving'
  /** Versions of the records that it understands. */
  readonly protocols: readonly number[]
}

export interface MembershipParts {
  readonly engine: MeshEngine
  readonly name: string
  readonly mesh: string
  readonly about: () => About
  /** The engine's data after a renewal, or after joining. */
  readonly onState: (state: EngineState, isNew: boolean) => void
  readonly log: Logger
}

export class Membership {
  readonly #parts: MembershipParts
  readonly #listeners: ((members: readonly MeshMember[]) => void)[] = []
  #members: readonly MeshMember[] = []
  #incarnation = 0
  #isHeld = false
  #problem: string | null = 'not started'
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> | null = null
  #isStopped = false
  /** Seconds without the engine, for metrics. */
  degradedSeconds = 0

  constructor(parts: MembershipParts) {
    this.#parts = parts
  }

  get members(): readonly MeshMember[] {
    return this.#members
  }

  get incarnation(): number {
    return this.#incarnation
  }

  /** Null while the engine answers. */
  get problem(): string | null {
    return this.#problem
  }

  onMembers(listener: (members: readonly MeshMember[]) => void): void {
    this.#listeners.push(listener)
  }

  /** @throws mesh_name_taken if a living gateway has the name */
  async join(): Promise<void> {
    const { name, mesh } = this.#parts
    const endsAtMs = performance.now() + NAME_WAIT_MS
    while (!(await this.#takeName())) {
      if (performance.now() > endsAtMs) throw meshErrors.mesh_name_taken(name, mesh)
      await new Promise((resolve) => setTimeout(resolve, NAME_RETRY_MS))
    }
    await this.#renew()
    this.#timer = setInterval(() => this.renewNow(), RENEWAL_MS)
  }

  /** Tells the others at once what has changed about this gateway. */
  renewNow(): void {
    // A renewal that takes longer than its interval is not repeated beside itself.
    this.#running ??= this.#renew().finally(() => {
      this.#running = null
    })
  }

  async leave(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    await this.#running
    if (!this.#isHeld) return
    this.#isHeld = false
    const { engine, name } = this.#parts
    await engine.leave(name, this.#incarnation, DOWN_MS).catch(() => undefined)
  }

  async #takeName(): Promise<boolean> {
    const { engine, name, onState } = this.#parts
    const taken = await engine.takeName(name, JSON.stringify(this.#parts.about()), DOWN_MS)
    if (taken === null) return false
    this.#incarnation = taken.incarnation
    this.#isHeld = true
    onState(taken, true)
    return true
  }

  async #renew(): Promise<void> {
    const { engine, name, onState, log } = this.#parts
    const about = JSON.stringify(this.#parts.about())
    try {
      const renewal = await engine.renew(name, this.#incarnation, about, DOWN_MS, FORGET_MS)
      if (this.#isStopped) return
      if (this.#problem !== null) log.info({ mesh: this.#parts.mesh }, 'mesh engine reached')
      this.#problem = null
      onState(renewal, false)
      this.#setMembers(renewal.nodes.map(toMember))
      if (renewal.isHeld) return
      // This process or the engine was frozen: what it held has passed.
      log.warn({ name, incarnation: this.#incarnation }, 'name in the mesh has expired; joining again')
      this.#isHeld = false
      if (!(await this.#takeName())) this.#problem = `another gateway has taken the name ${name}`
    } catch (error) {
      if (this.#isStopped) return
      if (this.#problem === null)
        log.warn({ err: error }, 'mesh engine unreachable; serving with what is known')
      this.#problem = `mesh engine unreachable: ${messageOf(error)}`
      this.degradedSeconds += RENEWAL_MS / 1000
    }
  }

  #setMembers(members: readonly MeshMember[]): void {
    const before = new Map(this.#members.map((member) => [member.name, member]))
    const sorted = members.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    this.#members = sorted
    const isSame = (a: MeshMember, b: MeshMember | undefined) =>
      a.status === b?.status && a.incarnation === b.incarnation && a.address === b.address
    if (sorted.length === before.size && sorted.every((member) => isSame(member, before.get(member.name))))
      return
    for (const { name, status, incarnation } of sorted)
      if (before.get(name)?.status !== status)
        this.#parts.log.info({ name, status, incarnation }, 'mesh member changed')
    for (const listener of this.#listeners) listener(sorted)
  }
}

/** The text of another gateway is untrusted: it may be of another release. */
function toMember({ name, incarnation, about, ageMs }: EngineNode): MeshMember {
  const said = readAbout(about)
  const isSilent = ageMs >= SUSPECTED_MS && said.status !== 'Leaving'
  const status = ageMs >= DOWN_MS ? 'Down' : isSilent ? 'Suspected' : said.status
  return { ...said, name, incarnation, status }
}

function readAbout(text: string): About {
  const said = JSON.parse(text) as Partial<About>
  const isStatus = said.status === 'Init' || said.status === 'Leaving'
  return {
    address: String(said.address ?? ''),
    software: String(said.software ?? ''),
    protocols: Array.isArray(said.protocols) ? said.protocols.map(Number) : [],
    inFlight: Number(said.inFlight ?? 0),
    config: typeof said.config === 'object' && said.config !== null ? said.config : {},
    status: isStatus ? (said.status ?? 'Alive') : 'Alive',
  }
}
