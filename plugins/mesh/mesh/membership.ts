/**
 * This gateway's place in the mesh: takes its name, renews it every second, and follows what the engine says about the
 * others and about its data. All times are of the engine's clock.
 */
import {
  type EngineNode,
  type EnginePosition,
  type EngineState,
  EngineUnreachable,
  type Logger,
  type MeshEngine,
  type MeshMember,
  messageOf,
} from '#kernel'
import type { KnownPosition } from './engine-data.ts'
import { meshErrors } from './errors.ts'
import { isPosition } from './record-copy.ts'

const RENEWAL_MS = 1_000
const SUSPECTED_MS = 2_000
const DOWN_MS = 5_000
/** Nodes that are down are listed for a minute. */
const FORGET_MS = DOWN_MS + 60_000
/** Longest wait for the name of a gateway that was killed, a renewal more than its time. */
const NAME_WAIT_MS = DOWN_MS + RENEWAL_MS
const NAME_RETRY_MS = 250
const NOT_STARTED = 'not started'

/** What this gateway says about itself. */
export type About = Omit<MeshMember, 'name' | 'incarnation' | 'status'> & {
  readonly status: 'Init' | 'Alive' | 'Leaving'
  /** Versions of the records that it understands. */
  readonly protocols: readonly number[]
  /** The same for the same secret. */
  readonly secretCheck: string
  /** The last change that it knows to be acknowledged. */
  readonly position: EnginePosition | null
}

type Member = MeshMember & Pick<About, 'protocols' | 'secretCheck' | 'position'>

interface MembershipParts {
  readonly engine: MeshEngine
  readonly name: string
  readonly mesh: string
  readonly about: () => About
  /** The engine's data after a renewal, or after joining, and what the gateways have. */
  readonly onState: (state: EngineState, isNew: boolean, gateways: readonly KnownPosition[]) => void
  readonly log: Logger
}

export class Membership {
  readonly #parts: MembershipParts
  readonly #listeners: ((members: readonly MeshMember[]) => void)[] = []
  #members: readonly Member[] = []
  /** What each gateway said last, by name: it rarely changes. */
  #said: ReadonlyMap<string, { readonly text: string; readonly about: About }> = new Map()
  #differences = ''
  #incarnation = 0
  #isHeld = false
  #problem: string | null = NOT_STARTED
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> | null = null
  #isStopped = false
  /** Seconds without the engine, for metrics; counted until `#reachedAtMs`. */
  degradedSeconds = 0
  #reachedAtMs = performance.now()

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

  /**
   * @throws mesh_name_taken if a living gateway has the name; mesh_other_secret, mesh_other_protocol if a living gateway does
   *   not understand this one
   */
  async join(): Promise<void> {
    const { name, mesh } = this.#parts
    const endsAtMs = performance.now() + NAME_WAIT_MS
    while (!(await this.#takeName())) {
      if (performance.now() > endsAtMs) throw meshErrors.mesh_name_taken(name, mesh)
      await new Promise((resolve) => setTimeout(resolve, NAME_RETRY_MS))
    }
    await this.#renew()
    try {
      this.#checkOthers()
    } catch (error) {
      await this.leave()
      throw error
    }
    this.#timer = setInterval(() => this.renewNow(), RENEWAL_MS)
  }

  /** Publishes changes of this gateway's state without waiting for the next interval. */
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
    await engine.leave(name, this.#incarnation).catch(() => undefined)
  }

  #checkOthers(): void {
    const own = this.#parts.about()
    for (const { name, status, secretCheck, protocols, software } of this.#members) {
      if (name === this.#parts.name || status === 'Down') continue
      if (secretCheck !== '' && secretCheck !== own.secretCheck) throw meshErrors.mesh_other_secret(name)
      if (protocols.length > 0 && !protocols.some((version) => own.protocols.includes(version)))
        throw meshErrors.mesh_other_protocol(name, software, protocols.join(', '), own.protocols.join(', '))
    }
  }

  async #takeName(): Promise<boolean> {
    const { engine, name, onState } = this.#parts
    const about = this.#parts.about()
    const taken = await engine.takeName(name, JSON.stringify(about), DOWN_MS)
    if (taken === null) return false
    this.#incarnation = taken.incarnation
    this.#isHeld = true
    onState(taken, true, [{ name, position: about.position }])
    return true
  }

