/** Made by proto/generate.ts from proto/mlx_engine.proto: change that instead. @hot */
import { Reader, Writer } from '../wire.ts'

export const MlxEngine = {
  Generate: '/mlx.grpc.engine.MlxEngine/Generate',
  HealthCheck: '/mlx.grpc.engine.MlxEngine/HealthCheck',
  Abort: '/mlx.grpc.engine.MlxEngine/Abort',
  GetModelInfo: '/mlx.grpc.engine.MlxEngine/GetModelInfo',
  GetServerInfo: '/mlx.grpc.engine.MlxEngine/GetServerInfo',
  GetTokenizer: '/mlx.grpc.engine.MlxEngine/GetTokenizer',
} as const

export interface GenerateRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
  text: string | undefined
  samplingParams: SamplingParams | undefined
  stream: boolean
}

export interface GenerateRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
  readonly text?: string
  readonly samplingParams?: SamplingParamsFields
  readonly stream?: boolean
}

export function writeGenerateRequest(w: Writer, m: GenerateRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.tokenized !== undefined) {
    const start = w.begin(18)
    writeTokenizedInput(w, m.tokenized)
    w.end(start)
  }
  if (m.text !== undefined) w.string(26, m.text)
  if (m.samplingParams !== undefined) {
    const start = w.begin(34)
    writeSamplingParams(w, m.samplingParams)
    w.end(start)
  }
  if (m.stream !== undefined && m.stream) w.bool(40, m.stream)
}

export function encodeGenerateRequest(m: GenerateRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateRequest(w, m)
  return w.finish()
}

