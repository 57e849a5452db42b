/** A gateway's place in the mesh, by a scripted engine and a virtual clock. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type EngineNode, EngineUnreachable, type Logger, type MeshEngine, type MeshMember } from '#kernel'
import type { KnownPosition } from './engine-data.ts'
import { Membership } from './membership.ts'

const STATE = { revision: 0, epochs: [{ epoch: 'd', revision: 0 }] }

/** Its fields are what the next operation returns. */
class ScriptedEngine {
  isFree = true
  isHeld = true
  isAway = false
  nodes: EngineNode[] = []
  incarnation = 0

  async takeName() {
    if (!this.isFree) return null
    this.isHeld = true
    this.incarnation += 1
    return { incarnation: this.incarnation, ...STATE }
  }

  async renew() {
    if (this.isAway) throw new EngineUnreachable('no answer')
    return { isHeld: this.isHeld, nodes: this.nodes, ...STATE }
  }

  async leave() {}
}

let engine: ScriptedEngine
let logged: string[]
let positions: (readonly KnownPosition[])[]
let membership: Membership

beforeEach(() => {
  vi.useFakeTimers()
  engine = new ScriptedEngine()
  logged = []
  positions = []
  const log = (_: unknown, text: string) => logged.push(text)
  const about = {
    address: 'here:1',
    software: '1.0.0',
    status: 'Alive',
    inFlight: 0,
    config: { chat: 'x' },
    protocols: [1, 2],
    secretCheck: 'same',
    position: { epoch: 'd', revision: 7 },
  } as const
  membership = new Membership({
    engine: engine as unknown as MeshEngine,
    name: 'me',
    mesh: 'prod',
    about: () => about,
    onState: (_state, _isNew, gateways) => positions.push(gateways),
    log: { debug: log, info: log, warn: log, error: log } as unknown as Logger,
  })
})
afterEach(async () => {
  await membership.leave()
  vi.useRealTimers()
})

const node = (name: string, ageMs: number, said: object | string = {}): EngineNode => ({
  name,
  ageMs,
  incarnation: 1,
  about: typeof said === 'string' ? said : JSON.stringify(said),
})
const second = () => vi.advanceTimersByTimeAsync(1_000)

describe('positions', () => {
  test('of this gateway is what it knows, not what an engine has that does not hold its name', async () => {
    await membership.join()
    engine.isHeld = false
    engine.isFree = false
    const old = { position: { epoch: 'c', revision: 1 } }
    engine.nodes = [node('me', 9_000, old), node('other', 0, old)]
    await second()
    expect(positions.at(-1)).toMatchObject([
      { name: 'me', position: { epoch: 'd', revision: 7 } },
      { name: 'other', ...old },
    ])
  })
})

describe('members', () => {
  test.each([
    [0, 'Alive', 'Alive'],
    [1_999, 'Alive', 'Alive'],
    [2_000, 'Alive', 'Suspected'],
    [4_999, 'Alive', 'Suspected'],
    [5_000, 'Alive', 'Down'],
    [0, 'Init', 'Init'],
    [0, 'Leaving', 'Leaving'],
    [4_999, 'Leaving', 'Leaving'],
    [5_000, 'Leaving', 'Down'],
    [0, 'Down', 'Alive'],
  ])('silent for %i ms after saying %s is %s', async (ageMs, status, expected) => {
    engine.nodes = [node('other', ageMs, { status })]
    await membership.join()
    expect(membership.members[0].status).toBe(expected)
  })

  test('listeners are called when a member or its status changes, and not otherwise', async () => {
    const seen: string[] = []
    membership.onMembers((members) =>
      seen.push(members.map(({ name, status }) => `${name} ${status}`).join()),
    )
    engine.nodes = [node('b', 0), node('a', 0)]
    await membership.join()
    await second()
    engine.nodes = [node('b', 2_500), node('a', 100)]
    await second()
    engine.nodes = [node('a', 0)]
    await second()
    await second()
    expect(seen).toEqual(['a Alive,b Alive', 'a Alive,b Suspected', 'a Alive'])
  })

  test('a difference of configurations is logged once', async () => {
    engine.nodes = [node('a', 0, { config: { chat: 'x' } }), node('b', 0, { config: { chat: 'y' } })]
    await membership.join()
    await second()
    await second()
    const text = 'gateways of the mesh have different configurations'
    expect(logged.filter((line) => line === text)).toHaveLength(1)
  })
})

describe('the name', () => {
  test('of another gateway is waited for until its lease has ended', async () => {
    engine.isFree = false
    let hasJoined = false
    const joining = membership.join().then(() => {
      hasJoined = true
    })
    await vi.advanceTimersByTimeAsync(5_000)
    expect(hasJoined).toBe(false)
    engine.isFree = true
    await vi.advanceTimersByTimeAsync(250)
    await joining
    expect(membership.incarnation).toBe(1)
  })

  test('of a living gateway is an error after six seconds', async () => {
    engine.isFree = false
    const joining = expect(membership.join()).rejects.toThrow(/is named me: set plugins.mesh.name/)
    await vi.advanceTimersByTimeAsync(6_500)
    await joining
  })

  test('that has expired is taken again under the next incarnation', async () => {
    await membership.join()
    engine.isHeld = false
    await second()
    expect([membership.incarnation, membership.problem]).toEqual([2, null])
  })

  test('that another gateway has taken meanwhile is a problem until it is free, logged once', async () => {
    await membership.join()
    engine.isHeld = false
    engine.isFree = false
    for (let count = 0; count < 5; count += 1) await second()
    expect(membership.problem).toMatch(/taken the name me/)
    expect(logged.filter((line) => line.includes('joining again'))).toHaveLength(1)
    expect(logged.filter((line) => line === 'mesh engine reached')).toHaveLength(1)
    engine.isFree = true
    await second()
    expect([membership.incarnation, membership.problem]).toEqual([2, null])
  })
})

describe('the engine', () => {
  test('away is a problem; its time is counted; members stay as they were known', async () => {
    engine.nodes = [node('a', 0)]
    await membership.join()
    engine.isAway = true
    for (let count = 0; count < 10; count += 1) await second()
    expect(membership.problem).toBe('mesh engine unreachable: no answer')
    expect(membership.degradedSeconds).toBeCloseTo(10, 1)
    expect(membership.members.map(({ name }: MeshMember) => name)).toEqual(['a'])
    engine.isAway = false
    await second()
    expect(membership.problem).toBeNull()
  })
})

describe('joining', () => {
  test.each([
    ['another secret', { secretCheck: 'other' }, /plugins.mesh.secret is not that of the gateway other/],
    [
      'only other record formats',
      { protocols: [3] },
      /no record format with the gateway other.*reads 3, this one 1, 2/,
    ],
  ])('beside a gateway with %s is refused', async (_, said, message) => {
    engine.nodes = [node('other', 0, said)]
    await expect(membership.join()).rejects.toThrow(message)
  })

  test.each([
    ['one that is down', node('other', 6_000, { secretCheck: 'other' })],
    ['one with a common format', node('other', 0, { protocols: [2, 3], secretCheck: 'same' })],
    ['one that says nothing', node('other', 0, 'not JSON')],
  ])('beside %s works', async (_, other) => {
    engine.nodes = [other]
    await membership.join()
    expect(membership.problem).toBeNull()
  })
})
