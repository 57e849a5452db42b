/** Made by proto/generate.ts from proto/sglang_scheduler.proto: change that instead. @hot */
import { Reader, Writer, readStruct, readTimestamp, writeStruct, writeTimestamp } from '../wire.ts'

export const SglangScheduler = {
  Generate: '/sglang.grpc.scheduler.SglangScheduler/Generate',
  Embed: '/sglang.grpc.scheduler.SglangScheduler/Embed',
  HealthCheck: '/sglang.grpc.scheduler.SglangScheduler/HealthCheck',
  Abort: '/sglang.grpc.scheduler.SglangScheduler/Abort',
  GetModelInfo: '/sglang.grpc.scheduler.SglangScheduler/GetModelInfo',
  GetServerInfo: '/sglang.grpc.scheduler.SglangScheduler/GetServerInfo',
  GetLoads: '/sglang.grpc.scheduler.SglangScheduler/GetLoads',
  FlushCache: '/sglang.grpc.scheduler.SglangScheduler/FlushCache',
  StartProfile: '/sglang.grpc.scheduler.SglangScheduler/StartProfile',
  StopProfile: '/sglang.grpc.scheduler.SglangScheduler/StopProfile',
  GetTokenizer: '/sglang.grpc.scheduler.SglangScheduler/GetTokenizer',
  SubscribeKvEvents: '/sglang.grpc.scheduler.SglangScheduler/SubscribeKvEvents',
  LoadLoRAAdapter: '/sglang.grpc.scheduler.SglangScheduler/LoadLoRAAdapter',
  UnloadLoRAAdapter: '/sglang.grpc.scheduler.SglangScheduler/UnloadLoRAAdapter',
  ListLoadedLoRAAdapters: '/sglang.grpc.scheduler.SglangScheduler/ListLoadedLoRAAdapters',
} as const

export interface SamplingParams {
  temperature: number
  topP: number
  topK: number
  minP: number
  frequencyPenalty: number
  presencePenalty: number
  repetitionPenalty: number
  maxNewTokens: number | undefined
  stop: string[]
  stopTokenIds: number[]
  skipSpecialTokens: boolean
  spacesBetweenSpecialTokens: boolean
  regex: string | undefined
  jsonSchema: string | undefined
  ebnfGrammar: string | undefined
  structuralTag: string | undefined
  n: number
  minNewTokens: number
  ignoreEos: boolean
  noStopTrim: boolean
  streamInterval: number | undefined
  logitBias: Map<string, number>
  customParams: Readonly<Record<string, unknown>> | undefined
}

export interface SamplingParamsFields {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly repetitionPenalty?: number
  readonly maxNewTokens?: number
  readonly stop?: readonly string[]
  readonly stopTokenIds?: ArrayLike<number>
  readonly skipSpecialTokens?: boolean
  readonly spacesBetweenSpecialTokens?: boolean
  readonly regex?: string
  readonly jsonSchema?: string
  readonly ebnfGrammar?: string
  readonly structuralTag?: string
  readonly n?: number
  readonly minNewTokens?: number
  readonly ignoreEos?: boolean
  readonly noStopTrim?: boolean
  readonly streamInterval?: number
  readonly logitBias?: ReadonlyMap<string, number>
  readonly customParams?: Readonly<Record<string, unknown>>
}

export function writeSamplingParams(w: Writer, m: SamplingParamsFields): void {
  if (m.temperature !== undefined && m.temperature !== 0) w.float(13, m.temperature)
  if (m.topP !== undefined && m.topP !== 0) w.float(21, m.topP)
  if (m.topK !== undefined && m.topK !== 0) w.int32(24, m.topK)
  if (m.minP !== undefined && m.minP !== 0) w.float(37, m.minP)
  if (m.frequencyPenalty !== undefined && m.frequencyPenalty !== 0) w.float(45, m.frequencyPenalty)
  if (m.presencePenalty !== undefined && m.presencePenalty !== 0) w.float(53, m.presencePenalty)
  if (m.repetitionPenalty !== undefined && m.repetitionPenalty !== 0) w.float(61, m.repetitionPenalty)
  if (m.maxNewTokens !== undefined) w.uint32(64, m.maxNewTokens)
  if (m.stop !== undefined && m.stop.length > 0)
    for (const one of m.stop) {
      w.string(74, one)
    }
  if (m.stopTokenIds !== undefined && m.stopTokenIds.length > 0) w.uint32s(82, m.stopTokenIds)
  if (m.skipSpecialTokens !== undefined && m.skipSpecialTokens) w.bool(88, m.skipSpecialTokens)
  if (m.spacesBetweenSpecialTokens !== undefined && m.spacesBetweenSpecialTokens) w.bool(96, m.spacesBetweenSpecialTokens)
  if (m.regex !== undefined) w.string(106, m.regex)
  if (m.jsonSchema !== undefined) w.string(114, m.jsonSchema)
  if (m.ebnfGrammar !== undefined) w.string(122, m.ebnfGrammar)
  if (m.structuralTag !== undefined) w.string(130, m.structuralTag)
  if (m.n !== undefined && m.n !== 0) w.uint32(136, m.n)
  if (m.minNewTokens !== undefined && m.minNewTokens !== 0) w.uint32(144, m.minNewTokens)
  if (m.ignoreEos !== undefined && m.ignoreEos) w.bool(152, m.ignoreEos)
  if (m.noStopTrim !== undefined && m.noStopTrim) w.bool(160, m.noStopTrim)
  if (m.streamInterval !== undefined) w.int32(168, m.streamInterval)
  if (m.logitBias !== undefined)
    for (const [name, value] of m.logitBias) {
      const start = w.begin(178)
      w.string(10, name)
      w.float(21, value)
      w.end(start)
    }
  if (m.customParams !== undefined) {
    const start = w.begin(186)
    writeStruct(w, m.customParams)
    w.end(start)
  }
}

export function encodeSamplingParams(m: SamplingParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSamplingParams(w, m)
  return w.finish()
}

