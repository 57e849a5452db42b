/** Made by proto/generate.ts from proto/tokenspeed_scheduler.proto: change that instead. @hot */
import * as common from './common.ts'
import { Reader, Writer, readStruct, readTimestamp, writeStruct, writeTimestamp } from '../wire.ts'

export const TokenSpeedScheduler = {
  Generate: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/Generate',
  HealthCheck: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/HealthCheck',
  Abort: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/Abort',
  GetModelInfo: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/GetModelInfo',
  GetServerInfo: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/GetServerInfo',
  GetLoads: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/GetLoads',
  FlushCache: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/FlushCache',
  StartProfile: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/StartProfile',
  StopProfile: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/StopProfile',
  GetTokenizer: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/GetTokenizer',
  SubscribeKvEvents: '/tokenspeed.grpc.scheduler.TokenSpeedScheduler/SubscribeKvEvents',
} as const

export interface SamplingParams {
  temperature: number | undefined
  topP: number | undefined
  topK: number | undefined
  minP: number | undefined
  frequencyPenalty: number | undefined
  presencePenalty: number | undefined
  repetitionPenalty: number | undefined
  maxNewTokens: number | undefined
  minNewTokens: number
  stop: string[]
  stopTokenIds: number[]
  ignoreEos: boolean
  skipSpecialTokens: boolean
  spacesBetweenSpecialTokens: boolean
  n: number
  logitBias: Map<string, number>
  regex: string | undefined
  jsonSchema: string | undefined
  ebnfGrammar: string | undefined
  structuralTag: string | undefined
  customParams: Readonly<Record<string, unknown>> | undefined
  noStopTrim: boolean
  samplingSeed: bigint | undefined
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
  readonly minNewTokens?: number
  readonly stop?: readonly string[]
  readonly stopTokenIds?: ArrayLike<number>
  readonly ignoreEos?: boolean
  readonly skipSpecialTokens?: boolean
  readonly spacesBetweenSpecialTokens?: boolean
  readonly n?: number
  readonly logitBias?: ReadonlyMap<string, number>
  readonly regex?: string
  readonly jsonSchema?: string
  readonly ebnfGrammar?: string
  readonly structuralTag?: string
  readonly customParams?: Readonly<Record<string, unknown>>
  readonly noStopTrim?: boolean
  readonly samplingSeed?: bigint
}

export function writeSamplingParams(w: Writer, m: SamplingParamsFields): void {
  if (m.temperature !== undefined) w.float(13, m.temperature)
  if (m.topP !== undefined) w.float(21, m.topP)
  if (m.topK !== undefined) w.int32(24, m.topK)
  if (m.minP !== undefined) w.float(37, m.minP)
  if (m.frequencyPenalty !== undefined) w.float(45, m.frequencyPenalty)
  if (m.presencePenalty !== undefined) w.float(53, m.presencePenalty)
  if (m.repetitionPenalty !== undefined) w.float(61, m.repetitionPenalty)
  if (m.maxNewTokens !== undefined) w.uint32(64, m.maxNewTokens)
  if (m.minNewTokens !== undefined && m.minNewTokens !== 0) w.uint32(72, m.minNewTokens)
  if (m.stop !== undefined && m.stop.length > 0)
    for (const one of m.stop) {
      w.string(82, one)
    }
  if (m.stopTokenIds !== undefined && m.stopTokenIds.length > 0) w.uint32s(90, m.stopTokenIds)
  if (m.ignoreEos !== undefined && m.ignoreEos) w.bool(96, m.ignoreEos)
  if (m.skipSpecialTokens !== undefined && m.skipSpecialTokens) w.bool(104, m.skipSpecialTokens)
  if (m.spacesBetweenSpecialTokens !== undefined && m.spacesBetweenSpecialTokens) w.bool(112, m.spacesBetweenSpecialTokens)
  if (m.n !== undefined && m.n !== 0) w.uint32(120, m.n)
  if (m.logitBias !== undefined)
    for (const [name, value] of m.logitBias) {
      const start = w.begin(130)
      w.string(10, name)
      w.float(21, value)
      w.end(start)
    }
  if (m.regex !== undefined) w.string(138, m.regex)
  if (m.jsonSchema !== undefined) w.string(146, m.jsonSchema)
  if (m.ebnfGrammar !== undefined) w.string(154, m.ebnfGrammar)
  if (m.structuralTag !== undefined) w.string(162, m.structuralTag)
  if (m.customParams !== undefined) {
    const start = w.begin(170)
    writeStruct(w, m.customParams)
    w.end(start)
  }
  if (m.noStopTrim !== undefined && m.noStopTrim) w.bool(176, m.noStopTrim)
  if (m.samplingSeed !== undefined) w.int64(184, m.samplingSeed)
}

