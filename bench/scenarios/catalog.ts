/** All scenarios in the order they run. */
import type { Scenario } from '../support/figure.ts'
import { boot } from './boot.ts'
import { fleet2000 } from './fleet-2000.ts'
import { idleStreams } from './idle-streams.ts'
import { policySim } from './policy-sim.ts'
import { relayJson } from './relay-json.ts'
import { relayJson100k } from './relay-json-100k.ts'
import { relaySse } from './relay-sse.ts'
import { slowReader } from './slow-reader.ts'

export const SCENARIOS: readonly Scenario[] = [
  boot,
  relayJson,
  relayJson100k,
  relaySse,
  idleStreams,
  slowReader,
  policySim,
  fleet2000,
]