export function readGenerateRequest(r: Reader, end: number): GenerateRequest {
  const m: GenerateRequest = {
    requestId: '',
    tokenized: undefined,
    text: undefined,
    samplingParams: undefined,
    stream: false,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      case 18:
        m.tokenized = readTokenizedInput(r, r.end())
        break
      case 26:
        m.text = r.string()
        break
      case 34:
        m.samplingParams = readSamplingParams(r, r.end())
        break
      case 40:
        m.stream = r.bool()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateRequest(bytes: Buffer): GenerateRequest {
  return readGenerateRequest(new Reader(bytes), bytes.length)
}

export interface TokenizedInput {
  originalText: string
  inputIds: number[]
}

export interface TokenizedInputFields {
  readonly originalText?: string
  readonly inputIds?: ArrayLike<number>
}

export function writeTokenizedInput(w: Writer, m: TokenizedInputFields): void {
  if (m.originalText !== undefined && m.originalText !== '') w.string(10, m.originalText)
  if (m.inputIds !== undefined && m.inputIds.length > 0) w.uint32s(18, m.inputIds)
}

export function encodeTokenizedInput(m: TokenizedInputFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTokenizedInput(w, m)
  return w.finish()
}

export function readTokenizedInput(r: Reader, end: number): TokenizedInput {
  const m: TokenizedInput = {
    originalText: '',
    inputIds: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.originalText = r.string()
        break
      case 18:
        r.uint32s(m.inputIds)
        break
      case 16:
        r.add(m.inputIds, r.uint32())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeTokenizedInput(bytes: Buffer): TokenizedInput {
  return readTokenizedInput(new Reader(bytes), bytes.length)
}

export interface SamplingParams {
  temperature: number | undefined
  topP: number
  topK: number
  minP: number
  repetitionPenalty: number
  frequencyPenalty: number
  presencePenalty: number
  logitBias: Map<number, number>
  maxTokens: number | undefined
  stopTokenIds: number[]
  ignoreEos: boolean
  logprobs: number | undefined
  seed: number | undefined
}

export interface SamplingParamsFields {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly repetitionPenalty?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly logitBias?: ReadonlyMap<number, number>
  readonly maxTokens?: number
  readonly stopTokenIds?: ArrayLike<number>
  readonly ignoreEos?: boolean
  readonly logprobs?: number
  readonly seed?: number
}

export function writeSamplingParams(w: Writer, m: SamplingParamsFields): void {
  if (m.temperature !== undefined) w.float(13, m.temperature)
  if (m.topP !== undefined && m.topP !== 0) w.float(21, m.topP)
  if (m.topK !== undefined && m.topK !== 0) w.uint32(24, m.topK)
  if (m.minP !== undefined && m.minP !== 0) w.float(37, m.minP)
  if (m.repetitionPenalty !== undefined && m.repetitionPenalty !== 0) w.float(45, m.repetitionPenalty)
  if (m.frequencyPenalty !== undefined && m.frequencyPenalty !== 0) w.float(53, m.frequencyPenalty)
  if (m.presencePenalty !== undefined && m.presencePenalty !== 0) w.float(61, m.presencePenalty)
  if (m.logitBias !== undefined)
    for (const [name, value] of m.logitBias) {
      const start = w.begin(66)
      w.int32(8, name)
      w.float(21, value)
      w.end(start)
    }
  if (m.maxTokens !== undefined) w.uint32(72, m.maxTokens)
  if (m.stopTokenIds !== undefined && m.stopTokenIds.length > 0) w.uint32s(82, m.stopTokenIds)
  if (m.ignoreEos !== undefined && m.ignoreEos) w.bool(88, m.ignoreEos)
  if (m.logprobs !== undefined) w.int32(96, m.logprobs)
  if (m.seed !== undefined) w.int32(104, m.seed)
}

export function encodeSamplingParams(m: SamplingParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSamplingParams(w, m)
  return w.finish()
}

export function readSamplingParams(r: Reader, end: number): SamplingParams {
  const m: SamplingParams = {
    temperature: undefined,
    topP: 0,
    topK: 0,
    minP: 0,
    repetitionPenalty: 0,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: new Map(),
    maxTokens: undefined,
    stopTokenIds: [],
    ignoreEos: false,
    logprobs: undefined,
    seed: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 13:
        m.temperature = r.float()
        break
      case 21:
        m.topP = r.float()
        break
      case 24:
        m.topK = r.uint32()
        break
      case 37:
        m.minP = r.float()
        break
      case 45:
        m.repetitionPenalty = r.float()
        break
      case 53:
        m.frequencyPenalty = r.float()
        break
      case 61:
        m.presencePenalty = r.float()
        break
      case 66: {
        let name: number = 0
        let value: number = 0
        for (const last = r.end(); r.at < last; ) {
          const part = r.uint32()
          if (part === 8) name = r.int32()
          else if (part === 21) value = r.float()
          else r.skip(part)
        }
        m.logitBias.set(name, value)
        break
      }
      case 72:
        m.maxTokens = r.uint32()
        break
      case 82:
        r.uint32s(m.stopTokenIds)
        break
      case 80:
        r.add(m.stopTokenIds, r.uint32())
        break
      case 88:
        m.ignoreEos = r.bool()
        break
      case 96:
        m.logprobs = r.int32()
        break
      case 104:
        m.seed = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeSamplingParams(bytes: Buffer): SamplingParams {
  return readSamplingParams(new Reader(bytes), bytes.length)
}

export interface GenerateResponse {
  chunk: GenerateStreamChunk | undefined
  complete: GenerateComplete | undefined
}

export interface GenerateResponseFields {
  readonly chunk?: GenerateStreamChunkFields
  readonly complete?: GenerateCompleteFields
}

export function writeGenerateResponse(w: Writer, m: GenerateResponseFields): void {
  if (m.chunk !== undefined) {
    const start = w.begin(10)
    writeGenerateStreamChunk(w, m.chunk)
    w.end(start)
  }
  if (m.complete !== undefined) {
    const start = w.begin(18)
    writeGenerateComplete(w, m.complete)
    w.end(start)
  }
}

export function encodeGenerateResponse(m: GenerateResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateResponse(w, m)
  return w.finish()
}

export function readGenerateResponse(r: Reader, end: number): GenerateResponse {
  const m: GenerateResponse = {
    chunk: undefined,
    complete: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.chunk = readGenerateStreamChunk(r, r.end())
        break
      case 18:
        m.complete = readGenerateComplete(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateResponse(bytes: Buffer): GenerateResponse {
  return readGenerateResponse(new Reader(bytes), bytes.length)
}

export interface GenerateStreamChunk {
  tokenIds: number[]
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  outputLogprobs: OutputLogProbs | undefined
  index: number
}

export interface GenerateStreamChunkFields {
  readonly tokenIds?: ArrayLike<number>
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly index?: number
}

export function writeGenerateStreamChunk(w: Writer, m: GenerateStreamChunkFields): void {
  if (m.tokenIds !== undefined && m.tokenIds.length > 0) w.uint32s(10, m.tokenIds)
  if (m.promptTokens !== undefined && m.promptTokens !== 0) w.uint32(16, m.promptTokens)
  if (m.completionTokens !== undefined && m.completionTokens !== 0) w.uint32(24, m.completionTokens)
  if (m.cachedTokens !== undefined && m.cachedTokens !== 0) w.uint32(32, m.cachedTokens)
  if (m.outputLogprobs !== undefined) {
    const start = w.begin(42)
    writeOutputLogProbs(w, m.outputLogprobs)
    w.end(start)
  }
  if (m.index !== undefined && m.index !== 0) w.uint32(48, m.index)
}

export function encodeGenerateStreamChunk(m: GenerateStreamChunkFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateStreamChunk(w, m)
  return w.finish()
}

export function readGenerateStreamChunk(r: Reader, end: number): GenerateStreamChunk {
  const m: GenerateStreamChunk = {
    tokenIds: [],
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    outputLogprobs: undefined,
    index: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.uint32s(m.tokenIds)
        break
      case 8:
        r.add(m.tokenIds, r.uint32())
        break
      case 16:
        m.promptTokens = r.uint32()
        break
      case 24:
        m.completionTokens = r.uint32()
        break
      case 32:
        m.cachedTokens = r.uint32()
        break
      case 42:
        m.outputLogprobs = readOutputLogProbs(r, r.end())
        break
      case 48:
        m.index = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateStreamChunk(bytes: Buffer): GenerateStreamChunk {
  return readGenerateStreamChunk(new Reader(bytes), bytes.length)
}

export interface GenerateComplete {
  outputIds: number[]
  finishReason: string
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  outputLogprobs: OutputLogProbs | undefined
  index: number
  matchedStopTokenId: number | undefined
}

export interface GenerateCompleteFields {
  readonly outputIds?: ArrayLike<number>
  readonly finishReason?: string
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly index?: number
  readonly matchedStopTokenId?: number
}

export function writeGenerateComplete(w: Writer, m: GenerateCompleteFields): void {
  if (m.outputIds !== undefined && m.outputIds.length > 0) w.uint32s(10, m.outputIds)
  if (m.finishReason !== undefined && m.finishReason !== '') w.string(18, m.finishReason)
  if (m.promptTokens !== undefined && m.promptTokens !== 0) w.uint32(24, m.promptTokens)
  if (m.completionTokens !== undefined && m.completionTokens !== 0) w.uint32(32, m.completionTokens)
  if (m.cachedTokens !== undefined && m.cachedTokens !== 0) w.uint32(40, m.cachedTokens)
  if (m.outputLogprobs !== undefined) {
    const start = w.begin(50)
    writeOutputLogProbs(w, m.outputLogprobs)
    w.end(start)
  }
  if (m.index !== undefined && m.index !== 0) w.uint32(56, m.index)
  if (m.matchedStopTokenId !== undefined) w.uint32(64, m.matchedStopTokenId)
}

export function encodeGenerateComplete(m: GenerateCompleteFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateComplete(w, m)
  return w.finish()
}

export function readGenerateComplete(r: Reader, end: number): GenerateComplete {
  const m: GenerateComplete = {
    outputIds: [],
    finishReason: '',
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    outputLogprobs: undefined,
    index: 0,
    matchedStopTokenId: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.uint32s(m.outputIds)
        break
      case 8:
        r.add(m.outputIds, r.uint32())
        break
      case 18:
        m.finishReason = r.string()
        break
      case 24:
        m.promptTokens = r.uint32()
        break
      case 32:
        m.completionTokens = r.uint32()
        break
      case 40:
        m.cachedTokens = r.uint32()
        break
      case 50:
        m.outputLogprobs = readOutputLogProbs(r, r.end())
        break
      case 56:
        m.index = r.uint32()
        break
      case 64:
        m.matchedStopTokenId = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateComplete(bytes: Buffer): GenerateComplete {
  return readGenerateComplete(new Reader(bytes), bytes.length)
}

export interface OutputLogProbs {
  tokenLogprobs: number[]
  tokenIds: number[]
  topLogprobs: TopLogProbs[]
}

export interface OutputLogProbsFields {
  readonly tokenLogprobs?: ArrayLike<number>
  readonly tokenIds?: ArrayLike<number>
  readonly topLogprobs?: readonly TopLogProbsFields[]
}

export function writeOutputLogProbs(w: Writer, m: OutputLogProbsFields): void {
  if (m.tokenLogprobs !== undefined && m.tokenLogprobs.length > 0) w.floats(10, m.tokenLogprobs)
  if (m.tokenIds !== undefined && m.tokenIds.length > 0) w.uint32s(18, m.tokenIds)
  if (m.topLogprobs !== undefined && m.topLogprobs.length > 0)
    for (const one of m.topLogprobs) {
      const start = w.begin(26)
      writeTopLogProbs(w, one)
      w.end(start)
    }
}

export function encodeOutputLogProbs(m: OutputLogProbsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeOutputLogProbs(w, m)
  return w.finish()
}

export function readOutputLogProbs(r: Reader, end: number): OutputLogProbs {
  const m: OutputLogProbs = {
    tokenLogprobs: [],
    tokenIds: [],
    topLogprobs: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.floats(m.tokenLogprobs)
        break
      case 13:
        r.add(m.tokenLogprobs, r.float())
        break
      case 18:
        r.uint32s(m.tokenIds)
        break
      case 16:
        r.add(m.tokenIds, r.uint32())
        break
      case 26:
        r.add(m.topLogprobs, readTopLogProbs(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeOutputLogProbs(bytes: Buffer): OutputLogProbs {
  return readOutputLogProbs(new Reader(bytes), bytes.length)
}

export interface TopLogProbs {
  values: number[]
  tokenIds: number[]
}

export interface TopLogProbsFields {
  readonly values?: ArrayLike<number>
  readonly tokenIds?: ArrayLike<number>
}

export function writeTopLogProbs(w: Writer, m: TopLogProbsFields): void {
  if (m.values !== undefined && m.values.length > 0) w.floats(10, m.values)
  if (m.tokenIds !== undefined && m.tokenIds.length > 0) w.uint32s(18, m.tokenIds)
}

export function encodeTopLogProbs(m: TopLogProbsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTopLogProbs(w, m)
  return w.finish()
}

export function readTopLogProbs(r: Reader, end: number): TopLogProbs {
  const m: TopLogProbs = {
    values: [],
    tokenIds: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.floats(m.values)
        break
      case 13:
        r.add(m.values, r.float())
        break
      case 18:
        r.uint32s(m.tokenIds)
        break
      case 16:
        r.add(m.tokenIds, r.uint32())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeTopLogProbs(bytes: Buffer): TopLogProbs {
  return readTopLogProbs(new Reader(bytes), bytes.length)
}

export interface HealthCheckResponse {
  healthy: boolean
  message: string
}

export interface HealthCheckResponseFields {
  readonly healthy?: boolean
  readonly message?: string
}

export function writeHealthCheckResponse(w: Writer, m: HealthCheckResponseFields): void {
  if (m.healthy !== undefined && m.healthy) w.bool(8, m.healthy)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
}

export function encodeHealthCheckResponse(m: HealthCheckResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeHealthCheckResponse(w, m)
  return w.finish()
}

export function readHealthCheckResponse(r: Reader, end: number): HealthCheckResponse {
  const m: HealthCheckResponse = {
    healthy: false,
    message: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.healthy = r.bool()
        break
      case 18:
        m.message = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeHealthCheckResponse(bytes: Buffer): HealthCheckResponse {
  return readHealthCheckResponse(new Reader(bytes), bytes.length)
}

export interface AbortRequest {
  requestIds: string[]
}

export interface AbortRequestFields {
  readonly requestIds?: readonly string[]
}

export function writeAbortRequest(w: Writer, m: AbortRequestFields): void {
  if (m.requestIds !== undefined && m.requestIds.length > 0)
    for (const one of m.requestIds) {
      w.string(10, one)
    }
}

export function encodeAbortRequest(m: AbortRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeAbortRequest(w, m)
  return w.finish()
}

export function readAbortRequest(r: Reader, end: number): AbortRequest {
  const m: AbortRequest = {
    requestIds: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.requestIds, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeAbortRequest(bytes: Buffer): AbortRequest {
  return readAbortRequest(new Reader(bytes), bytes.length)
}

export interface GetModelInfoResponse {
  modelPath: string
  isGeneration: boolean
  maxContextLength: number
  vocabSize: number
  servedModelName: string
  modelType: string
  architectures: string[]
  eosTokenIds: number[]
  padTokenId: number
  bosTokenId: number
  maxReqInputLen: number
}

export interface GetModelInfoResponseFields {
  readonly modelPath?: string
  readonly isGeneration?: boolean
  readonly maxContextLength?: number
  readonly vocabSize?: number
  readonly servedModelName?: string
  readonly modelType?: string
  readonly architectures?: readonly string[]
  readonly eosTokenIds?: ArrayLike<number>
  readonly padTokenId?: number
  readonly bosTokenId?: number
  readonly maxReqInputLen?: number
}

export function writeGetModelInfoResponse(w: Writer, m: GetModelInfoResponseFields): void {
  if (m.modelPath !== undefined && m.modelPath !== '') w.string(10, m.modelPath)
  if (m.isGeneration !== undefined && m.isGeneration) w.bool(16, m.isGeneration)
  if (m.maxContextLength !== undefined && m.maxContextLength !== 0) w.uint32(24, m.maxContextLength)
  if (m.vocabSize !== undefined && m.vocabSize !== 0) w.uint32(32, m.vocabSize)
  if (m.servedModelName !== undefined && m.servedModelName !== '') w.string(42, m.servedModelName)
  if (m.modelType !== undefined && m.modelType !== '') w.string(50, m.modelType)
  if (m.architectures !== undefined && m.architectures.length > 0)
    for (const one of m.architectures) {
      w.string(58, one)
    }
  if (m.eosTokenIds !== undefined && m.eosTokenIds.length > 0) w.uint32s(66, m.eosTokenIds)
  if (m.padTokenId !== undefined && m.padTokenId !== 0) w.uint32(72, m.padTokenId)
  if (m.bosTokenId !== undefined && m.bosTokenId !== 0) w.uint32(80, m.bosTokenId)
  if (m.maxReqInputLen !== undefined && m.maxReqInputLen !== 0) w.uint32(88, m.maxReqInputLen)
}

export function encodeGetModelInfoResponse(m: GetModelInfoResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetModelInfoResponse(w, m)
  return w.finish()
}

export function readGetModelInfoResponse(r: Reader, end: number): GetModelInfoResponse {
  const m: GetModelInfoResponse = {
    modelPath: '',
    isGeneration: false,
    maxContextLength: 0,
    vocabSize: 0,
    servedModelName: '',
    modelType: '',
    architectures: [],
    eosTokenIds: [],
    padTokenId: 0,
    bosTokenId: 0,
    maxReqInputLen: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.modelPath = r.string()
        break
      case 16:
        m.isGeneration = r.bool()
        break
      case 24:
        m.maxContextLength = r.uint32()
        break
      case 32:
        m.vocabSize = r.uint32()
        break
      case 42:
        m.servedModelName = r.string()
        break
      case 50:
        m.modelType = r.string()
        break
      case 58:
        r.add(m.architectures, r.string())
        break
      case 66:
        r.uint32s(m.eosTokenIds)
        break
      case 64:
        r.add(m.eosTokenIds, r.uint32())
        break
      case 72:
        m.padTokenId = r.uint32()
        break
      case 80:
        m.bosTokenId = r.uint32()
        break
      case 88:
        m.maxReqInputLen = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetModelInfoResponse(bytes: Buffer): GetModelInfoResponse {
  return readGetModelInfoResponse(new Reader(bytes), bytes.length)
}

export interface GetServerInfoResponse {
  serverType: string
  activeRequests: number
  uptimeSeconds: number
}

export interface GetServerInfoResponseFields {
  readonly serverType?: string
  readonly activeRequests?: number
  readonly uptimeSeconds?: number
}

export function writeGetServerInfoResponse(w: Writer, m: GetServerInfoResponseFields): void {
  if (m.serverType !== undefined && m.serverType !== '') w.string(10, m.serverType)
  if (m.activeRequests !== undefined && m.activeRequests !== 0) w.uint32(16, m.activeRequests)
  if (m.uptimeSeconds !== undefined && m.uptimeSeconds !== 0) w.double(25, m.uptimeSeconds)
}

export function encodeGetServerInfoResponse(m: GetServerInfoResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetServerInfoResponse(w, m)
  return w.finish()
}

export function readGetServerInfoResponse(r: Reader, end: number): GetServerInfoResponse {
  const m: GetServerInfoResponse = {
    serverType: '',
    activeRequests: 0,
    uptimeSeconds: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.serverType = r.string()
        break
      case 16:
        m.activeRequests = r.uint32()
        break
      case 25:
        m.uptimeSeconds = r.double()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetServerInfoResponse(bytes: Buffer): GetServerInfoResponse {
  return readGetServerInfoResponse(new Reader(bytes), bytes.length)
}