  async #renew(): Promise<void> {
    const { engine, name, onState, log } = this.#parts
    const about = this.#parts.about()
    try {
      const said = JSON.stringify(about)
      const renewal = await engine.renew(name, this.#incarnation, said, DOWN_MS, FORGET_MS)
      if (this.#isStopped) return
      this.#reachedAtMs = performance.now()
      const members = this.#read(renewal.nodes)
      // An engine that does not hold the name, such as the replica of another primary, has an old position of this gateway.
      const others = members.filter((member) => member.name !== name)
      onState(renewal, false, [{ name, position: about.position }, ...others])
      this.#setMembers(members)
      const isTaken = !renewal.isHeld && !(await this.#joinAgain())
      const problem = isTaken ? `another gateway has taken the name ${name}` : null
      if (this.#problem !== null && problem === null)
        log.info({ mesh: this.#parts.mesh }, 'mesh engine reached')
      this.#problem = problem
    } catch (error) {
      if (this.#isStopped) return
      this.fail(error)
    }
  }

  /** The engine could not be used: says so once, until it is reached again. */
  fail(error: unknown): void {
    const reason = messageOf(error)
    // A server that answers with an error, such as OOM, is reached.
    const problem =
      error instanceof EngineUnreachable
        ? `mesh engine unreachable: ${reason}`
        : `mesh engine failed: ${reason}`
    if (this.#problem === null || this.#problem === NOT_STARTED)
      this.#parts.log.warn({ reason }, 'mesh engine cannot be used; serving with what is known')
    this.#problem = problem
    const nowMs = performance.now()
    this.degradedSeconds += (nowMs - this.#reachedAtMs) / 1000
    this.#reachedAtMs = nowMs
  }

  /** This process or the engine was frozen: what it held has passed. */
  async #joinAgain(): Promise<boolean> {
    const { log, name } = this.#parts
    if (this.#isHeld)
      log.warn({ name, incarnation: this.#incarnation }, 'name in the mesh has expired; joining again')
    this.#isHeld = false
    return this.#takeName()
  }

  #reportDifferences(sections: readonly string[]): void {
    const text = sections.join(', ')
    if (text !== this.#differences && text !== '')
      this.#parts.log.warn({ sections }, 'gateways of the mesh have different configurations')
    this.#differences = text
  }

  #read(nodes: readonly EngineNode[]): Member[] {
    const before = this.#said
    const said = nodes.map(({ name, about: text }) => {
      const known = before.get(name)
      return known?.text === text ? known : { text, about: readAbout(text) }
    })
    this.#said = new Map(nodes.map(({ name }, at) => [name, said[at]]))
    return nodes.map((node, at) => toMember(node, said[at].about))
  }

  #setMembers(members: readonly Member[]): void {
    const before = new Map(this.#members.map((member) => [member.name, member]))
    const sorted = members.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    this.#members = sorted
    const isSame = (a: MeshMember, b: MeshMember | undefined) =>
      a.status === b?.status && a.incarnation === b.incarnation && a.address === b.address
    const isChanged =
      sorted.length !== before.size || sorted.some((member) => !isSame(member, before.get(member.name)))
    if (isChanged || sorted.some(({ name, config }) => before.get(name)?.config !== config))
      this.#reportDifferences(configDifferences(sorted))
    if (!isChanged) return
    for (const { name, status, incarnation } of sorted)
      if (before.get(name)?.status !== status)
        this.#parts.log.info({ name, status, incarnation }, 'mesh member changed')
    for (const listener of this.#listeners) listener(sorted)
  }
}

/** Longest text in what another gateway says, and the most sections of its configuration. */
const MAX_TEXT = 256
const MAX_SECTIONS = 256

function toMember({ name, incarnation, ageMs }: EngineNode, said: About): Member {
  const isSilent = ageMs >= SUSPECTED_MS && said.status !== 'Leaving'
  const status = ageMs >= DOWN_MS ? 'Down' : isSilent ? 'Suspected' : said.status
  return { ...said, name, incarnation, status }
}

/** The text of another gateway is untrusted: it may be of another release. */
function readAbout(text: string): About {
  const { address, software, status, protocols, secretCheck, inFlight, config, position } = parseObject(text)
  const isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value)
  const isText = (value: unknown) => typeof value === 'string' && value.length <= MAX_TEXT
  const digests = Object.entries(typeof config === 'object' && config !== null ? config : {})
  return {
    address: isText(address) ? String(address) : '',
    software: isText(software) ? String(software) : '',
    secretCheck: isText(secretCheck) ? String(secretCheck) : '',
    protocols: Array.isArray(protocols) ? protocols.slice(0, MAX_SECTIONS).filter(isNumber) : [],
    inFlight: isNumber(inFlight) ? Number(inFlight) : 0,
    config: Object.fromEntries(digests.slice(0, MAX_SECTIONS).filter((pair) => pair.every(isText))),
    position: isPosition(position) ? position : null,
    status: status === 'Init' || status === 'Leaving' ? status : 'Alive',
  }
}

/** Empty for anything else. */
function parseObject(text: string): Partial<Record<keyof About, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** @returns sections by name, sorted; of the gateways that are not down and publish digests */
export function configDifferences(members: readonly MeshMember[]): string[] {
  const living = members.filter(({ status, config }) => status !== 'Down' && Object.keys(config).length > 0)
  const digests = living.flatMap(({ config }) => Object.entries(config))
  const bySection = Map.groupBy(digests, ([section]) => section)
  const differs = (all: readonly (readonly [string, string])[]) =>
    all.length < living.length || all.some(([, digest]) => digest !== all[0][1])
  return [...bySection]
    .filter(([, all]) => differs(all))
    .map(([section]) => section)
    .sort()
}