export function encodeSamplingParams(m: SamplingParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSamplingParams(w, m)
  return w.finish()
}

export function readSamplingParams(r: Reader, end: number): SamplingParams {
  const m: SamplingParams = {
    temperature: undefined,
    topP: undefined,
    topK: undefined,
    minP: undefined,
    frequencyPenalty: undefined,
    presencePenalty: undefined,
    repetitionPenalty: undefined,
    maxNewTokens: undefined,
    minNewTokens: 0,
    stop: [],
    stopTokenIds: [],
    ignoreEos: false,
    skipSpecialTokens: false,
    spacesBetweenSpecialTokens: false,
    n: 0,
    logitBias: new Map(),
    regex: undefined,
    jsonSchema: undefined,
    ebnfGrammar: undefined,
    structuralTag: undefined,
    customParams: undefined,
    noStopTrim: false,
    samplingSeed: undefined,
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
      case 72:
        m.minNewTokens = r.uint32()
        break
      case 82:
        r.add(m.stop, r.string())
        break
      case 90:
        r.uint32s(m.stopTokenIds)
        break
      case 88:
        r.add(m.stopTokenIds, r.uint32())
        break
      case 96:
        m.ignoreEos = r.bool()
        break
      case 104:
        m.skipSpecialTokens = r.bool()
        break
      case 112:
        m.spacesBetweenSpecialTokens = r.bool()
        break
      case 120:
        m.n = r.uint32()
        break
      case 130: {
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
      case 138:
        m.regex = r.string()
        break
      case 146:
        m.jsonSchema = r.string()
        break
      case 154:
        m.ebnfGrammar = r.string()
        break
      case 162:
        m.structuralTag = r.string()
        break
      case 170:
        m.customParams = readStruct(r, r.end())
        break
      case 176:
        m.noStopTrim = r.bool()
        break
      case 184:
        m.samplingSeed = r.uint64()
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

export interface GenerateRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
  samplingParams: SamplingParams | undefined
  returnLogprob: boolean
  logprobStartLen: number | undefined
  topLogprobsNum: number
  tokenIdsLogprob: number[]
  stream: boolean
  mmInputs: MultimodalInputs | undefined
  encodeBootstrapInfo: EncodeBootstrapInfo | undefined
  kvBootstrapInfo: KvBootstrapInfo | undefined
  dataParallelRank: number | undefined
}

export interface GenerateRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
  readonly samplingParams?: SamplingParamsFields
  readonly returnLogprob?: boolean
  readonly logprobStartLen?: number
  readonly topLogprobsNum?: number
  readonly tokenIdsLogprob?: ArrayLike<number>
  readonly stream?: boolean
  readonly mmInputs?: MultimodalInputsFields
  readonly encodeBootstrapInfo?: EncodeBootstrapInfoFields
  readonly kvBootstrapInfo?: KvBootstrapInfoFields
  readonly dataParallelRank?: number
}

export function writeGenerateRequest(w: Writer, m: GenerateRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.tokenized !== undefined) {
    const start = w.begin(18)
    writeTokenizedInput(w, m.tokenized)
    w.end(start)
  }
  if (m.samplingParams !== undefined) {
    const start = w.begin(26)
    writeSamplingParams(w, m.samplingParams)
    w.end(start)
  }
  if (m.returnLogprob !== undefined && m.returnLogprob) w.bool(32, m.returnLogprob)
  if (m.logprobStartLen !== undefined) w.int32(40, m.logprobStartLen)
  if (m.topLogprobsNum !== undefined && m.topLogprobsNum !== 0) w.int32(48, m.topLogprobsNum)
  if (m.tokenIdsLogprob !== undefined && m.tokenIdsLogprob.length > 0) w.uint32s(58, m.tokenIdsLogprob)
  if (m.stream !== undefined && m.stream) w.bool(64, m.stream)
  if (m.mmInputs !== undefined) {
    const start = w.begin(74)
    writeMultimodalInputs(w, m.mmInputs)
    w.end(start)
  }
  if (m.encodeBootstrapInfo !== undefined) {
    const start = w.begin(82)
    writeEncodeBootstrapInfo(w, m.encodeBootstrapInfo)
    w.end(start)
  }
  if (m.kvBootstrapInfo !== undefined) {
    const start = w.begin(90)
    writeKvBootstrapInfo(w, m.kvBootstrapInfo)
    w.end(start)
  }
  if (m.dataParallelRank !== undefined) w.int32(96, m.dataParallelRank)
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
    samplingParams: undefined,
    returnLogprob: false,
    logprobStartLen: undefined,
    topLogprobsNum: 0,
    tokenIdsLogprob: [],
    stream: false,
    mmInputs: undefined,
    encodeBootstrapInfo: undefined,
    kvBootstrapInfo: undefined,
    dataParallelRank: undefined,
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
        m.samplingParams = readSamplingParams(r, r.end())
        break
      case 32:
        m.returnLogprob = r.bool()
        break
      case 40:
        m.logprobStartLen = r.int32()
        break
      case 48:
        m.topLogprobsNum = r.int32()
        break
      case 58:
        r.uint32s(m.tokenIdsLogprob)
        break
      case 56:
        r.add(m.tokenIdsLogprob, r.uint32())
        break
      case 64:
        m.stream = r.bool()
        break
      case 74:
        m.mmInputs = readMultimodalInputs(r, r.end())
        break
      case 82:
        m.encodeBootstrapInfo = readEncodeBootstrapInfo(r, r.end())
        break
      case 90:
        m.kvBootstrapInfo = readKvBootstrapInfo(r, r.end())
        break
      case 96:
        m.dataParallelRank = r.int32()
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

export interface EncodeBootstrapInfo {
  items: EncodeItemBootstrapInfo[]
}

export interface EncodeBootstrapInfoFields {
  readonly items?: readonly EncodeItemBootstrapInfoFields[]
}

export function writeEncodeBootstrapInfo(w: Writer, m: EncodeBootstrapInfoFields): void {
  if (m.items !== undefined && m.items.length > 0)
    for (const one of m.items) {
      const start = w.begin(10)
      writeEncodeItemBootstrapInfo(w, one)
      w.end(start)
    }
}

export function encodeEncodeBootstrapInfo(m: EncodeBootstrapInfoFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEncodeBootstrapInfo(w, m)
  return w.finish()
}

export function readEncodeBootstrapInfo(r: Reader, end: number): EncodeBootstrapInfo {
  const m: EncodeBootstrapInfo = {
    items: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.items, readEncodeItemBootstrapInfo(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeEncodeBootstrapInfo(bytes: Buffer): EncodeBootstrapInfo {
  return readEncodeBootstrapInfo(new Reader(bytes), bytes.length)
}

export interface EncodeItemBootstrapInfo {
  itemIndex: number
  bootstrapHost: string
  bootstrapPort: number
  bootstrapRoom: bigint
}

export interface EncodeItemBootstrapInfoFields {
  readonly itemIndex?: number
  readonly bootstrapHost?: string
  readonly bootstrapPort?: number
  readonly bootstrapRoom?: bigint
}

export function writeEncodeItemBootstrapInfo(w: Writer, m: EncodeItemBootstrapInfoFields): void {
  if (m.itemIndex !== undefined && m.itemIndex !== 0) w.uint32(8, m.itemIndex)
  if (m.bootstrapHost !== undefined && m.bootstrapHost !== '') w.string(18, m.bootstrapHost)
  if (m.bootstrapPort !== undefined && m.bootstrapPort !== 0) w.int32(24, m.bootstrapPort)
  if (m.bootstrapRoom !== undefined && m.bootstrapRoom !== 0n) w.int64(32, m.bootstrapRoom)
}

export function encodeEncodeItemBootstrapInfo(m: EncodeItemBootstrapInfoFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEncodeItemBootstrapInfo(w, m)
  return w.finish()
}

export function readEncodeItemBootstrapInfo(r: Reader, end: number): EncodeItemBootstrapInfo {
  const m: EncodeItemBootstrapInfo = {
    itemIndex: 0,
    bootstrapHost: '',
    bootstrapPort: 0,
    bootstrapRoom: 0n,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.itemIndex = r.uint32()
        break
      case 18:
        m.bootstrapHost = r.string()
        break
      case 24:
        m.bootstrapPort = r.int32()
        break
      case 32:
        m.bootstrapRoom = r.int64()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeEncodeItemBootstrapInfo(bytes: Buffer): EncodeItemBootstrapInfo {
  return readEncodeItemBootstrapInfo(new Reader(bytes), bytes.length)
}

export interface KvBootstrapInfo {
  bootstrapHost: string
  bootstrapPort: number
  bootstrapRoom: bigint
}

export interface KvBootstrapInfoFields {
  readonly bootstrapHost?: string
  readonly bootstrapPort?: number
  readonly bootstrapRoom?: bigint
}

export function writeKvBootstrapInfo(w: Writer, m: KvBootstrapInfoFields): void {
  if (m.bootstrapHost !== undefined && m.bootstrapHost !== '') w.string(10, m.bootstrapHost)
  if (m.bootstrapPort !== undefined && m.bootstrapPort !== 0) w.int32(16, m.bootstrapPort)
  if (m.bootstrapRoom !== undefined && m.bootstrapRoom !== 0n) w.int64(24, m.bootstrapRoom)
}

export function encodeKvBootstrapInfo(m: KvBootstrapInfoFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvBootstrapInfo(w, m)
  return w.finish()
}

export function readKvBootstrapInfo(r: Reader, end: number): KvBootstrapInfo {
  const m: KvBootstrapInfo = {
    bootstrapHost: '',
    bootstrapPort: 0,
    bootstrapRoom: 0n,
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
        m.bootstrapRoom = r.int64()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvBootstrapInfo(bytes: Buffer): KvBootstrapInfo {
  return readKvBootstrapInfo(new Reader(bytes), bytes.length)
}

export interface TokenizedInput {
  inputIds: number[]
  originalText: string
}

export interface TokenizedInputFields {
  readonly inputIds?: ArrayLike<number>
  readonly originalText?: string
}

export function writeTokenizedInput(w: Writer, m: TokenizedInputFields): void {
  if (m.inputIds !== undefined && m.inputIds.length > 0) w.uint32s(10, m.inputIds)
  if (m.originalText !== undefined && m.originalText !== '') w.string(18, m.originalText)
}

export function encodeTokenizedInput(m: TokenizedInputFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTokenizedInput(w, m)
  return w.finish()
}

export function readTokenizedInput(r: Reader, end: number): TokenizedInput {
  const m: TokenizedInput = {
    inputIds: [],
    originalText: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.uint32s(m.inputIds)
        break
      case 8:
        r.add(m.inputIds, r.uint32())
        break
      case 18:
        m.originalText = r.string()
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
  shape: number[]
  dtype: string
  inline: Buffer | undefined
  shm: common.ShmHandle | undefined
  remote: common.RemoteTensorHandle | undefined
}

export interface TensorDataFields {
  readonly shape?: ArrayLike<number>
  readonly dtype?: string
  readonly inline?: Buffer
  readonly shm?: common.ShmHandleFields
  readonly remote?: common.RemoteTensorHandleFields
}

export function writeTensorData(w: Writer, m: TensorDataFields): void {
  if (m.shape !== undefined && m.shape.length > 0) w.uint32s(10, m.shape)
  if (m.dtype !== undefined && m.dtype !== '') w.string(18, m.dtype)
  if (m.inline !== undefined) w.bytes(26, m.inline)
  if (m.shm !== undefined) {
    const start = w.begin(34)
    common.writeShmHandle(w, m.shm)
    w.end(start)
  }
  if (m.remote !== undefined) {
    const start = w.begin(42)
    common.writeRemoteTensorHandle(w, m.remote)
    w.end(start)
  }
}

export function encodeTensorData(m: TensorDataFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTensorData(w, m)
  return w.finish()
}

export function readTensorData(r: Reader, end: number): TensorData {
  const m: TensorData = {
    shape: [],
    dtype: '',
    inline: undefined,
    shm: undefined,
    remote: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.uint32s(m.shape)
        break
      case 8:
        r.add(m.shape, r.uint32())
        break
      case 18:
        m.dtype = r.string()
        break
      case 26:
        m.inline = r.bytes()
        break
      case 34:
        m.shm = common.readShmHandle(r, r.end())
        break
      case 42:
        m.remote = common.readRemoteTensorHandle(r, r.end())
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

export interface MultimodalItem {
  modality: number
  contentHash: Buffer
  encoderInput: TensorData | undefined
  modelSpecificTensors: Map<string, TensorData>
  placeholders: PlaceholderRange[]
  placeholderTokenId: number | undefined
}

export interface MultimodalItemFields {
  readonly modality?: number
  readonly contentHash?: Buffer
  readonly encoderInput?: TensorDataFields
  readonly modelSpecificTensors?: ReadonlyMap<string, TensorDataFields>
  readonly placeholders?: readonly PlaceholderRangeFields[]
  readonly placeholderTokenId?: number
}

export function writeMultimodalItem(w: Writer, m: MultimodalItemFields): void {
  if (m.modality !== undefined && m.modality !== 0) w.int32(8, m.modality)
  if (m.contentHash !== undefined && m.contentHash.length > 0) w.bytes(18, m.contentHash)
  if (m.encoderInput !== undefined) {
    const start = w.begin(26)
    writeTensorData(w, m.encoderInput)
    w.end(start)
  }
  if (m.modelSpecificTensors !== undefined)
    for (const [name, value] of m.modelSpecificTensors) {
      const start = w.begin(34)
      w.string(10, name)
      const inner = w.begin(18)
      writeTensorData(w, value)
      w.end(inner)
      w.end(start)
    }
  if (m.placeholders !== undefined && m.placeholders.length > 0)
    for (const one of m.placeholders) {
      const start = w.begin(42)
      writePlaceholderRange(w, one)
      w.end(start)
    }
  if (m.placeholderTokenId !== undefined) w.uint32(48, m.placeholderTokenId)
}

export function encodeMultimodalItem(m: MultimodalItemFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMultimodalItem(w, m)
  return w.finish()
}

export function readMultimodalItem(r: Reader, end: number): MultimodalItem {
  const m: MultimodalItem = {
    modality: 0,
    contentHash: Buffer.alloc(0),
    encoderInput: undefined,
    modelSpecificTensors: new Map(),
    placeholders: [],
    placeholderTokenId: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.modality = r.int32()
        break
      case 18:
        m.contentHash = r.bytes()
        break
      case 26:
        m.encoderInput = readTensorData(r, r.end())
        break
      case 34: {
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
      case 42:
        r.add(m.placeholders, readPlaceholderRange(r, r.end()))
        break
      case 48:
        m.placeholderTokenId = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeMultimodalItem(bytes: Buffer): MultimodalItem {
  return readMultimodalItem(new Reader(bytes), bytes.length)
}

export interface MultimodalInputs {
  items: MultimodalItem[]
}

export interface MultimodalInputsFields {
  readonly items?: readonly MultimodalItemFields[]
}

export function writeMultimodalInputs(w: Writer, m: MultimodalInputsFields): void {
  if (m.items !== undefined && m.items.length > 0)
    for (const one of m.items) {
      const start = w.begin(10)
      writeMultimodalItem(w, one)
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
    items: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.items, readMultimodalItem(r, r.end()))
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
  index: number
  weightVersion: string | undefined
}

export interface GenerateStreamChunkFields {
  readonly tokenIds?: ArrayLike<number>
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly index?: number
  readonly weightVersion?: string
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
  if (m.weightVersion !== undefined) w.string(58, m.weightVersion)
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
    weightVersion: undefined,
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
      case 58:
        m.weightVersion = r.string()
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
  matchedTokenId: number | undefined
  matchedStopStr: string | undefined
  index: number
  specAcceptedTokens: number
  specDraftTokens: number
  weightVersion: string | undefined
}

export interface GenerateCompleteFields {
  readonly outputIds?: ArrayLike<number>
  readonly finishReason?: string
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly matchedTokenId?: number
  readonly matchedStopStr?: string
  readonly index?: number
  readonly specAcceptedTokens?: number
  readonly specDraftTokens?: number
  readonly weightVersion?: string
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
  if (m.matchedTokenId !== undefined) w.uint32(56, m.matchedTokenId)
  if (m.matchedStopStr !== undefined) w.string(66, m.matchedStopStr)
  if (m.index !== undefined && m.index !== 0) w.uint32(72, m.index)
  if (m.specAcceptedTokens !== undefined && m.specAcceptedTokens !== 0) w.uint32(80, m.specAcceptedTokens)
  if (m.specDraftTokens !== undefined && m.specDraftTokens !== 0) w.uint32(88, m.specDraftTokens)
  if (m.weightVersion !== undefined) w.string(98, m.weightVersion)
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
    matchedTokenId: undefined,
    matchedStopStr: undefined,
    index: 0,
    specAcceptedTokens: 0,
    specDraftTokens: 0,
    weightVersion: undefined,
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
        m.matchedTokenId = r.uint32()
        break
      case 66:
        m.matchedStopStr = r.string()
        break
      case 72:
        m.index = r.uint32()
        break
      case 80:
        m.specAcceptedTokens = r.uint32()
        break
      case 88:
        m.specDraftTokens = r.uint32()
        break
      case 98:
        m.weightVersion = r.string()
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

export interface GetModelInfoResponse {
  modelPath: string
  tokenizerPath: string
  servedModelName: string
  modelType: string
  architectures: string[]
  maxContextLength: number
  maxReqInputLen: number
  vocabSize: number
  eosTokenIds: number[]
  padTokenId: number
  bosTokenId: number
  weightVersion: string
  defaultSamplingParamsJson: string
  supportsVision: boolean
  supportsMultimodal: boolean
  supportedModalities: number[]
  modelDtype: string
  multimodalEncoderDtype: string
}

export interface GetModelInfoResponseFields {
  readonly modelPath?: string
  readonly tokenizerPath?: string
  readonly servedModelName?: string
  readonly modelType?: string
  readonly architectures?: readonly string[]
  readonly maxContextLength?: number
  readonly maxReqInputLen?: number
  readonly vocabSize?: number
  readonly eosTokenIds?: ArrayLike<number>
  readonly padTokenId?: number
  readonly bosTokenId?: number
  readonly weightVersion?: string
  readonly defaultSamplingParamsJson?: string
  readonly supportsVision?: boolean
  readonly supportsMultimodal?: boolean
  readonly supportedModalities?: ArrayLike<number>
  readonly modelDtype?: string
  readonly multimodalEncoderDtype?: string
}

export function writeGetModelInfoResponse(w: Writer, m: GetModelInfoResponseFields): void {
  if (m.modelPath !== undefined && m.modelPath !== '') w.string(10, m.modelPath)
  if (m.tokenizerPath !== undefined && m.tokenizerPath !== '') w.string(18, m.tokenizerPath)
  if (m.servedModelName !== undefined && m.servedModelName !== '') w.string(26, m.servedModelName)
  if (m.modelType !== undefined && m.modelType !== '') w.string(34, m.modelType)
  if (m.architectures !== undefined && m.architectures.length > 0)
    for (const one of m.architectures) {
      w.string(42, one)
    }
  if (m.maxContextLength !== undefined && m.maxContextLength !== 0) w.int32(48, m.maxContextLength)
  if (m.maxReqInputLen !== undefined && m.maxReqInputLen !== 0) w.int32(56, m.maxReqInputLen)
  if (m.vocabSize !== undefined && m.vocabSize !== 0) w.int32(64, m.vocabSize)
  if (m.eosTokenIds !== undefined && m.eosTokenIds.length > 0) w.int32s(74, m.eosTokenIds)
  if (m.padTokenId !== undefined && m.padTokenId !== 0) w.int32(80, m.padTokenId)
  if (m.bosTokenId !== undefined && m.bosTokenId !== 0) w.int32(88, m.bosTokenId)
  if (m.weightVersion !== undefined && m.weightVersion !== '') w.string(98, m.weightVersion)
  if (m.defaultSamplingParamsJson !== undefined && m.defaultSamplingParamsJson !== '') w.string(106, m.defaultSamplingParamsJson)
  if (m.supportsVision !== undefined && m.supportsVision) w.bool(112, m.supportsVision)
  if (m.supportsMultimodal !== undefined && m.supportsMultimodal) w.bool(120, m.supportsMultimodal)
  if (m.supportedModalities !== undefined && m.supportedModalities.length > 0) w.int32s(130, m.supportedModalities)
  if (m.modelDtype !== undefined && m.modelDtype !== '') w.string(138, m.modelDtype)
  if (m.multimodalEncoderDtype !== undefined && m.multimodalEncoderDtype !== '') w.string(146, m.multimodalEncoderDtype)
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
    servedModelName: '',
    modelType: '',
    architectures: [],
    maxContextLength: 0,
    maxReqInputLen: 0,
    vocabSize: 0,
    eosTokenIds: [],
    padTokenId: 0,
    bosTokenId: 0,
    weightVersion: '',
    defaultSamplingParamsJson: '',
    supportsVision: false,
    supportsMultimodal: false,
    supportedModalities: [],
    modelDtype: '',
    multimodalEncoderDtype: '',
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
      case 26:
        m.servedModelName = r.string()
        break
      case 34:
        m.modelType = r.string()
        break
      case 42:
        r.add(m.architectures, r.string())
        break
      case 48:
        m.maxContextLength = r.int32()
        break
      case 56:
        m.maxReqInputLen = r.int32()
        break
      case 64:
        m.vocabSize = r.int32()
        break
      case 74:
        r.int32s(m.eosTokenIds)
        break
      case 72:
        r.add(m.eosTokenIds, r.int32())
        break
      case 80:
        m.padTokenId = r.int32()
        break
      case 88:
        m.bosTokenId = r.int32()
        break
      case 98:
        m.weightVersion = r.string()
        break
      case 106:
        m.defaultSamplingParamsJson = r.string()
        break
      case 112:
        m.supportsVision = r.bool()
        break
      case 120:
        m.supportsMultimodal = r.bool()
        break
      case 130:
        r.int32s(m.supportedModalities)
        break
      case 128:
        r.add(m.supportedModalities, r.int32())
        break
      case 138:
        m.modelDtype = r.string()
        break
      case 146:
        m.multimodalEncoderDtype = r.string()
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
  uptimeSeconds: number
  maxTotalNumTokens: number
  tokenspeedVersion: string
  startTime: number | undefined
  constrainedDecoding: string
}

export interface GetServerInfoResponseFields {
  readonly serverArgs?: Readonly<Record<string, unknown>>
  readonly schedulerInfo?: Readonly<Record<string, unknown>>
  readonly activeRequests?: number
  readonly isPaused?: boolean
  readonly uptimeSeconds?: number
  readonly maxTotalNumTokens?: number
  readonly tokenspeedVersion?: string
  readonly startTime?: number
  readonly constrainedDecoding?: string
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
  if (m.uptimeSeconds !== undefined && m.uptimeSeconds !== 0) w.double(41, m.uptimeSeconds)
  if (m.maxTotalNumTokens !== undefined && m.maxTotalNumTokens !== 0) w.int32(48, m.maxTotalNumTokens)
  if (m.tokenspeedVersion !== undefined && m.tokenspeedVersion !== '') w.string(58, m.tokenspeedVersion)
  if (m.startTime !== undefined) {
    const start = w.begin(66)
    writeTimestamp(w, m.startTime)
    w.end(start)
  }
  if (m.constrainedDecoding !== undefined && m.constrainedDecoding !== '') w.string(74, m.constrainedDecoding)
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
    uptimeSeconds: 0,
    maxTotalNumTokens: 0,
    tokenspeedVersion: '',
    startTime: undefined,
    constrainedDecoding: '',
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
        m.uptimeSeconds = r.double()
        break
      case 48:
        m.maxTotalNumTokens = r.int32()
        break
      case 58:
        m.tokenspeedVersion = r.string()
        break
      case 66:
        m.startTime = readTimestamp(r, r.end())
        break
      case 74:
        m.constrainedDecoding = r.string()
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
  maxRunningRequests: number
  tokenUsage: number
  genThroughput: number
  cacheHitRate: number
  utilization: number
  memory: MemoryMetrics | undefined
  queues: QueueMetrics | undefined
  numWaitingUncachedTokens: number
  activeTokenUsage: number | undefined
}

export interface SchedulerLoadFields {
  readonly dpRank?: number
  readonly numRunningReqs?: number
  readonly numWaitingReqs?: number
  readonly numTotalReqs?: number
  readonly numUsedTokens?: number
  readonly maxTotalNumTokens?: number
  readonly maxRunningRequests?: number
  readonly tokenUsage?: number
  readonly genThroughput?: number
  readonly cacheHitRate?: number
  readonly utilization?: number
  readonly memory?: MemoryMetricsFields
  readonly queues?: QueueMetricsFields
  readonly numWaitingUncachedTokens?: number
  readonly activeTokenUsage?: number
}

export function writeSchedulerLoad(w: Writer, m: SchedulerLoadFields): void {
  if (m.dpRank !== undefined && m.dpRank !== 0) w.int32(8, m.dpRank)
  if (m.numRunningReqs !== undefined && m.numRunningReqs !== 0) w.int32(16, m.numRunningReqs)
  if (m.numWaitingReqs !== undefined && m.numWaitingReqs !== 0) w.int32(24, m.numWaitingReqs)
  if (m.numTotalReqs !== undefined && m.numTotalReqs !== 0) w.int32(32, m.numTotalReqs)
  if (m.numUsedTokens !== undefined && m.numUsedTokens !== 0) w.int32(40, m.numUsedTokens)
  if (m.maxTotalNumTokens !== undefined && m.maxTotalNumTokens !== 0) w.int32(48, m.maxTotalNumTokens)
  if (m.maxRunningRequests !== undefined && m.maxRunningRequests !== 0) w.int32(56, m.maxRunningRequests)
  if (m.tokenUsage !== undefined && m.tokenUsage !== 0) w.double(65, m.tokenUsage)
  if (m.genThroughput !== undefined && m.genThroughput !== 0) w.double(73, m.genThroughput)
  if (m.cacheHitRate !== undefined && m.cacheHitRate !== 0) w.double(81, m.cacheHitRate)
  if (m.utilization !== undefined && m.utilization !== 0) w.double(89, m.utilization)
  if (m.memory !== undefined) {
    const start = w.begin(98)
    writeMemoryMetrics(w, m.memory)
    w.end(start)
  }
  if (m.queues !== undefined) {
    const start = w.begin(106)
    writeQueueMetrics(w, m.queues)
    w.end(start)
  }
  if (m.numWaitingUncachedTokens !== undefined && m.numWaitingUncachedTokens !== 0) w.int32(112, m.numWaitingUncachedTokens)
  if (m.activeTokenUsage !== undefined) w.double(121, m.activeTokenUsage)
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
    maxRunningRequests: 0,
    tokenUsage: 0,
    genThroughput: 0,
    cacheHitRate: 0,
    utilization: 0,
    memory: undefined,
    queues: undefined,
    numWaitingUncachedTokens: 0,
    activeTokenUsage: undefined,
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
      case 56:
        m.maxRunningRequests = r.int32()
        break
      case 65:
        m.tokenUsage = r.double()
        break
      case 73:
        m.genThroughput = r.double()
        break
      case 81:
        m.cacheHitRate = r.double()
        break
      case 89:
        m.utilization = r.double()
        break
      case 98:
        m.memory = readMemoryMetrics(r, r.end())
        break
      case 106:
        m.queues = readQueueMetrics(r, r.end())
        break
      case 112:
        m.numWaitingUncachedTokens = r.int32()
        break
      case 121:
        m.activeTokenUsage = r.double()
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
