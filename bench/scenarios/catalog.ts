/** All scenarios in the order they run. */
import type { Scenario } from '../support/figure.ts'
import { boot } from './boot.ts'
import { fleet2000 } from './fleet-2000.ts'
import { generateSse } from './generate-sse.ts'
import { grpcLongPrompt } from './grpc-long-prompt.ts'
import { grpcSse } from './grpc-sse.ts'
import { idleStreams } from './idle-streams.ts'
import { livenessUnderAttack } from './liveness-under-attack.ts'
import { messages1000 } from './messages-1000.ts'
import { messagesLarge } from './messages-large.ts'
import { messagesProxySse } from './messages-proxy-sse.ts'
import { messagesTranslateSse } from './messages-translate-sse.ts'
import { policySim } from './policy-sim.ts'
import { relayJson } from './relay-json.ts'
import { relayJson100k } from './relay-json-100k.ts'
import { relayJsonFull } from './relay-json-full.ts'
import { relaySse } from './relay-sse.ts'
import { responsesBackground } from './responses-background.ts'
import { responsesChain } from './responses-chain.ts'
import { responsesJson } from './responses-json.ts'
import { responsesSse } from './responses-sse.ts'
import { responsesStart } from './responses-start.ts'
import { slowReader } from './slow-reader.ts'
import { steady1000 } from './steady-1000.ts'
import { toolTurn } from './tool-turn.ts'
import { wasmBody4k } from './wasm-body-4k.ts'
import { wasmChain3 } from './wasm-chain-3.ts'
import { wasmHeaders } from './wasm-headers.ts'
import { wasmLoop } from './wasm-loop.ts'
import { wasmNone } from './wasm-none.ts'
import { wasmStreamEvent } from './wasm-stream-event.ts'

export const SCENARIOS: readonly Scenario[] = [
  boot,
  relayJson,
  relayJson100k,
  relayJsonFull,
  steady1000,
  relaySse,
  generateSse,
  grpcSse,
  grpcLongPrompt,
  responsesJson,
  responsesSse,
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
  livenessUnderAttack,
  policySim,
  fleet2000,
  wasmNone,
  wasmHeaders,
  wasmBody4k,
  wasmChain3,
  wasmStreamEvent,
  wasmLoop,
]