export function readSamplingParams(r: Reader, end: number): SamplingParams {
  const m: SamplingParams = {
    temperature: 0,
    topP: 0,
    topK: 0,
    minP: 0,
    frequencyPenalty: 0,
    presencePenalty: 0,
    repetitionPenalty: 0,
    maxNewTokens: undefined,
    stop: [],
    stopTokenIds: [],
    skipSpecialTokens: false,
    spacesBetweenSpecialTokens: false,
    regex: undefined,
    jsonSchema: undefined,
    ebnfGrammar: undefined,
    structuralTag: undefined,
    n: 0,
    minNewTokens: 0,
    ignoreEos: false,
    noStopTrim: false,
    streamInterval: undefined,
    logitBias: new Map(),
    customParams: undefined,
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
        m.topK = r.int32()
        break
      case 37:
        m.minP = r.float()
        break
      case 45:
        m.frequencyPenalty = r.float()
        break
      case 53:
        m.presencePenalty = r.float()
        break
      case 61:
        m.repetitionPenalty = r.float()
        break
      case 64:
        m.maxNewTokens = r.uint32()
        break
      case 74:
        r.add(m.stop, r.string())
        break
      case 82:
        r.uint32s(m.stopTokenIds)
        break
      case 80:
        r.add(m.stopTokenIds, r.uint32())
        break
      case 88:
        m.skipSpecialTokens = r.bool()
        break
      case 96:
        m.spacesBetweenSpecialTokens = r.bool()
        break
      case 106:
        m.regex = r.string()
        break
      case 114:
        m.jsonSchema = r.string()
        break
      case 122:
        m.ebnfGrammar = r.string()
        break
      case 130:
        m.structuralTag = r.string()
        break
      case 136:
        m.n = r.uint32()
        break
      case 144:
        m.minNewTokens = r.uint32()
        break
      case 152:
        m.ignoreEos = r.bool()
        break
      case 160:
        m.noStopTrim = r.bool()
        break
      case 168:
        m.streamInterval = r.int32()
        break
      case 178: {
        let name: string = ''
        let value: number = 0
        for (const last = r.end(); r.at < last; ) {
          const part = r.uint32()
          if (part === 10) name = r.string()
          else if (part === 21) value = r.float()
          else r.skip(part)
        }
        m.logitBias.set(name, value)
        break
      }
      case 186:
        m.customParams = readStruct(r, r.end())
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

export interface DisaggregatedParams {
  bootstrapHost: string
  bootstrapPort: number
  bootstrapRoom: number
}

export interface DisaggregatedParamsFields {
  readonly bootstrapHost?: string
  readonly bootstrapPort?: number
  readonly bootstrapRoom?: number
}

export function writeDisaggregatedParams(w: Writer, m: DisaggregatedParamsFields): void {
  if (m.bootstrapHost !== undefined && m.bootstrapHost !== '') w.string(10, m.bootstrapHost)
  if (m.bootstrapPort !== undefined && m.bootstrapPort !== 0) w.int32(16, m.bootstrapPort)
  if (m.bootstrapRoom !== undefined && m.bootstrapRoom !== 0) w.int32(24, m.bootstrapRoom)
}

export function encodeDisaggregatedParams(m: DisaggregatedParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeDisaggregatedParams(w, m)
  return w.finish()
}

export function readDisaggregatedParams(r: Reader, end: number): DisaggregatedParams {
  const m: DisaggregatedParams = {
    bootstrapHost: '',
    bootstrapPort: 0,
    bootstrapRoom: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.bootstrapHost = r.string()
        break
      case 16:
        m.bootstrapPort = r.int32()
        break
      case 24:
        m.bootstrapRoom = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeDisaggregatedParams(bytes: Buffer): DisaggregatedParams {
  return readDisaggregatedParams(new Reader(bytes), bytes.length)
}

export interface GenerateRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
  mmInputs: MultimodalInputs | undefined
  samplingParams: SamplingParams | undefined
  returnLogprob: boolean
  logprobStartLen: number
  topLogprobsNum: number
  tokenIdsLogprob: number[]
  returnHiddenStates: boolean
  disaggregatedParams: DisaggregatedParams | undefined
  customLogitProcessor: string
  timestamp: number | undefined
  logMetrics: boolean
  inputEmbeds: number[]
  loraId: string
  dataParallelRank: number | undefined
  stream: boolean
  requireReasoning: boolean
}

export interface GenerateRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
  readonly mmInputs?: MultimodalInputsFields
  readonly samplingParams?: SamplingParamsFields
  readonly returnLogprob?: boolean
  readonly logprobStartLen?: number
  readonly topLogprobsNum?: number
  readonly tokenIdsLogprob?: ArrayLike<number>
  readonly returnHiddenStates?: boolean
  readonly disaggregatedParams?: DisaggregatedParamsFields
  readonly customLogitProcessor?: string
  readonly timestamp?: number
  readonly logMetrics?: boolean
  readonly inputEmbeds?: ArrayLike<number>
  readonly loraId?: string
  readonly dataParallelRank?: number
  readonly stream?: boolean
  readonly requireReasoning?: boolean
}

export function writeGenerateRequest(w: Writer, m: GenerateRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.tokenized !== undefined) {
    const start = w.begin(18)
    writeTokenizedInput(w, m.tokenized)
    w.end(start)
  }
  if (m.mmInputs !== undefined) {
    const start = w.begin(26)
    writeMultimodalInputs(w, m.mmInputs)
    w.end(start)
  }
  if (m.samplingParams !== undefined) {
    const start = w.begin(34)
    writeSamplingParams(w, m.samplingParams)
    w.end(start)
  }
  if (m.returnLogprob !== undefined && m.returnLogprob) w.bool(40, m.returnLogprob)
  if (m.logprobStartLen !== undefined && m.logprobStartLen !== 0) w.int32(48, m.logprobStartLen)
  if (m.topLogprobsNum !== undefined && m.topLogprobsNum !== 0) w.int32(56, m.topLogprobsNum)
  if (m.tokenIdsLogprob !== undefined && m.tokenIdsLogprob.length > 0) w.uint32s(66, m.tokenIdsLogprob)
  if (m.returnHiddenStates !== undefined && m.returnHiddenStates) w.bool(72, m.returnHiddenStates)
  if (m.disaggregatedParams !== undefined) {
    const start = w.begin(82)
    writeDisaggregatedParams(w, m.disaggregatedParams)
    w.end(start)
  }
  if (m.customLogitProcessor !== undefined && m.customLogitProcessor !== '') w.string(90, m.customLogitProcessor)
  if (m.timestamp !== undefined) {
    const start = w.begin(98)
    writeTimestamp(w, m.timestamp)
    w.end(start)
  }
  if (m.logMetrics !== undefined && m.logMetrics) w.bool(104, m.logMetrics)
  if (m.inputEmbeds !== undefined && m.inputEmbeds.length > 0) w.floats(114, m.inputEmbeds)
  if (m.loraId !== undefined && m.loraId !== '') w.string(122, m.loraId)
  if (m.dataParallelRank !== undefined) w.int32(128, m.dataParallelRank)
  if (m.stream !== undefined && m.stream) w.bool(136, m.stream)
  if (m.requireReasoning !== undefined && m.requireReasoning) w.bool(144, m.requireReasoning)
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
    mmInputs: undefined,
    samplingParams: undefined,
    returnLogprob: false,
    logprobStartLen: 0,
    topLogprobsNum: 0,
    tokenIdsLogprob: [],
    returnHiddenStates: false,
    disaggregatedParams: undefined,
    customLogitProcessor: '',
    timestamp: undefined,
    logMetrics: false,
    inputEmbeds: [],
    loraId: '',
    dataParallelRank: undefined,
    stream: false,
    requireReasoning: false,
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
        m.mmInputs = readMultimodalInputs(r, r.end())
        break
      case 34:
        m.samplingParams = readSamplingParams(r, r.end())
        break
      case 40:
        m.returnLogprob = r.bool()
        break
      case 48:
        m.logprobStartLen = r.int32()
        break
      case 56:
        m.topLogprobsNum = r.int32()
        break
      case 66:
        r.uint32s(m.tokenIdsLogprob)
        break
      case 64:
        r.add(m.tokenIdsLogprob, r.uint32())
        break
      case 72:
        m.returnHiddenStates = r.bool()
        break
      case 82:
        m.disaggregatedParams = readDisaggregatedParams(r, r.end())
        break
      case 90:
        m.customLogitProcessor = r.string()
        break
      case 98:
        m.timestamp = readTimestamp(r, r.end())
        break
      case 104:
        m.logMetrics = r.bool()
        break
      case 114:
        r.floats(m.inputEmbeds)
        break
      case 117:
        r.add(m.inputEmbeds, r.float())
        break
      case 122:
        m.loraId = r.string()
        break
      case 128:
        m.dataParallelRank = r.int32()
        break
      case 136:
        m.stream = r.bool()
        break
      case 144:
        m.requireReasoning = r.bool()
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

export interface TensorData {
  data: Buffer
  shape: number[]
  dtype: string
}

export interface TensorDataFields {
  readonly data?: Buffer
  readonly shape?: ArrayLike<number>
  readonly dtype?: string
}

export function writeTensorData(w: Writer, m: TensorDataFields): void {
  if (m.data !== undefined && m.data.length > 0) w.bytes(10, m.data)
  if (m.shape !== undefined && m.shape.length > 0) w.uint32s(18, m.shape)
  if (m.dtype !== undefined && m.dtype !== '') w.string(26, m.dtype)
}

export function encodeTensorData(m: TensorDataFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTensorData(w, m)
  return w.finish()
}

export function readTensorData(r: Reader, end: number): TensorData {
  const m: TensorData = {
    data: Buffer.alloc(0),
    shape: [],
    dtype: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.data = r.bytes()
        break
      case 18:
        r.uint32s(m.shape)
        break
      case 16:
        r.add(m.shape, r.uint32())
        break
      case 26:
        m.dtype = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeTensorData(bytes: Buffer): TensorData {
  return readTensorData(new Reader(bytes), bytes.length)
}

export interface MultimodalInputs {
  imageUrls: string[]
  videoUrls: string[]
  audioUrls: string[]
  pixelValues: TensorData | undefined
  imageData: Buffer[]
  videoData: Buffer[]
  audioData: Buffer[]
  modalities: string[]
  modelSpecificTensors: Map<string, TensorData>
  imTokenId: number | undefined
  mmPlaceholders: PlaceholderRange[]
}

export interface MultimodalInputsFields {
  readonly imageUrls?: readonly string[]
  readonly videoUrls?: readonly string[]
  readonly audioUrls?: readonly string[]
  readonly pixelValues?: TensorDataFields
  readonly imageData?: readonly Buffer[]
  readonly videoData?: readonly Buffer[]
  readonly audioData?: readonly Buffer[]
  readonly modalities?: readonly string[]
  readonly modelSpecificTensors?: ReadonlyMap<string, TensorDataFields>
  readonly imTokenId?: number
  readonly mmPlaceholders?: readonly PlaceholderRangeFields[]
}

export function writeMultimodalInputs(w: Writer, m: MultimodalInputsFields): void {
  if (m.imageUrls !== undefined && m.imageUrls.length > 0)
    for (const one of m.imageUrls) {
      w.string(10, one)
    }
  if (m.videoUrls !== undefined && m.videoUrls.length > 0)
    for (const one of m.videoUrls) {
      w.string(18, one)
    }
  if (m.audioUrls !== undefined && m.audioUrls.length > 0)
    for (const one of m.audioUrls) {
      w.string(26, one)
    }
  if (m.pixelValues !== undefined) {
    const start = w.begin(34)
    writeTensorData(w, m.pixelValues)
    w.end(start)
  }
  if (m.imageData !== undefined && m.imageData.length > 0)
    for (const one of m.imageData) {
      w.bytes(42, one)
    }
  if (m.videoData !== undefined && m.videoData.length > 0)
    for (const one of m.videoData) {
      w.bytes(50, one)
    }
  if (m.audioData !== undefined && m.audioData.length > 0)
    for (const one of m.audioData) {
      w.bytes(58, one)
    }
  if (m.modalities !== undefined && m.modalities.length > 0)
    for (const one of m.modalities) {
      w.string(66, one)
    }
  if (m.modelSpecificTensors !== undefined)
    for (const [name, value] of m.modelSpecificTensors) {
      const start = w.begin(74)
      w.string(10, name)
      const inner = w.begin(18)
      writeTensorData(w, value)
      w.end(inner)
      w.end(start)
    }
  if (m.imTokenId !== undefined) w.uint32(80, m.imTokenId)
  if (m.mmPlaceholders !== undefined && m.mmPlaceholders.length > 0)
    for (const one of m.mmPlaceholders) {
      const start = w.begin(90)
      writePlaceholderRange(w, one)
      w.end(start)
    }
}

export function encodeMultimodalInputs(m: MultimodalInputsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMultimodalInputs(w, m)
  return w.finish()
}

export function readMultimodalInputs(r: Reader, end: number): MultimodalInputs {
  const m: MultimodalInputs = {
    imageUrls: [],
    videoUrls: [],
    audioUrls: [],
    pixelValues: undefined,
    imageData: [],
    videoData: [],
    audioData: [],
    modalities: [],
    modelSpecificTensors: new Map(),
    imTokenId: undefined,
    mmPlaceholders: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.imageUrls, r.string())
        break
      case 18:
        r.add(m.videoUrls, r.string())
        break
      case 26:
        r.add(m.audioUrls, r.string())
        break
      case 34:
        m.pixelValues = readTensorData(r, r.end())
        break
      case 42:
        r.add(m.imageData, r.bytes())
        break
      case 50:
        r.add(m.videoData, r.bytes())
        break
      case 58:
        r.add(m.audioData, r.bytes())
        break
      case 66:
        r.add(m.modalities, r.string())
        break
      case 74: {
        let name: string = ''
        let value: TensorData = readTensorData(r, r.at)
        for (const last = r.end(); r.at < last; ) {
          const part = r.uint32()
          if (part === 10) name = r.string()
          else if (part === 18) value = readTensorData(r, r.end())
          else r.skip(part)
        }
        m.modelSpecificTensors.set(name, value)
        break
      }
      case 80:
        m.imTokenId = r.uint32()
        break
      case 90:
        r.add(m.mmPlaceholders, readPlaceholderRange(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeMultimodalInputs(bytes: Buffer): MultimodalInputs {
  return readMultimodalInputs(new Reader(bytes), bytes.length)
}

export interface PlaceholderRange {
  offset: number
  length: number
}

export interface PlaceholderRangeFields {
  readonly offset?: number
  readonly length?: number
}

export function writePlaceholderRange(w: Writer, m: PlaceholderRangeFields): void {
  if (m.offset !== undefined && m.offset !== 0) w.uint32(8, m.offset)
  if (m.length !== undefined && m.length !== 0) w.uint32(16, m.length)
}

export function encodePlaceholderRange(m: PlaceholderRangeFields, size?: number): Buffer {
  const w = new Writer(size)
  writePlaceholderRange(w, m)
  return w.finish()
}

export function readPlaceholderRange(r: Reader, end: number): PlaceholderRange {
  const m: PlaceholderRange = {
    offset: 0,
    length: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.offset = r.uint32()
        break
      case 16:
        m.length = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodePlaceholderRange(bytes: Buffer): PlaceholderRange {
  return readPlaceholderRange(new Reader(bytes), bytes.length)
}

export interface GenerateResponse {
  requestId: string
  chunk: GenerateStreamChunk | undefined
  complete: GenerateComplete | undefined
}

export interface GenerateResponseFields {
  readonly requestId?: string
  readonly chunk?: GenerateStreamChunkFields
  readonly complete?: GenerateCompleteFields
}

export function writeGenerateResponse(w: Writer, m: GenerateResponseFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.chunk !== undefined) {
    const start = w.begin(18)
    writeGenerateStreamChunk(w, m.chunk)
    w.end(start)
  }
  if (m.complete !== undefined) {
    const start = w.begin(26)
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
    requestId: '',
    chunk: undefined,
    complete: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      case 18:
        m.chunk = readGenerateStreamChunk(r, r.end())
        break
      case 26:
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
  hiddenStates: number[]
  inputLogprobs: InputLogProbs | undefined
  index: number
  reasoningTokens: number
}

export interface GenerateStreamChunkFields {
  readonly tokenIds?: ArrayLike<number>
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly hiddenStates?: ArrayLike<number>
  readonly inputLogprobs?: InputLogProbsFields
  readonly index?: number
  readonly reasoningTokens?: number
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
  if (m.hiddenStates !== undefined && m.hiddenStates.length > 0) w.floats(50, m.hiddenStates)
  if (m.inputLogprobs !== undefined) {
    const start = w.begin(58)
    writeInputLogProbs(w, m.inputLogprobs)
    w.end(start)
  }
  if (m.index !== undefined && m.index !== 0) w.uint32(64, m.index)
  if (m.reasoningTokens !== undefined && m.reasoningTokens !== 0) w.uint32(72, m.reasoningTokens)
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
    hiddenStates: [],
    inputLogprobs: undefined,
    index: 0,
    reasoningTokens: 0,
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
      case 50:
        r.floats(m.hiddenStates)
        break
      case 53:
        r.add(m.hiddenStates, r.float())
        break
      case 58:
        m.inputLogprobs = readInputLogProbs(r, r.end())
        break
      case 64:
        m.index = r.uint32()
        break
      case 72:
        m.reasoningTokens = r.uint32()
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
  allHiddenStates: HiddenStates[]
  matchedTokenId: number | undefined
  matchedStopStr: string | undefined
  inputLogprobs: InputLogProbs | undefined
  index: number
  reasoningTokens: number
  specAcceptedTokens: number
  specDraftTokens: number
}

export interface GenerateCompleteFields {
  readonly outputIds?: ArrayLike<number>
  readonly finishReason?: string
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly allHiddenStates?: readonly HiddenStatesFields[]
  readonly matchedTokenId?: number
  readonly matchedStopStr?: string
  readonly inputLogprobs?: InputLogProbsFields
  readonly index?: number
  readonly reasoningTokens?: number
  readonly specAcceptedTokens?: number
  readonly specDraftTokens?: number
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
  if (m.allHiddenStates !== undefined && m.allHiddenStates.length > 0)
    for (const one of m.allHiddenStates) {
      const start = w.begin(58)
      writeHiddenStates(w, one)
      w.end(start)
    }
  if (m.matchedTokenId !== undefined) w.uint32(64, m.matchedTokenId)
  if (m.matchedStopStr !== undefined) w.string(74, m.matchedStopStr)
  if (m.inputLogprobs !== undefined) {
    const start = w.begin(82)
    writeInputLogProbs(w, m.inputLogprobs)
    w.end(start)
  }
  if (m.index !== undefined && m.index !== 0) w.uint32(88, m.index)
  if (m.reasoningTokens !== undefined && m.reasoningTokens !== 0) w.uint32(96, m.reasoningTokens)
  if (m.specAcceptedTokens !== undefined && m.specAcceptedTokens !== 0) w.uint32(104, m.specAcceptedTokens)
  if (m.specDraftTokens !== undefined && m.specDraftTokens !== 0) w.uint32(112, m.specDraftTokens)
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
    allHiddenStates: [],
    matchedTokenId: undefined,
    matchedStopStr: undefined,
    inputLogprobs: undefined,
    index: 0,
    reasoningTokens: 0,
    specAcceptedTokens: 0,
    specDraftTokens: 0,
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
      case 58:
        r.add(m.allHiddenStates, readHiddenStates(r, r.end()))
        break
      case 64:
        m.matchedTokenId = r.uint32()
        break
      case 74:
        m.matchedStopStr = r.string()
        break
      case 82:
        m.inputLogprobs = readInputLogProbs(r, r.end())
        break
      case 88:
        m.index = r.uint32()
        break
      case 96:
        m.reasoningTokens = r.uint32()
        break
      case 104:
        m.specAcceptedTokens = r.uint32()
        break
      case 112:
        m.specDraftTokens = r.uint32()
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
  tokenIdsLogprobs: TopLogProbs[]
}

export interface OutputLogProbsFields {
  readonly tokenLogprobs?: ArrayLike<number>
  readonly tokenIds?: ArrayLike<number>
  readonly topLogprobs?: readonly TopLogProbsFields[]
  readonly tokenIdsLogprobs?: readonly TopLogProbsFields[]
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
  if (m.tokenIdsLogprobs !== undefined && m.tokenIdsLogprobs.length > 0)
    for (const one of m.tokenIdsLogprobs) {
      const start = w.begin(34)
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
    tokenIdsLogprobs: [],
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
      case 34:
        r.add(m.tokenIdsLogprobs, readTopLogProbs(r, r.end()))
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

export interface InputLogProbs {
  tokenLogprobs: InputTokenLogProb[]
  tokenIds: number[]
  topLogprobs: TopLogProbs[]
}

export interface InputLogProbsFields {
  readonly tokenLogprobs?: readonly InputTokenLogProbFields[]
  readonly tokenIds?: ArrayLike<number>
  readonly topLogprobs?: readonly TopLogProbsFields[]
}

export function writeInputLogProbs(w: Writer, m: InputLogProbsFields): void {
  if (m.tokenLogprobs !== undefined && m.tokenLogprobs.length > 0)
    for (const one of m.tokenLogprobs) {
      const start = w.begin(10)
      writeInputTokenLogProb(w, one)
      w.end(start)
    }
  if (m.tokenIds !== undefined && m.tokenIds.length > 0) w.uint32s(18, m.tokenIds)
  if (m.topLogprobs !== undefined && m.topLogprobs.length > 0)
    for (const one of m.topLogprobs) {
      const start = w.begin(26)
      writeTopLogProbs(w, one)
      w.end(start)
    }
}

export function encodeInputLogProbs(m: InputLogProbsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeInputLogProbs(w, m)
  return w.finish()
}

export function readInputLogProbs(r: Reader, end: number): InputLogProbs {
  const m: InputLogProbs = {
    tokenLogprobs: [],
    tokenIds: [],
    topLogprobs: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.tokenLogprobs, readInputTokenLogProb(r, r.end()))
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

export function decodeInputLogProbs(bytes: Buffer): InputLogProbs {
  return readInputLogProbs(new Reader(bytes), bytes.length)
}

export interface InputTokenLogProb {
  value: number | undefined
}

export interface InputTokenLogProbFields {
  readonly value?: number
}

export function writeInputTokenLogProb(w: Writer, m: InputTokenLogProbFields): void {
  if (m.value !== undefined) w.float(13, m.value)
}

export function encodeInputTokenLogProb(m: InputTokenLogProbFields, size?: number): Buffer {
  const w = new Writer(size)
  writeInputTokenLogProb(w, m)
  return w.finish()
}

export function readInputTokenLogProb(r: Reader, end: number): InputTokenLogProb {
  const m: InputTokenLogProb = {
    value: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 13:
        m.value = r.float()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeInputTokenLogProb(bytes: Buffer): InputTokenLogProb {
  return readInputTokenLogProb(new Reader(bytes), bytes.length)
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

export interface HiddenStates {
  values: number[]
  layer: number
  position: number
}

export interface HiddenStatesFields {
  readonly values?: ArrayLike<number>
  readonly layer?: number
  readonly position?: number
}

export function writeHiddenStates(w: Writer, m: HiddenStatesFields): void {
  if (m.values !== undefined && m.values.length > 0) w.floats(10, m.values)
  if (m.layer !== undefined && m.layer !== 0) w.int32(16, m.layer)
  if (m.position !== undefined && m.position !== 0) w.int32(24, m.position)
}

export function encodeHiddenStates(m: HiddenStatesFields, size?: number): Buffer {
  const w = new Writer(size)
  writeHiddenStates(w, m)
  return w.finish()
}

export function readHiddenStates(r: Reader, end: number): HiddenStates {
  const m: HiddenStates = {
    values: [],
    layer: 0,
    position: 0,
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
      case 16:
        m.layer = r.int32()
        break
      case 24:
        m.position = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeHiddenStates(bytes: Buffer): HiddenStates {
  return readHiddenStates(new Reader(bytes), bytes.length)
}

export interface EmbedRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
  mmInputs: MultimodalInputs | undefined
  samplingParams: SamplingParams | undefined
  tokenTypeIds: number[]
  dataParallelRank: number
  isCrossEncoder: boolean
  texts: string[]
}

export interface EmbedRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
  readonly mmInputs?: MultimodalInputsFields
  readonly samplingParams?: SamplingParamsFields
  readonly tokenTypeIds?: ArrayLike<number>
  readonly dataParallelRank?: number
  readonly isCrossEncoder?: boolean
  readonly texts?: readonly string[]
}

export function writeEmbedRequest(w: Writer, m: EmbedRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.tokenized !== undefined) {
    const start = w.begin(18)
    writeTokenizedInput(w, m.tokenized)
    w.end(start)
  }
  if (m.mmInputs !== undefined) {
    const start = w.begin(34)
    writeMultimodalInputs(w, m.mmInputs)
    w.end(start)
  }
  if (m.samplingParams !== undefined) {
    const start = w.begin(42)
    writeSamplingParams(w, m.samplingParams)
    w.end(start)
  }
  if (m.tokenTypeIds !== undefined && m.tokenTypeIds.length > 0) w.int32s(58, m.tokenTypeIds)
  if (m.dataParallelRank !== undefined && m.dataParallelRank !== 0) w.int32(64, m.dataParallelRank)
  if (m.isCrossEncoder !== undefined && m.isCrossEncoder) w.bool(72, m.isCrossEncoder)
  if (m.texts !== undefined && m.texts.length > 0)
    for (const one of m.texts) {
      w.string(82, one)
    }
}

export function encodeEmbedRequest(m: EmbedRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEmbedRequest(w, m)
  return w.finish()
}

export function readEmbedRequest(r: Reader, end: number): EmbedRequest {
  const m: EmbedRequest = {
    requestId: '',
    tokenized: undefined,
    mmInputs: undefined,
    samplingParams: undefined,
    tokenTypeIds: [],
    dataParallelRank: 0,
    isCrossEncoder: false,
    texts: [],
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
      case 34:
        m.mmInputs = readMultimodalInputs(r, r.end())
        break
      case 42:
        m.samplingParams = readSamplingParams(r, r.end())
        break
      case 58:
        r.int32s(m.tokenTypeIds)
        break
      case 56:
        r.add(m.tokenTypeIds, r.int32())
        break
      case 64:
        m.dataParallelRank = r.int32()
        break
      case 72:
        m.isCrossEncoder = r.bool()
        break
      case 82:
        r.add(m.texts, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeEmbedRequest(bytes: Buffer): EmbedRequest {
  return readEmbedRequest(new Reader(bytes), bytes.length)
}

export interface EmbedResponse {
  embeddingDim: number
  embedding: number[]
  promptTokens: number
}

export interface EmbedResponseFields {
  readonly embeddingDim?: number
  readonly embedding?: ArrayLike<number>
  readonly promptTokens?: number
}

export function writeEmbedResponse(w: Writer, m: EmbedResponseFields): void {
  if (m.embeddingDim !== undefined && m.embeddingDim !== 0) w.uint32(32, m.embeddingDim)
  if (m.embedding !== undefined && m.embedding.length > 0) w.floats(42, m.embedding)
  if (m.promptTokens !== undefined && m.promptTokens !== 0) w.uint32(48, m.promptTokens)
}

export function encodeEmbedResponse(m: EmbedResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEmbedResponse(w, m)
  return w.finish()
}

export function readEmbedResponse(r: Reader, end: number): EmbedResponse {
  const m: EmbedResponse = {
    embeddingDim: 0,
    embedding: [],
    promptTokens: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 32:
        m.embeddingDim = r.uint32()
        break
      case 42:
        r.floats(m.embedding)
        break
      case 45:
        r.add(m.embedding, r.float())
        break
      case 48:
        m.promptTokens = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeEmbedResponse(bytes: Buffer): EmbedResponse {
  return readEmbedResponse(new Reader(bytes), bytes.length)
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
  requestId: string
  reason: string
}

export interface AbortRequestFields {
  readonly requestId?: string
  readonly reason?: string
}

export function writeAbortRequest(w: Writer, m: AbortRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.reason !== undefined && m.reason !== '') w.string(18, m.reason)
}

export function encodeAbortRequest(m: AbortRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeAbortRequest(w, m)
  return w.finish()
}

export function readAbortRequest(r: Reader, end: number): AbortRequest {
  const m: AbortRequest = {
    requestId: '',
    reason: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      case 18:
        m.reason = r.string()
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

export interface AbortResponse {
  success: boolean
  message: string
}

export interface AbortResponseFields {
  readonly success?: boolean
  readonly message?: string
}

export function writeAbortResponse(w: Writer, m: AbortResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
}

export function encodeAbortResponse(m: AbortResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeAbortResponse(w, m)
  return w.finish()
}

export function readAbortResponse(r: Reader, end: number): AbortResponse {
  const m: AbortResponse = {
    success: false,
    message: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.success = r.bool()
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

export function decodeAbortResponse(bytes: Buffer): AbortResponse {
  return readAbortResponse(new Reader(bytes), bytes.length)
}

export interface LoadLoRAAdapterRequest {
  loraName: string
  loraPath: string
  pinned: boolean
  loraId: string
}

export interface LoadLoRAAdapterRequestFields {
  readonly loraName?: string
  readonly loraPath?: string
  readonly pinned?: boolean
  readonly loraId?: string
}

export function writeLoadLoRAAdapterRequest(w: Writer, m: LoadLoRAAdapterRequestFields): void {
  if (m.loraName !== undefined && m.loraName !== '') w.string(10, m.loraName)
  if (m.loraPath !== undefined && m.loraPath !== '') w.string(18, m.loraPath)
  if (m.pinned !== undefined && m.pinned) w.bool(24, m.pinned)
  if (m.loraId !== undefined && m.loraId !== '') w.string(34, m.loraId)
}

export function encodeLoadLoRAAdapterRequest(m: LoadLoRAAdapterRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeLoadLoRAAdapterRequest(w, m)
  return w.finish()
}

export function readLoadLoRAAdapterRequest(r: Reader, end: number): LoadLoRAAdapterRequest {
  const m: LoadLoRAAdapterRequest = {
    loraName: '',
    loraPath: '',
    pinned: false,
    loraId: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.loraName = r.string()
        break
      case 18:
        m.loraPath = r.string()
        break
      case 24:
        m.pinned = r.bool()
        break
      case 34:
        m.loraId = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeLoadLoRAAdapterRequest(bytes: Buffer): LoadLoRAAdapterRequest {
  return readLoadLoRAAdapterRequest(new Reader(bytes), bytes.length)
}

export interface LoadLoRAAdapterResponse {
  success: boolean
  message: string
  loadedLoraIds: string[]
}

export interface LoadLoRAAdapterResponseFields {
  readonly success?: boolean
  readonly message?: string
  readonly loadedLoraIds?: readonly string[]
}

export function writeLoadLoRAAdapterResponse(w: Writer, m: LoadLoRAAdapterResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
  if (m.loadedLoraIds !== undefined && m.loadedLoraIds.length > 0)
    for (const one of m.loadedLoraIds) {
      w.string(26, one)
    }
}

export function encodeLoadLoRAAdapterResponse(m: LoadLoRAAdapterResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeLoadLoRAAdapterResponse(w, m)
  return w.finish()
}

export function readLoadLoRAAdapterResponse(r: Reader, end: number): LoadLoRAAdapterResponse {
  const m: LoadLoRAAdapterResponse = {
    success: false,
    message: '',
    loadedLoraIds: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.success = r.bool()
        break
      case 18:
        m.message = r.string()
        break
      case 26:
        r.add(m.loadedLoraIds, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeLoadLoRAAdapterResponse(bytes: Buffer): LoadLoRAAdapterResponse {
  return readLoadLoRAAdapterResponse(new Reader(bytes), bytes.length)
}

export interface UnloadLoRAAdapterRequest {
  loraName: string
  loraId: string
}

export interface UnloadLoRAAdapterRequestFields {
  readonly loraName?: string
  readonly loraId?: string
}

export function writeUnloadLoRAAdapterRequest(w: Writer, m: UnloadLoRAAdapterRequestFields): void {
  if (m.loraName !== undefined && m.loraName !== '') w.string(10, m.loraName)
  if (m.loraId !== undefined && m.loraId !== '') w.string(18, m.loraId)
}

export function encodeUnloadLoRAAdapterRequest(m: UnloadLoRAAdapterRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeUnloadLoRAAdapterRequest(w, m)
  return w.finish()
}

export function readUnloadLoRAAdapterRequest(r: Reader, end: number): UnloadLoRAAdapterRequest {
  const m: UnloadLoRAAdapterRequest = {
    loraName: '',
    loraId: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.loraName = r.string()
        break
      case 18:
        m.loraId = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeUnloadLoRAAdapterRequest(bytes: Buffer): UnloadLoRAAdapterRequest {
  return readUnloadLoRAAdapterRequest(new Reader(bytes), bytes.length)
}

export interface UnloadLoRAAdapterResponse {
  success: boolean
  message: string
  loadedLoraIds: string[]
}

export interface UnloadLoRAAdapterResponseFields {
  readonly success?: boolean
  readonly message?: string
  readonly loadedLoraIds?: readonly string[]
}

export function writeUnloadLoRAAdapterResponse(w: Writer, m: UnloadLoRAAdapterResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
  if (m.loadedLoraIds !== undefined && m.loadedLoraIds.length > 0)
    for (const one of m.loadedLoraIds) {
      w.string(26, one)
    }
}

export function encodeUnloadLoRAAdapterResponse(m: UnloadLoRAAdapterResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeUnloadLoRAAdapterResponse(w, m)
  return w.finish()
}

export function readUnloadLoRAAdapterResponse(r: Reader, end: number): UnloadLoRAAdapterResponse {
  const m: UnloadLoRAAdapterResponse = {
    success: false,
    message: '',
    loadedLoraIds: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.success = r.bool()
        break
      case 18:
        m.message = r.string()
        break
      case 26:
        r.add(m.loadedLoraIds, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeUnloadLoRAAdapterResponse(bytes: Buffer): UnloadLoRAAdapterResponse {
  return readUnloadLoRAAdapterResponse(new Reader(bytes), bytes.length)
}

export interface LoadedLoRAAdapter {
  loraId: string
  loraName: string
  loraPath: string
  pinned: boolean
}

export interface LoadedLoRAAdapterFields {
  readonly loraId?: string
  readonly loraName?: string
  readonly loraPath?: string
  readonly pinned?: boolean
}

export function writeLoadedLoRAAdapter(w: Writer, m: LoadedLoRAAdapterFields): void {
  if (m.loraId !== undefined && m.loraId !== '') w.string(10, m.loraId)
  if (m.loraName !== undefined && m.loraName !== '') w.string(18, m.loraName)
  if (m.loraPath !== undefined && m.loraPath !== '') w.string(26, m.loraPath)
  if (m.pinned !== undefined && m.pinned) w.bool(32, m.pinned)
}

export function encodeLoadedLoRAAdapter(m: LoadedLoRAAdapterFields, size?: number): Buffer {
  const w = new Writer(size)
  writeLoadedLoRAAdapter(w, m)
  return w.finish()
}

export function readLoadedLoRAAdapter(r: Reader, end: number): LoadedLoRAAdapter {
  const m: LoadedLoRAAdapter = {
    loraId: '',
    loraName: '',
    loraPath: '',
    pinned: false,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.loraId = r.string()
        break
      case 18:
        m.loraName = r.string()
        break
      case 26:
        m.loraPath = r.string()
        break
      case 32:
        m.pinned = r.bool()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeLoadedLoRAAdapter(bytes: Buffer): LoadedLoRAAdapter {
  return readLoadedLoRAAdapter(new Reader(bytes), bytes.length)
}

export interface ListLoadedLoRAAdaptersResponse {
  loadedAdapters: LoadedLoRAAdapter[]
}

export interface ListLoadedLoRAAdaptersResponseFields {
  readonly loadedAdapters?: readonly LoadedLoRAAdapterFields[]
}

export function writeListLoadedLoRAAdaptersResponse(w: Writer, m: ListLoadedLoRAAdaptersResponseFields): void {
  if (m.loadedAdapters !== undefined && m.loadedAdapters.length > 0)
    for (const one of m.loadedAdapters) {
      const start = w.begin(10)
      writeLoadedLoRAAdapter(w, one)
      w.end(start)
    }
}

export function encodeListLoadedLoRAAdaptersResponse(m: ListLoadedLoRAAdaptersResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeListLoadedLoRAAdaptersResponse(w, m)
  return w.finish()
}

export function readListLoadedLoRAAdaptersResponse(r: Reader, end: number): ListLoadedLoRAAdaptersResponse {
  const m: ListLoadedLoRAAdaptersResponse = {
    loadedAdapters: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.loadedAdapters, readLoadedLoRAAdapter(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeListLoadedLoRAAdaptersResponse(bytes: Buffer): ListLoadedLoRAAdaptersResponse {
  return readListLoadedLoRAAdaptersResponse(new Reader(bytes), bytes.length)
}

export interface UpdateWeightsRequest {
  diskPath: string | undefined
  tensorData: Buffer | undefined
  remoteUrl: string | undefined
  weightName: string
}

export interface UpdateWeightsRequestFields {
  readonly diskPath?: string
  readonly tensorData?: Buffer
  readonly remoteUrl?: string
  readonly weightName?: string
}

export function writeUpdateWeightsRequest(w: Writer, m: UpdateWeightsRequestFields): void {
  if (m.diskPath !== undefined) w.string(10, m.diskPath)
  if (m.tensorData !== undefined) w.bytes(18, m.tensorData)
  if (m.remoteUrl !== undefined) w.string(26, m.remoteUrl)
  if (m.weightName !== undefined && m.weightName !== '') w.string(34, m.weightName)
}

export function encodeUpdateWeightsRequest(m: UpdateWeightsRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeUpdateWeightsRequest(w, m)
  return w.finish()
}

export function readUpdateWeightsRequest(r: Reader, end: number): UpdateWeightsRequest {
  const m: UpdateWeightsRequest = {
    diskPath: undefined,
    tensorData: undefined,
    remoteUrl: undefined,
    weightName: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.diskPath = r.string()
        break
      case 18:
        m.tensorData = r.bytes()
        break
      case 26:
        m.remoteUrl = r.string()
        break
      case 34:
        m.weightName = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeUpdateWeightsRequest(bytes: Buffer): UpdateWeightsRequest {
  return readUpdateWeightsRequest(new Reader(bytes), bytes.length)
}

export interface UpdateWeightsResponse {
  success: boolean
  message: string
}

export interface UpdateWeightsResponseFields {
  readonly success?: boolean
  readonly message?: string
}

export function writeUpdateWeightsResponse(w: Writer, m: UpdateWeightsResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
}

export function encodeUpdateWeightsResponse(m: UpdateWeightsResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeUpdateWeightsResponse(w, m)
  return w.finish()
}

export function readUpdateWeightsResponse(r: Reader, end: number): UpdateWeightsResponse {
  const m: UpdateWeightsResponse = {
    success: false,
    message: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.success = r.bool()
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

export function decodeUpdateWeightsResponse(bytes: Buffer): UpdateWeightsResponse {
  return readUpdateWeightsResponse(new Reader(bytes), bytes.length)
}

export interface GetInternalStateRequest {
  stateKeys: string[]
}

export interface GetInternalStateRequestFields {
  readonly stateKeys?: readonly string[]
}

export function writeGetInternalStateRequest(w: Writer, m: GetInternalStateRequestFields): void {
  if (m.stateKeys !== undefined && m.stateKeys.length > 0)
    for (const one of m.stateKeys) {
      w.string(10, one)
    }
}

export function encodeGetInternalStateRequest(m: GetInternalStateRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetInternalStateRequest(w, m)
  return w.finish()
}

export function readGetInternalStateRequest(r: Reader, end: number): GetInternalStateRequest {
  const m: GetInternalStateRequest = {
    stateKeys: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.stateKeys, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetInternalStateRequest(bytes: Buffer): GetInternalStateRequest {
  return readGetInternalStateRequest(new Reader(bytes), bytes.length)
}

export interface GetInternalStateResponse {
  state: Readonly<Record<string, unknown>> | undefined
}

export interface GetInternalStateResponseFields {
  readonly state?: Readonly<Record<string, unknown>>
}

export function writeGetInternalStateResponse(w: Writer, m: GetInternalStateResponseFields): void {
  if (m.state !== undefined) {
    const start = w.begin(10)
    writeStruct(w, m.state)
    w.end(start)
  }
}

export function encodeGetInternalStateResponse(m: GetInternalStateResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetInternalStateResponse(w, m)
  return w.finish()
}

export function readGetInternalStateResponse(r: Reader, end: number): GetInternalStateResponse {
  const m: GetInternalStateResponse = {
    state: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.state = readStruct(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetInternalStateResponse(bytes: Buffer): GetInternalStateResponse {
  return readGetInternalStateResponse(new Reader(bytes), bytes.length)
}

export interface SetInternalStateRequest {
  state: Readonly<Record<string, unknown>> | undefined
}

export interface SetInternalStateRequestFields {
  readonly state?: Readonly<Record<string, unknown>>
}

export function writeSetInternalStateRequest(w: Writer, m: SetInternalStateRequestFields): void {
  if (m.state !== undefined) {
    const start = w.begin(10)
    writeStruct(w, m.state)
    w.end(start)
  }
}

export function encodeSetInternalStateRequest(m: SetInternalStateRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSetInternalStateRequest(w, m)
  return w.finish()
}

export function readSetInternalStateRequest(r: Reader, end: number): SetInternalStateRequest {
  const m: SetInternalStateRequest = {
    state: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.state = readStruct(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeSetInternalStateRequest(bytes: Buffer): SetInternalStateRequest {
  return readSetInternalStateRequest(new Reader(bytes), bytes.length)
}

export interface SetInternalStateResponse {
  success: boolean
  message: string
}

export interface SetInternalStateResponseFields {
  readonly success?: boolean
  readonly message?: string
}

export function writeSetInternalStateResponse(w: Writer, m: SetInternalStateResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
}

export function encodeSetInternalStateResponse(m: SetInternalStateResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSetInternalStateResponse(w, m)
  return w.finish()
}

export function readSetInternalStateResponse(r: Reader, end: number): SetInternalStateResponse {
  const m: SetInternalStateResponse = {
    success: false,
    message: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.success = r.bool()
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

export function decodeSetInternalStateResponse(bytes: Buffer): SetInternalStateResponse {
  return readSetInternalStateResponse(new Reader(bytes), bytes.length)
}

export interface GetModelInfoResponse {
  modelPath: string
  tokenizerPath: string
  isGeneration: boolean
  preferredSamplingParams: string
  weightVersion: string
  servedModelName: string
  maxContextLength: number
  vocabSize: number
  supportsVision: boolean
  modelType: string
  eosTokenIds: number[]
  padTokenId: number
  bosTokenId: number
  maxReqInputLen: number
  architectures: string[]
  id2labelJson: string
  numLabels: number
  defaultSamplingParamsJson: string
}

export interface GetModelInfoResponseFields {
  readonly modelPath?: string
  readonly tokenizerPath?: string
  readonly isGeneration?: boolean
  readonly preferredSamplingParams?: string
  readonly weightVersion?: string
  readonly servedModelName?: string
  readonly maxContextLength?: number
  readonly vocabSize?: number
  readonly supportsVision?: boolean
  readonly modelType?: string
  readonly eosTokenIds?: ArrayLike<number>
  readonly padTokenId?: number
  readonly bosTokenId?: number
  readonly maxReqInputLen?: number
  readonly architectures?: readonly string[]
  readonly id2labelJson?: string
  readonly numLabels?: number
  readonly defaultSamplingParamsJson?: string
}

export function writeGetModelInfoResponse(w: Writer, m: GetModelInfoResponseFields): void {
  if (m.modelPath !== undefined && m.modelPath !== '') w.string(10, m.modelPath)
  if (m.tokenizerPath !== undefined && m.tokenizerPath !== '') w.string(18, m.tokenizerPath)
  if (m.isGeneration !== undefined && m.isGeneration) w.bool(24, m.isGeneration)
  if (m.preferredSamplingParams !== undefined && m.preferredSamplingParams !== '') w.string(34, m.preferredSamplingParams)
  if (m.weightVersion !== undefined && m.weightVersion !== '') w.string(42, m.weightVersion)
  if (m.servedModelName !== undefined && m.servedModelName !== '') w.string(50, m.servedModelName)
  if (m.maxContextLength !== undefined && m.maxContextLength !== 0) w.int32(56, m.maxContextLength)
  if (m.vocabSize !== undefined && m.vocabSize !== 0) w.int32(64, m.vocabSize)
  if (m.supportsVision !== undefined && m.supportsVision) w.bool(72, m.supportsVision)
  if (m.modelType !== undefined && m.modelType !== '') w.string(82, m.modelType)
  if (m.eosTokenIds !== undefined && m.eosTokenIds.length > 0) w.int32s(90, m.eosTokenIds)
  if (m.padTokenId !== undefined && m.padTokenId !== 0) w.int32(96, m.padTokenId)
  if (m.bosTokenId !== undefined && m.bosTokenId !== 0) w.int32(104, m.bosTokenId)
  if (m.maxReqInputLen !== undefined && m.maxReqInputLen !== 0) w.int32(112, m.maxReqInputLen)
  if (m.architectures !== undefined && m.architectures.length > 0)
    for (const one of m.architectures) {
      w.string(122, one)
    }
  if (m.id2labelJson !== undefined && m.id2labelJson !== '') w.string(130, m.id2labelJson)
  if (m.numLabels !== undefined && m.numLabels !== 0) w.int32(136, m.numLabels)
  if (m.defaultSamplingParamsJson !== undefined && m.defaultSamplingParamsJson !== '') w.string(162, m.defaultSamplingParamsJson)
}

export function encodeGetModelInfoResponse(m: GetModelInfoResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetModelInfoResponse(w, m)
  return w.finish()
}

export function readGetModelInfoResponse(r: Reader, end: number): GetModelInfoResponse {
  const m: GetModelInfoResponse = {
    modelPath: '',
    tokenizerPath: '',
    isGeneration: false,
    preferredSamplingParams: '',
    weightVersion: '',
    servedModelName: '',
    maxContextLength: 0,
    vocabSize: 0,
    supportsVision: false,
    modelType: '',
    eosTokenIds: [],
    padTokenId: 0,
    bosTokenId: 0,
    maxReqInputLen: 0,
    architectures: [],
    id2labelJson: '',
    numLabels: 0,
    defaultSamplingParamsJson: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.modelPath = r.string()
        break
      case 18:
        m.tokenizerPath = r.string()
        break
      case 24:
        m.isGeneration = r.bool()
        break
      case 34:
        m.preferredSamplingParams = r.string()
        break
      case 42:
        m.weightVersion = r.string()
        break
      case 50:
        m.servedModelName = r.string()
        break
      case 56:
        m.maxContextLength = r.int32()
        break
      case 64:
        m.vocabSize = r.int32()
        break
      case 72:
        m.supportsVision = r.bool()
        break
      case 82:
        m.modelType = r.string()
        break
      case 90:
        r.int32s(m.eosTokenIds)
        break
      case 88:
        r.add(m.eosTokenIds, r.int32())
        break
      case 96:
        m.padTokenId = r.int32()
        break
      case 104:
        m.bosTokenId = r.int32()
        break
      case 112:
        m.maxReqInputLen = r.int32()
        break
      case 122:
        r.add(m.architectures, r.string())
        break
      case 130:
        m.id2labelJson = r.string()
        break
      case 136:
        m.numLabels = r.int32()
        break
      case 162:
        m.defaultSamplingParamsJson = r.string()
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
  serverArgs: Readonly<Record<string, unknown>> | undefined
  schedulerInfo: Readonly<Record<string, unknown>> | undefined
  activeRequests: number
  isPaused: boolean
  lastReceiveTimestamp: number
  uptimeSeconds: number
  sglangVersion: string
  serverType: string
  startTime: number | undefined
  maxTotalNumTokens: number
}

export interface GetServerInfoResponseFields {
  readonly serverArgs?: Readonly<Record<string, unknown>>
  readonly schedulerInfo?: Readonly<Record<string, unknown>>
  readonly activeRequests?: number
  readonly isPaused?: boolean
  readonly lastReceiveTimestamp?: number
  readonly uptimeSeconds?: number
  readonly sglangVersion?: string
  readonly serverType?: string
  readonly startTime?: number
  readonly maxTotalNumTokens?: number
}

export function writeGetServerInfoResponse(w: Writer, m: GetServerInfoResponseFields): void {
  if (m.serverArgs !== undefined) {
    const start = w.begin(10)
    writeStruct(w, m.serverArgs)
    w.end(start)
  }
  if (m.schedulerInfo !== undefined) {
    const start = w.begin(18)
    writeStruct(w, m.schedulerInfo)
    w.end(start)
  }
  if (m.activeRequests !== undefined && m.activeRequests !== 0) w.int32(24, m.activeRequests)
  if (m.isPaused !== undefined && m.isPaused) w.bool(32, m.isPaused)
  if (m.lastReceiveTimestamp !== undefined && m.lastReceiveTimestamp !== 0) w.double(41, m.lastReceiveTimestamp)
  if (m.uptimeSeconds !== undefined && m.uptimeSeconds !== 0) w.double(49, m.uptimeSeconds)
  if (m.sglangVersion !== undefined && m.sglangVersion !== '') w.string(58, m.sglangVersion)
  if (m.serverType !== undefined && m.serverType !== '') w.string(66, m.serverType)
  if (m.startTime !== undefined) {
    const start = w.begin(74)
    writeTimestamp(w, m.startTime)
    w.end(start)
  }
  if (m.maxTotalNumTokens !== undefined && m.maxTotalNumTokens !== 0) w.int32(80, m.maxTotalNumTokens)
}

export function encodeGetServerInfoResponse(m: GetServerInfoResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetServerInfoResponse(w, m)
  return w.finish()
}

export function readGetServerInfoResponse(r: Reader, end: number): GetServerInfoResponse {
  const m: GetServerInfoResponse = {
    serverArgs: undefined,
    schedulerInfo: undefined,
    activeRequests: 0,
    isPaused: false,
    lastReceiveTimestamp: 0,
    uptimeSeconds: 0,
    sglangVersion: '',
    serverType: '',
    startTime: undefined,
    maxTotalNumTokens: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.serverArgs = readStruct(r, r.end())
        break
      case 18:
        m.schedulerInfo = readStruct(r, r.end())
        break
      case 24:
        m.activeRequests = r.int32()
        break
      case 32:
        m.isPaused = r.bool()
        break
      case 41:
        m.lastReceiveTimestamp = r.double()
        break
      case 49:
        m.uptimeSeconds = r.double()
        break
      case 58:
        m.sglangVersion = r.string()
        break
      case 66:
        m.serverType = r.string()
        break
      case 74:
        m.startTime = readTimestamp(r, r.end())
        break
      case 80:
        m.maxTotalNumTokens = r.int32()
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

export interface GetLoadsRequest {
  dpRank: number | undefined
  include: string[]
}

export interface GetLoadsRequestFields {
  readonly dpRank?: number
  readonly include?: readonly string[]
}

export function writeGetLoadsRequest(w: Writer, m: GetLoadsRequestFields): void {
  if (m.dpRank !== undefined) w.int32(8, m.dpRank)
  if (m.include !== undefined && m.include.length > 0)
    for (const one of m.include) {
      w.string(18, one)
    }
}

export function encodeGetLoadsRequest(m: GetLoadsRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetLoadsRequest(w, m)
  return w.finish()
}

export function readGetLoadsRequest(r: Reader, end: number): GetLoadsRequest {
  const m: GetLoadsRequest = {
    dpRank: undefined,
    include: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.dpRank = r.int32()
        break
      case 18:
        r.add(m.include, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetLoadsRequest(bytes: Buffer): GetLoadsRequest {
  return readGetLoadsRequest(new Reader(bytes), bytes.length)
}

export interface GetLoadsResponse {
  timestamp: string
  version: string
  dpRankCount: number
  loads: SchedulerLoad[]
  aggregate: AggregateMetrics | undefined
}

export interface GetLoadsResponseFields {
  readonly timestamp?: string
  readonly version?: string
  readonly dpRankCount?: number
  readonly loads?: readonly SchedulerLoadFields[]
  readonly aggregate?: AggregateMetricsFields
}

export function writeGetLoadsResponse(w: Writer, m: GetLoadsResponseFields): void {
  if (m.timestamp !== undefined && m.timestamp !== '') w.string(10, m.timestamp)
  if (m.version !== undefined && m.version !== '') w.string(18, m.version)
  if (m.dpRankCount !== undefined && m.dpRankCount !== 0) w.int32(24, m.dpRankCount)
  if (m.loads !== undefined && m.loads.length > 0)
    for (const one of m.loads) {
      const start = w.begin(34)
      writeSchedulerLoad(w, one)
      w.end(start)
    }
  if (m.aggregate !== undefined) {
    const start = w.begin(42)
    writeAggregateMetrics(w, m.aggregate)
    w.end(start)
  }
}

export function encodeGetLoadsResponse(m: GetLoadsResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetLoadsResponse(w, m)
  return w.finish()
}

export function readGetLoadsResponse(r: Reader, end: number): GetLoadsResponse {
  const m: GetLoadsResponse = {
    timestamp: '',
    version: '',
    dpRankCount: 0,
    loads: [],
    aggregate: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.timestamp = r.string()
        break
      case 18:
        m.version = r.string()
        break
      case 24:
        m.dpRankCount = r.int32()
        break
      case 34:
        r.add(m.loads, readSchedulerLoad(r, r.end()))
        break
      case 42:
        m.aggregate = readAggregateMetrics(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetLoadsResponse(bytes: Buffer): GetLoadsResponse {
  return readGetLoadsResponse(new Reader(bytes), bytes.length)
}

export interface SchedulerLoad {
  dpRank: number
  numRunningReqs: number
  numWaitingReqs: number
  numTotalReqs: number
  numUsedTokens: number
  maxTotalNumTokens: number
  tokenUsage: number
  genThroughput: number
  cacheHitRate: number
  utilization: number
  maxRunningRequests: number
  memory: MemoryMetrics | undefined
  speculative: SpeculativeMetrics | undefined
  lora: LoRAMetrics | undefined
  disaggregation: DisaggregationMetrics | undefined
  queues: QueueMetrics | undefined
  numWaitingUncachedTokens: number
}

export interface SchedulerLoadFields {
  readonly dpRank?: number
  readonly numRunningReqs?: number
  readonly numWaitingReqs?: number
  readonly numTotalReqs?: number
  readonly numUsedTokens?: number
  readonly maxTotalNumTokens?: number
  readonly tokenUsage?: number
  readonly genThroughput?: number
  readonly cacheHitRate?: number
  readonly utilization?: number
  readonly maxRunningRequests?: number
  readonly memory?: MemoryMetricsFields
  readonly speculative?: SpeculativeMetricsFields
  readonly lora?: LoRAMetricsFields
  readonly disaggregation?: DisaggregationMetricsFields
  readonly queues?: QueueMetricsFields
  readonly numWaitingUncachedTokens?: number
}

export function writeSchedulerLoad(w: Writer, m: SchedulerLoadFields): void {
  if (m.dpRank !== undefined && m.dpRank !== 0) w.int32(8, m.dpRank)
  if (m.numRunningReqs !== undefined && m.numRunningReqs !== 0) w.int32(16, m.numRunningReqs)
  if (m.numWaitingReqs !== undefined && m.numWaitingReqs !== 0) w.int32(24, m.numWaitingReqs)
  if (m.numTotalReqs !== undefined && m.numTotalReqs !== 0) w.int32(32, m.numTotalReqs)
  if (m.numUsedTokens !== undefined && m.numUsedTokens !== 0) w.int32(40, m.numUsedTokens)
  if (m.maxTotalNumTokens !== undefined && m.maxTotalNumTokens !== 0) w.int32(48, m.maxTotalNumTokens)
  if (m.tokenUsage !== undefined && m.tokenUsage !== 0) w.double(57, m.tokenUsage)
  if (m.genThroughput !== undefined && m.genThroughput !== 0) w.double(65, m.genThroughput)
  if (m.cacheHitRate !== undefined && m.cacheHitRate !== 0) w.double(73, m.cacheHitRate)
  if (m.utilization !== undefined && m.utilization !== 0) w.double(81, m.utilization)
  if (m.maxRunningRequests !== undefined && m.maxRunningRequests !== 0) w.int32(88, m.maxRunningRequests)
  if (m.memory !== undefined) {
    const start = w.begin(98)
    writeMemoryMetrics(w, m.memory)
    w.end(start)
  }
  if (m.speculative !== undefined) {
    const start = w.begin(106)
    writeSpeculativeMetrics(w, m.speculative)
    w.end(start)
  }
  if (m.lora !== undefined) {
    const start = w.begin(114)
    writeLoRAMetrics(w, m.lora)
    w.end(start)
  }
  if (m.disaggregation !== undefined) {
    const start = w.begin(122)
    writeDisaggregationMetrics(w, m.disaggregation)
    w.end(start)
  }
  if (m.queues !== undefined) {
    const start = w.begin(130)
    writeQueueMetrics(w, m.queues)
    w.end(start)
  }
  if (m.numWaitingUncachedTokens !== undefined && m.numWaitingUncachedTokens !== 0) w.int32(136, m.numWaitingUncachedTokens)
}

export function encodeSchedulerLoad(m: SchedulerLoadFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSchedulerLoad(w, m)
  return w.finish()
}

export function readSchedulerLoad(r: Reader, end: number): SchedulerLoad {
  const m: SchedulerLoad = {
    dpRank: 0,
    numRunningReqs: 0,
    numWaitingReqs: 0,
    numTotalReqs: 0,
    numUsedTokens: 0,
    maxTotalNumTokens: 0,
    tokenUsage: 0,
    genThroughput: 0,
    cacheHitRate: 0,
    utilization: 0,
    maxRunningRequests: 0,
    memory: undefined,
    speculative: undefined,
    lora: undefined,
    disaggregation: undefined,
    queues: undefined,
    numWaitingUncachedTokens: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.dpRank = r.int32()
        break
      case 16:
        m.numRunningReqs = r.int32()
        break
      case 24:
        m.numWaitingReqs = r.int32()
        break
      case 32:
        m.numTotalReqs = r.int32()
        break
      case 40:
        m.numUsedTokens = r.int32()
        break
      case 48:
        m.maxTotalNumTokens = r.int32()
        break
      case 57:
        m.tokenUsage = r.double()
        break
      case 65:
        m.genThroughput = r.double()
        break
      case 73:
        m.cacheHitRate = r.double()
        break
      case 81:
        m.utilization = r.double()
        break
      case 88:
        m.maxRunningRequests = r.int32()
        break
      case 98:
        m.memory = readMemoryMetrics(r, r.end())
        break
      case 106:
        m.speculative = readSpeculativeMetrics(r, r.end())
        break
      case 114:
        m.lora = readLoRAMetrics(r, r.end())
        break
      case 122:
        m.disaggregation = readDisaggregationMetrics(r, r.end())
        break
      case 130:
        m.queues = readQueueMetrics(r, r.end())
        break
      case 136:
        m.numWaitingUncachedTokens = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeSchedulerLoad(bytes: Buffer): SchedulerLoad {
  return readSchedulerLoad(new Reader(bytes), bytes.length)
}

export interface MemoryMetrics {
  weightGb: number
  kvCacheGb: number
  graphGb: number
  tokenCapacity: number
}

export interface MemoryMetricsFields {
  readonly weightGb?: number
  readonly kvCacheGb?: number
  readonly graphGb?: number
  readonly tokenCapacity?: number
}

export function writeMemoryMetrics(w: Writer, m: MemoryMetricsFields): void {
  if (m.weightGb !== undefined && m.weightGb !== 0) w.double(9, m.weightGb)
  if (m.kvCacheGb !== undefined && m.kvCacheGb !== 0) w.double(17, m.kvCacheGb)
  if (m.graphGb !== undefined && m.graphGb !== 0) w.double(25, m.graphGb)
  if (m.tokenCapacity !== undefined && m.tokenCapacity !== 0) w.int32(32, m.tokenCapacity)
}

export function encodeMemoryMetrics(m: MemoryMetricsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMemoryMetrics(w, m)
  return w.finish()
}

export function readMemoryMetrics(r: Reader, end: number): MemoryMetrics {
  const m: MemoryMetrics = {
    weightGb: 0,
    kvCacheGb: 0,
    graphGb: 0,
    tokenCapacity: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 9:
        m.weightGb = r.double()
        break
      case 17:
        m.kvCacheGb = r.double()
        break
      case 25:
        m.graphGb = r.double()
        break
      case 32:
        m.tokenCapacity = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeMemoryMetrics(bytes: Buffer): MemoryMetrics {
  return readMemoryMetrics(new Reader(bytes), bytes.length)
}

export interface SpeculativeMetrics {
  acceptLength: number
  acceptRate: number
}

export interface SpeculativeMetricsFields {
  readonly acceptLength?: number
  readonly acceptRate?: number
}

export function writeSpeculativeMetrics(w: Writer, m: SpeculativeMetricsFields): void {
  if (m.acceptLength !== undefined && m.acceptLength !== 0) w.double(9, m.acceptLength)
  if (m.acceptRate !== undefined && m.acceptRate !== 0) w.double(17, m.acceptRate)
}

export function encodeSpeculativeMetrics(m: SpeculativeMetricsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSpeculativeMetrics(w, m)
  return w.finish()
}

export function readSpeculativeMetrics(r: Reader, end: number): SpeculativeMetrics {
  const m: SpeculativeMetrics = {
    acceptLength: 0,
    acceptRate: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 9:
        m.acceptLength = r.double()
        break
      case 17:
        m.acceptRate = r.double()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeSpeculativeMetrics(bytes: Buffer): SpeculativeMetrics {
  return readSpeculativeMetrics(new Reader(bytes), bytes.length)
}

export interface LoRAMetrics {
  slotsUsed: number
  slotsTotal: number
  utilization: number
}

export interface LoRAMetricsFields {
  readonly slotsUsed?: number
  readonly slotsTotal?: number
  readonly utilization?: number
}

export function writeLoRAMetrics(w: Writer, m: LoRAMetricsFields): void {
  if (m.slotsUsed !== undefined && m.slotsUsed !== 0) w.int32(8, m.slotsUsed)
  if (m.slotsTotal !== undefined && m.slotsTotal !== 0) w.int32(16, m.slotsTotal)
  if (m.utilization !== undefined && m.utilization !== 0) w.double(25, m.utilization)
}

export function encodeLoRAMetrics(m: LoRAMetricsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeLoRAMetrics(w, m)
  return w.finish()
}

export function readLoRAMetrics(r: Reader, end: number): LoRAMetrics {
  const m: LoRAMetrics = {
    slotsUsed: 0,
    slotsTotal: 0,
    utilization: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.slotsUsed = r.int32()
        break
      case 16:
        m.slotsTotal = r.int32()
        break
      case 25:
        m.utilization = r.double()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeLoRAMetrics(bytes: Buffer): LoRAMetrics {
  return readLoRAMetrics(new Reader(bytes), bytes.length)
}

export interface DisaggregationMetrics {
  mode: string
  prefillPreallocQueueReqs: number
  prefillInflightQueueReqs: number
  decodePreallocQueueReqs: number
  decodeTransferQueueReqs: number
  decodeRetractedQueueReqs: number
  kvTransferSpeedGbS: number
  kvTransferLatencyMs: number
}

export interface DisaggregationMetricsFields {
  readonly mode?: string
  readonly prefillPreallocQueueReqs?: number
  readonly prefillInflightQueueReqs?: number
  readonly decodePreallocQueueReqs?: number
  readonly decodeTransferQueueReqs?: number
  readonly decodeRetractedQueueReqs?: number
  readonly kvTransferSpeedGbS?: number
  readonly kvTransferLatencyMs?: number
}

export function writeDisaggregationMetrics(w: Writer, m: DisaggregationMetricsFields): void {
  if (m.mode !== undefined && m.mode !== '') w.string(10, m.mode)
  if (m.prefillPreallocQueueReqs !== undefined && m.prefillPreallocQueueReqs !== 0) w.int32(16, m.prefillPreallocQueueReqs)
  if (m.prefillInflightQueueReqs !== undefined && m.prefillInflightQueueReqs !== 0) w.int32(24, m.prefillInflightQueueReqs)
  if (m.decodePreallocQueueReqs !== undefined && m.decodePreallocQueueReqs !== 0) w.int32(32, m.decodePreallocQueueReqs)
  if (m.decodeTransferQueueReqs !== undefined && m.decodeTransferQueueReqs !== 0) w.int32(40, m.decodeTransferQueueReqs)
  if (m.decodeRetractedQueueReqs !== undefined && m.decodeRetractedQueueReqs !== 0) w.int32(48, m.decodeRetractedQueueReqs)
  if (m.kvTransferSpeedGbS !== undefined && m.kvTransferSpeedGbS !== 0) w.double(57, m.kvTransferSpeedGbS)
  if (m.kvTransferLatencyMs !== undefined && m.kvTransferLatencyMs !== 0) w.double(65, m.kvTransferLatencyMs)
}

export function encodeDisaggregationMetrics(m: DisaggregationMetricsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeDisaggregationMetrics(w, m)
  return w.finish()
}

export function readDisaggregationMetrics(r: Reader, end: number): DisaggregationMetrics {
  const m: DisaggregationMetrics = {
    mode: '',
    prefillPreallocQueueReqs: 0,
    prefillInflightQueueReqs: 0,
    decodePreallocQueueReqs: 0,
    decodeTransferQueueReqs: 0,
    decodeRetractedQueueReqs: 0,
    kvTransferSpeedGbS: 0,
    kvTransferLatencyMs: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.mode = r.string()
        break
      case 16:
        m.prefillPreallocQueueReqs = r.int32()
        break
      case 24:
        m.prefillInflightQueueReqs = r.int32()
        break
      case 32:
        m.decodePreallocQueueReqs = r.int32()
        break
      case 40:
        m.decodeTransferQueueReqs = r.int32()
        break
      case 48:
        m.decodeRetractedQueueReqs = r.int32()
        break
      case 57:
        m.kvTransferSpeedGbS = r.double()
        break
      case 65:
        m.kvTransferLatencyMs = r.double()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeDisaggregationMetrics(bytes: Buffer): DisaggregationMetrics {
  return readDisaggregationMetrics(new Reader(bytes), bytes.length)
}

export interface QueueMetrics {
  waiting: number
  grammar: number
  paused: number
  retracted: number
}

export interface QueueMetricsFields {
  readonly waiting?: number
  readonly grammar?: number
  readonly paused?: number
  readonly retracted?: number
}

export function writeQueueMetrics(w: Writer, m: QueueMetricsFields): void {
  if (m.waiting !== undefined && m.waiting !== 0) w.int32(8, m.waiting)
  if (m.grammar !== undefined && m.grammar !== 0) w.int32(16, m.grammar)
  if (m.paused !== undefined && m.paused !== 0) w.int32(24, m.paused)
  if (m.retracted !== undefined && m.retracted !== 0) w.int32(32, m.retracted)
}

export function encodeQueueMetrics(m: QueueMetricsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeQueueMetrics(w, m)
  return w.finish()
}

export function readQueueMetrics(r: Reader, end: number): QueueMetrics {
  const m: QueueMetrics = {
    waiting: 0,
    grammar: 0,
    paused: 0,
    retracted: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.waiting = r.int32()
        break
      case 16:
        m.grammar = r.int32()
        break
      case 24:
        m.paused = r.int32()
        break
      case 32:
        m.retracted = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeQueueMetrics(bytes: Buffer): QueueMetrics {
  return readQueueMetrics(new Reader(bytes), bytes.length)
}

export interface AggregateMetrics {
  totalRunningReqs: number
  totalWaitingReqs: number
  totalReqs: number
  avgTokenUsage: number
  avgThroughput: number
  avgUtilization: number
}

export interface AggregateMetricsFields {
  readonly totalRunningReqs?: number
  readonly totalWaitingReqs?: number
  readonly totalReqs?: number
  readonly avgTokenUsage?: number
  readonly avgThroughput?: number
  readonly avgUtilization?: number
}

export function writeAggregateMetrics(w: Writer, m: AggregateMetricsFields): void {
  if (m.totalRunningReqs !== undefined && m.totalRunningReqs !== 0) w.int32(8, m.totalRunningReqs)
  if (m.totalWaitingReqs !== undefined && m.totalWaitingReqs !== 0) w.int32(16, m.totalWaitingReqs)
  if (m.totalReqs !== undefined && m.totalReqs !== 0) w.int32(24, m.totalReqs)
  if (m.avgTokenUsage !== undefined && m.avgTokenUsage !== 0) w.double(33, m.avgTokenUsage)
  if (m.avgThroughput !== undefined && m.avgThroughput !== 0) w.double(41, m.avgThroughput)
  if (m.avgUtilization !== undefined && m.avgUtilization !== 0) w.double(49, m.avgUtilization)
}

export function encodeAggregateMetrics(m: AggregateMetricsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeAggregateMetrics(w, m)
  return w.finish()
}

export function readAggregateMetrics(r: Reader, end: number): AggregateMetrics {
  const m: AggregateMetrics = {
    totalRunningReqs: 0,
    totalWaitingReqs: 0,
    totalReqs: 0,
    avgTokenUsage: 0,
    avgThroughput: 0,
    avgUtilization: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.totalRunningReqs = r.int32()
        break
      case 16:
        m.totalWaitingReqs = r.int32()
        break
      case 24:
        m.totalReqs = r.int32()
        break
      case 33:
        m.avgTokenUsage = r.double()
        break
      case 41:
        m.avgThroughput = r.double()
        break
      case 49:
        m.avgUtilization = r.double()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeAggregateMetrics(bytes: Buffer): AggregateMetrics {
  return readAggregateMetrics(new Reader(bytes), bytes.length)
}
