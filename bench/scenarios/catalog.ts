/** All scenarios in the order they run. */
import type { ComparableScenario, Scenario } from '../support/figure.ts'
import { boot } from './boot.ts'
import { console2000 } from './console-2000.ts'
import { consoleView } from './console-view.ts'
import {
  curvesConnections,
  curvesGateways,
  curvesModules,
  curvesTenants,
  curvesThreads,
  curvesWorkers,
} from './curves.ts'
import { faultyWorkers } from './faulty-workers.ts'
import { firstSeconds } from './first-seconds.ts'
import { fleet2000 } from './fleet-2000.ts'
import { grpcLongPrompt } from './grpc-long-prompt.ts'
import { grpcSse } from './grpc-sse.ts'
import { idle } from './idle.ts'
import { idleStreams } from './idle-streams.ts'
import { livenessUnderAttack } from './liveness-under-attack.ts'
import { messages1000 } from './messages-1000.ts'
import { messagesLarge } from './messages-large.ts'
import { peers } from './peers.ts'
import { policySim } from './policy-sim.ts'
import { relayJson, relayJson100k, relayJsonFull } from './relay-json.ts'
import { relaySse } from './relay-sse.ts'
import { responsesBackground } from './responses-background.ts'
import { responsesChain } from './responses-chain.ts'
import { responsesJson } from './responses-json.ts'
import { responsesStart } from './responses-start.ts'
import { generateSlowReader, slowReader } from './slow-reader.ts'
import { soak } from './soak.ts'
import {
  generateSse,
  messagesProxySse,
  messagesTranslateSse,
  responsesProxySse,
  responsesSse,
} from './sse-formats.ts'
import { steady1000 } from './steady-1000.ts'
import { tail } from './tail.ts'
import { toolTurn } from './tool-turn.ts'
import { wasmLoop } from './wasm-loop.ts'
import { wasmBody4k, wasmChain3, wasmHeaders, wasmNone, wasmPrompt } from './wasm-modules.ts'
import { wasmStreamEvent } from './wasm-stream-event.ts'
import { wasmText } from './wasm-text.ts'

export const SCENARIOS: readonly Scenario[] = [
  boot,
  firstSeconds,
  idle,
  relayJson,
  relayJson100k,
  relayJsonFull,
  steady1000,
  tail,
  relaySse,
  generateSse,
  grpcSse,
  grpcLongPrompt,
  responsesJson,
  responsesSse,
  responsesProxySse,
  toolTurn,
  responsesChain,
  responsesBackground,
  responsesStart,
  messagesProxySse,
  messagesTranslateSse,
  messages1000,
  messagesLarge,
  idleStreams,
  slowReader,
  generateSlowReader,
  livenessUnderAttack,
  policySim,
  faultyWorkers,
  fleet2000,
  console2000,
  consoleView,
  wasmNone,
  wasmHeaders,
  wasmBody4k,
  wasmPrompt,
  wasmChain3,
  wasmStreamEvent,
  wasmText,
  wasmLoop,
  soak,
  peers,
  curvesThreads,
  curvesConnections,
  curvesWorkers,
  curvesModules,
  curvesTenants,
  curvesGateways,
]

/** Those that compare two checkouts. */
export const COMPARABLE: readonly ComparableScenario[] = SCENARIOS.filter(
  (scenario): scenario is ComparableScenario => scenario.compare !== undefined,
)
