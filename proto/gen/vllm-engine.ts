/** Made by proto/generate.ts from proto/vllm_engine.proto: change that instead. @hot */
import * as common from './common.ts'
import { Reader, Writer } from '../wire.ts'

export const VllmEngine = {
  Generate: '/vllm.grpc.engine.VllmEngine/Generate',
  Embed: '/vllm.grpc.engine.VllmEngine/Embed',
  HealthCheck: '/vllm.grpc.engine.VllmEngine/HealthCheck',
  Abort: '/vllm.grpc.engine.VllmEngine/Abort',
  GetModelInfo: '/vllm.grpc.engine.VllmEngine/GetModelInfo',
  GetServerInfo: '/vllm.grpc.engine.VllmEngine/GetServerInfo',
  GetLoads: '/vllm.grpc.engine.VllmEngine/GetLoads',
  GetTokenizer: '/vllm.grpc.engine.VllmEngine/GetTokenizer',
  SubscribeKvEvents: '/vllm.grpc.engine.VllmEngine/SubscribeKvEvents',
  FlushCache: '/vllm.grpc.engine.VllmEngine/FlushCache',
  StartProfile: '/vllm.grpc.engine.VllmEngine/StartProfile',
  StopProfile: '/vllm.grpc.engine.VllmEngine/StopProfile',
} as const

export interface SamplingParams {
  temperature: number | undefined
  topP: number
  topK: number
  minP: number
  frequencyPenalty: number
  presencePenalty: number
  repetitionPenalty: number
  maxTokens: number | undefined
  minTokens: number
  stop: string[]
  stopTokenIds: number[]
  skipSpecialTokens: boolean
  spacesBetweenSpecialTokens: boolean
  ignoreEos: boolean
  n: number
  jsonSchema: string | undefined
  regex: string | undefined
  grammar: string | undefined
  structuralTag: string | undefined
  jsonObject: boolean | undefined
  choice: ChoiceConstraint | undefined
  logprobs: number | undefined
  promptLogprobs: number | undefined
  seed: number | undefined
  includeStopStrInOutput: boolean
  logitBias: Map<number, number>
  truncatePromptTokens: number | undefined
  grammarFromFirstToken: boolean
}

export interface SamplingParamsFields {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly repetitionPenalty?: number
  readonly maxTokens?: number
  readonly minTokens?: number
  readonly stop?: readonly string[]
  readonly stopTokenIds?: ArrayLike<number>
  readonly skipSpecialTokens?: boolean
  readonly spacesBetweenSpecialTokens?: boolean
  readonly ignoreEos?: boolean
  readonly n?: number
  readonly jsonSchema?: string
  readonly regex?: string
  readonly grammar?: string
  readonly structuralTag?: string
  readonly jsonObject?: boolean
  readonly choice?: ChoiceConstraintFields
  readonly logprobs?: number
  readonly promptLogprobs?: number
  readonly seed?: number
  readonly includeStopStrInOutput?: boolean
  readonly logitBias?: ReadonlyMap<number, number>
  readonly truncatePromptTokens?: number
  readonly grammarFromFirstToken?: boolean
}

export function writeSamplingParams(w: Writer, m: SamplingParamsFields): void {
  if (m.temperature !== undefined) w.float(13, m.temperature)
  if (m.topP !== undefined && m.topP !== 0) w.float(21, m.topP)
  if (m.topK !== undefined && m.topK !== 0) w.uint32(24, m.topK)
  if (m.minP !== undefined && m.minP !== 0) w.float(37, m.minP)
  if (m.frequencyPenalty !== undefined && m.frequencyPenalty !== 0) w.float(45, m.frequencyPenalty)
  if (m.presencePenalty !== undefined && m.presencePenalty !== 0) w.float(53, m.presencePenalty)
  if (m.repetitionPenalty !== undefined && m.repetitionPenalty !== 0) w.float(61, m.repetitionPenalty)
  if (m.maxTokens !== undefined) w.uint32(64, m.maxTokens)
  if (m.minTokens !== undefined && m.minTokens !== 0) w.uint32(72, m.minTokens)
  if (m.stop !== undefined && m.stop.length > 0)
    for (const one of m.stop) {
      w.string(82, one)
    }
  if (m.stopTokenIds !== undefined && m.stopTokenIds.length > 0) w.uint32s(90, m.stopTokenIds)
  if (m.skipSpecialTokens !== undefined && m.skipSpecialTokens) w.bool(96, m.skipSpecialTokens)
  if (m.spacesBetweenSpecialTokens !== undefined && m.spacesBetweenSpecialTokens) w.bool(104, m.spacesBetweenSpecialTokens)
  if (m.ignoreEos !== undefined && m.ignoreEos) w.bool(112, m.ignoreEos)
  if (m.n !== undefined && m.n !== 0) w.uint32(120, m.n)
  if (m.jsonSchema !== undefined) w.string(130, m.jsonSchema)
  if (m.regex !== undefined) w.string(138, m.regex)
  if (m.grammar !== undefined) w.string(146, m.grammar)
  if (m.structuralTag !== undefined) w.string(154, m.structuralTag)
  if (m.jsonObject !== undefined) w.bool(160, m.jsonObject)
  if (m.choice !== undefined) {
    const start = w.begin(170)
    writeChoiceConstraint(w, m.choice)
    w.end(start)
  }
  if (m.logprobs !== undefined) w.int32(176, m.logprobs)
  if (m.promptLogprobs !== undefined) w.int32(184, m.promptLogprobs)
  if (m.seed !== undefined) w.int32(192, m.seed)
  if (m.includeStopStrInOutput !== undefined && m.includeStopStrInOutput) w.bool(200, m.includeStopStrInOutput)
  if (m.logitBias !== undefined)
    for (const [name, value] of m.logitBias) {
      const start = w.begin(210)
      w.int32(8, name)
      w.float(21, value)
      w.end(start)
    }
  if (m.truncatePromptTokens !== undefined) w.int32(216, m.truncatePromptTokens)
  if (m.grammarFromFirstToken !== undefined && m.grammarFromFirstToken) w.bool(224, m.grammarFromFirstToken)
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
    frequencyPenalty: 0,
    presencePenalty: 0,
    repetitionPenalty: 0,
    maxTokens: undefined,
    minTokens: 0,
    stop: [],
    stopTokenIds: [],
    skipSpecialTokens: false,
    spacesBetweenSpecialTokens: false,
    ignoreEos: false,
    n: 0,
    jsonSchema: undefined,
    regex: undefined,
    grammar: undefined,
    structuralTag: undefined,
    jsonObject: undefined,
    choice: undefined,
    logprobs: undefined,
    promptLogprobs: undefined,
    seed: undefined,
    includeStopStrInOutput: false,
    logitBias: new Map(),
    truncatePromptTokens: undefined,
    grammarFromFirstToken: false,
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
        m.frequencyPenalty = r.float()
        break
      case 53:
        m.presencePenalty = r.float()
        break
      case 61:
        m.repetitionPenalty = r.float()
        break
      case 64:
        m.maxTokens = r.uint32()
        break
      case 72:
        m.minTokens = r.uint32()
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
        m.skipSpecialTokens = r.bool()
        break
      case 104:
        m.spacesBetweenSpecialTokens = r.bool()
        break
      case 112:
        m.ignoreEos = r.bool()
        break
      case 120:
        m.n = r.uint32()
        break
      case 130:
        m.jsonSchema = r.string()
        break
      case 138:
        m.regex = r.string()
        break
      case 146:
        m.grammar = r.string()
        break
      case 154:
        m.structuralTag = r.string()
        break
      case 160:
        m.jsonObject = r.bool()
        break
      case 170:
        m.choice = readChoiceConstraint(r, r.end())
        break
      case 176:
        m.logprobs = r.int32()
        break
      case 184:
        m.promptLogprobs = r.int32()
        break
      case 192:
        m.seed = r.int32()
        break
      case 200:
        m.includeStopStrInOutput = r.bool()
        break
      case 210: {
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
      case 216:
        m.truncatePromptTokens = r.int32()
        break
      case 224:
        m.grammarFromFirstToken = r.bool()
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

export interface ChoiceConstraint {
  choices: string[]
}

export interface ChoiceConstraintFields {
  readonly choices?: readonly string[]
}

export function writeChoiceConstraint(w: Writer, m: ChoiceConstraintFields): void {
  if (m.choices !== undefined && m.choices.length > 0)
    for (const one of m.choices) {
      w.string(10, one)
    }
}

export function encodeChoiceConstraint(m: ChoiceConstraintFields, size?: number): Buffer {
  const w = new Writer(size)
  writeChoiceConstraint(w, m)
  return w.finish()
}

export function readChoiceConstraint(r: Reader, end: number): ChoiceConstraint {
  const m: ChoiceConstraint = {
    choices: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.choices, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeChoiceConstraint(bytes: Buffer): ChoiceConstraint {
  return readChoiceConstraint(new Reader(bytes), bytes.length)
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
  inline: Buffer | undefined
  shm: common.ShmHandle | undefined
  remote: common.RemoteTensorHandle | undefined
  shape: number[]
  dtype: string
}

export interface TensorDataFields {
  readonly inline?: Buffer
  readonly shm?: common.ShmHandleFields
  readonly remote?: common.RemoteTensorHandleFields
  readonly shape?: ArrayLike<number>
  readonly dtype?: string
}

export function writeTensorData(w: Writer, m: TensorDataFields): void {
  if (m.inline !== undefined) w.bytes(10, m.inline)
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
    inline: undefined,
    shm: undefined,
    remote: undefined,
    shape: [],
    dtype: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.inline = r.bytes()
        break
      case 34:
        m.shm = common.readShmHandle(r, r.end())
        break
      case 42:
        m.remote = common.readRemoteTensorHandle(r, r.end())
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

export interface MultimodalInputs {
  pixelValues: TensorData | undefined
  modelSpecificTensors: Map<string, TensorData>
  imTokenId: number | undefined
  mmPlaceholders: PlaceholderRange[]
  mmHashes: string[]
  batchedKeys: string[]
  flatKeys: Map<string, string>
  keepOnCpuKeys: string[]
  modality: number
  encoderInputKey: string | undefined
}

export interface MultimodalInputsFields {
  readonly pixelValues?: TensorDataFields
  readonly modelSpecificTensors?: ReadonlyMap<string, TensorDataFields>
  readonly imTokenId?: number
  readonly mmPlaceholders?: readonly PlaceholderRangeFields[]
  readonly mmHashes?: readonly string[]
  readonly batchedKeys?: readonly string[]
  readonly flatKeys?: ReadonlyMap<string, string>
  readonly keepOnCpuKeys?: readonly string[]
  readonly modality?: number
  readonly encoderInputKey?: string
}

export function writeMultimodalInputs(w: Writer, m: MultimodalInputsFields): void {
  if (m.pixelValues !== undefined) {
    const start = w.begin(18)
    writeTensorData(w, m.pixelValues)
    w.end(start)
  }
  if (m.modelSpecificTensors !== undefined)
    for (const [name, value] of m.modelSpecificTensors) {
      const start = w.begin(26)
      w.string(10, name)
      const inner = w.begin(18)
      writeTensorData(w, value)
      w.end(inner)
      w.end(start)
    }
  if (m.imTokenId !== undefined) w.uint32(32, m.imTokenId)
  if (m.mmPlaceholders !== undefined && m.mmPlaceholders.length > 0)
    for (const one of m.mmPlaceholders) {
      const start = w.begin(42)
      writePlaceholderRange(w, one)
      w.end(start)
    }
  if (m.mmHashes !== undefined && m.mmHashes.length > 0)
    for (const one of m.mmHashes) {
      w.string(50, one)
    }
  if (m.batchedKeys !== undefined && m.batchedKeys.length > 0)
    for (const one of m.batchedKeys) {
      w.string(58, one)
    }
  if (m.flatKeys !== undefined)
    for (const [name, value] of m.flatKeys) {
      const start = w.begin(66)
      w.string(10, name)
      w.string(18, value)
      w.end(start)
    }
  if (m.keepOnCpuKeys !== undefined && m.keepOnCpuKeys.length > 0)
    for (const one of m.keepOnCpuKeys) {
      w.string(74, one)
    }
  if (m.modality !== undefined && m.modality !== 0) w.int32(80, m.modality)
  if (m.encoderInputKey !== undefined) w.string(90, m.encoderInputKey)
}

export function encodeMultimodalInputs(m: MultimodalInputsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMultimodalInputs(w, m)
  return w.finish()
}

export function readMultimodalInputs(r: Reader, end: number): MultimodalInputs {
  const m: MultimodalInputs = {
    pixelValues: undefined,
    modelSpecificTensors: new Map(),
    imTokenId: undefined,
    mmPlaceholders: [],
    mmHashes: [],
    batchedKeys: [],
    flatKeys: new Map(),
    keepOnCpuKeys: [],
    modality: 0,
    encoderInputKey: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 18:
        m.pixelValues = readTensorData(r, r.end())
        break
      case 26: {
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
      case 32:
        m.imTokenId = r.uint32()
        break
      case 42:
        r.add(m.mmPlaceholders, readPlaceholderRange(r, r.end()))
        break
      case 50:
        r.add(m.mmHashes, r.string())
        break
      case 58:
        r.add(m.batchedKeys, r.string())
        break
      case 66: {
        let name: string = ''
        let value: string = ''
        for (const last = r.end(); r.at < last; ) {
          const part = r.uint32()
          if (part === 10) name = r.string()
          else if (part === 18) value = r.string()
          else r.skip(part)
        }
        m.flatKeys.set(name, value)
        break
      }
      case 74:
        r.add(m.keepOnCpuKeys, r.string())
        break
      case 80:
        m.modality = r.int32()
        break
      case 90:
        m.encoderInputKey = r.string()
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

export interface GenerateRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
  text: string | undefined
  samplingParams: SamplingParams | undefined
  stream: boolean
  kvTransferParams: KvTransferParams | undefined
  mmInputs: MultimodalInputs | undefined
  kvTransferParamsJson: string | undefined
  dataParallelRank: number | undefined
  mediaRefs: MediaRefs | undefined
  extraMmInputs: MultimodalInputs[]
}

export interface GenerateRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
  readonly text?: string
  readonly samplingParams?: SamplingParamsFields
  readonly stream?: boolean
  readonly kvTransferParams?: KvTransferParamsFields
  readonly mmInputs?: MultimodalInputsFields
  readonly kvTransferParamsJson?: string
  readonly dataParallelRank?: number
  readonly mediaRefs?: MediaRefsFields
  readonly extraMmInputs?: readonly MultimodalInputsFields[]
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
  if (m.kvTransferParams !== undefined) {
    const start = w.begin(50)
    writeKvTransferParams(w, m.kvTransferParams)
    w.end(start)
  }
  if (m.mmInputs !== undefined) {
    const start = w.begin(58)
    writeMultimodalInputs(w, m.mmInputs)
    w.end(start)
  }
  if (m.kvTransferParamsJson !== undefined) w.string(66, m.kvTransferParamsJson)
  if (m.dataParallelRank !== undefined) w.int32(72, m.dataParallelRank)
  if (m.mediaRefs !== undefined) {
    const start = w.begin(82)
    writeMediaRefs(w, m.mediaRefs)
    w.end(start)
  }
  if (m.extraMmInputs !== undefined && m.extraMmInputs.length > 0)
    for (const one of m.extraMmInputs) {
      const start = w.begin(90)
      writeMultimodalInputs(w, one)
      w.end(start)
    }
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
    kvTransferParams: undefined,
    mmInputs: undefined,
    kvTransferParamsJson: undefined,
    dataParallelRank: undefined,
    mediaRefs: undefined,
    extraMmInputs: [],
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
      case 50:
        m.kvTransferParams = readKvTransferParams(r, r.end())
        break
      case 58:
        m.mmInputs = readMultimodalInputs(r, r.end())
        break
      case 66:
        m.kvTransferParamsJson = r.string()
        break
      case 72:
        m.dataParallelRank = r.int32()
        break
      case 82:
        m.mediaRefs = readMediaRefs(r, r.end())
        break
      case 90:
        r.add(m.extraMmInputs, readMultimodalInputs(r, r.end()))
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

export interface KvTransferParams {
  remoteHost: string
  remotePort: number
}

export interface KvTransferParamsFields {
  readonly remoteHost?: string
  readonly remotePort?: number
}

export function writeKvTransferParams(w: Writer, m: KvTransferParamsFields): void {
  if (m.remoteHost !== undefined && m.remoteHost !== '') w.string(10, m.remoteHost)
  if (m.remotePort !== undefined && m.remotePort !== 0) w.uint32(16, m.remotePort)
}

export function encodeKvTransferParams(m: KvTransferParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvTransferParams(w, m)
  return w.finish()
}

export function readKvTransferParams(r: Reader, end: number): KvTransferParams {
  const m: KvTransferParams = {
    remoteHost: '',
    remotePort: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.remoteHost = r.string()
        break
      case 16:
        m.remotePort = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvTransferParams(bytes: Buffer): KvTransferParams {
  return readKvTransferParams(new Reader(bytes), bytes.length)
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
  inputLogprobs: InputLogProbs | undefined
  index: number
}

export interface GenerateStreamChunkFields {
  readonly tokenIds?: ArrayLike<number>
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly inputLogprobs?: InputLogProbsFields
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
  if (m.inputLogprobs !== undefined) {
    const start = w.begin(50)
    writeInputLogProbs(w, m.inputLogprobs)
    w.end(start)
  }
  if (m.index !== undefined && m.index !== 0) w.uint32(56, m.index)
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
    inputLogprobs: undefined,
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
      case 50:
        m.inputLogprobs = readInputLogProbs(r, r.end())
        break
      case 56:
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
  inputLogprobs: InputLogProbs | undefined
  index: number
  kvTransferParams: KvTransferParams | undefined
  matchedTokenId: number | undefined
  matchedStopStr: string | undefined
  kvTransferParamsJson: string | undefined
  specAcceptedTokens: number
  specDraftTokens: number
  mediaIdentity: MediaIdentity | undefined
}

export interface GenerateCompleteFields {
  readonly outputIds?: ArrayLike<number>
  readonly finishReason?: string
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly outputLogprobs?: OutputLogProbsFields
  readonly inputLogprobs?: InputLogProbsFields
  readonly index?: number
  readonly kvTransferParams?: KvTransferParamsFields
  readonly matchedTokenId?: number
  readonly matchedStopStr?: string
  readonly kvTransferParamsJson?: string
  readonly specAcceptedTokens?: number
  readonly specDraftTokens?: number
  readonly mediaIdentity?: MediaIdentityFields
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
  if (m.inputLogprobs !== undefined) {
    const start = w.begin(58)
    writeInputLogProbs(w, m.inputLogprobs)
    w.end(start)
  }
  if (m.index !== undefined && m.index !== 0) w.uint32(64, m.index)
  if (m.kvTransferParams !== undefined) {
    const start = w.begin(74)
    writeKvTransferParams(w, m.kvTransferParams)
    w.end(start)
  }
  if (m.matchedTokenId !== undefined) w.uint32(80, m.matchedTokenId)
  if (m.matchedStopStr !== undefined) w.string(90, m.matchedStopStr)
  if (m.kvTransferParamsJson !== undefined) w.string(98, m.kvTransferParamsJson)
  if (m.specAcceptedTokens !== undefined && m.specAcceptedTokens !== 0) w.uint32(104, m.specAcceptedTokens)
  if (m.specDraftTokens !== undefined && m.specDraftTokens !== 0) w.uint32(112, m.specDraftTokens)
  if (m.mediaIdentity !== undefined) {
    const start = w.begin(122)
    writeMediaIdentity(w, m.mediaIdentity)
    w.end(start)
  }
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
    inputLogprobs: undefined,
    index: 0,
    kvTransferParams: undefined,
    matchedTokenId: undefined,
    matchedStopStr: undefined,
    kvTransferParamsJson: undefined,
    specAcceptedTokens: 0,
    specDraftTokens: 0,
    mediaIdentity: undefined,
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
        m.inputLogprobs = readInputLogProbs(r, r.end())
        break
      case 64:
        m.index = r.uint32()
        break
      case 74:
        m.kvTransferParams = readKvTransferParams(r, r.end())
        break
      case 80:
        m.matchedTokenId = r.uint32()
        break
      case 90:
        m.matchedStopStr = r.string()
        break
      case 98:
        m.kvTransferParamsJson = r.string()
        break
      case 104:
        m.specAcceptedTokens = r.uint32()
        break
      case 112:
        m.specDraftTokens = r.uint32()
        break
      case 122:
        m.mediaIdentity = readMediaIdentity(r, r.end())
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

export interface EmbedRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
}

export interface EmbedRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
}

export function writeEmbedRequest(w: Writer, m: EmbedRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.tokenized !== undefined) {
    const start = w.begin(18)
    writeTokenizedInput(w, m.tokenized)
    w.end(start)
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
  embedding: number[]
  promptTokens: number
  embeddingDim: number
}

export interface EmbedResponseFields {
  readonly embedding?: ArrayLike<number>
  readonly promptTokens?: number
  readonly embeddingDim?: number
}

export function writeEmbedResponse(w: Writer, m: EmbedResponseFields): void {
  if (m.embedding !== undefined && m.embedding.length > 0) w.floats(10, m.embedding)
  if (m.promptTokens !== undefined && m.promptTokens !== 0) w.uint32(16, m.promptTokens)
  if (m.embeddingDim !== undefined && m.embeddingDim !== 0) w.uint32(24, m.embeddingDim)
}

export function encodeEmbedResponse(m: EmbedResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEmbedResponse(w, m)
  return w.finish()
}

export function readEmbedResponse(r: Reader, end: number): EmbedResponse {
  const m: EmbedResponse = {
    embedding: [],
    promptTokens: 0,
    embeddingDim: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.floats(m.embedding)
        break
      case 13:
        r.add(m.embedding, r.float())
        break
      case 16:
        m.promptTokens = r.uint32()
        break
      case 24:
        m.embeddingDim = r.uint32()
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
  supportsVision: boolean
  servedModelName: string
  tokenizerPath: string
  modelType: string
  architectures: string[]
  eosTokenIds: number[]
  padTokenId: number
  bosTokenId: number
  maxReqInputLen: number
  defaultSamplingParamsJson: string
}

export interface GetModelInfoResponseFields {
  readonly modelPath?: string
  readonly isGeneration?: boolean
  readonly maxContextLength?: number
  readonly vocabSize?: number
  readonly supportsVision?: boolean
  readonly servedModelName?: string
  readonly tokenizerPath?: string
  readonly modelType?: string
  readonly architectures?: readonly string[]
  readonly eosTokenIds?: ArrayLike<number>
  readonly padTokenId?: number
  readonly bosTokenId?: number
  readonly maxReqInputLen?: number
  readonly defaultSamplingParamsJson?: string
}

export function writeGetModelInfoResponse(w: Writer, m: GetModelInfoResponseFields): void {
  if (m.modelPath !== undefined && m.modelPath !== '') w.string(10, m.modelPath)
  if (m.isGeneration !== undefined && m.isGeneration) w.bool(16, m.isGeneration)
  if (m.maxContextLength !== undefined && m.maxContextLength !== 0) w.uint32(24, m.maxContextLength)
  if (m.vocabSize !== undefined && m.vocabSize !== 0) w.uint32(32, m.vocabSize)
  if (m.supportsVision !== undefined && m.supportsVision) w.bool(40, m.supportsVision)
  if (m.servedModelName !== undefined && m.servedModelName !== '') w.string(50, m.servedModelName)
  if (m.tokenizerPath !== undefined && m.tokenizerPath !== '') w.string(58, m.tokenizerPath)
  if (m.modelType !== undefined && m.modelType !== '') w.string(66, m.modelType)
  if (m.architectures !== undefined && m.architectures.length > 0)
    for (const one of m.architectures) {
      w.string(74, one)
    }
  if (m.eosTokenIds !== undefined && m.eosTokenIds.length > 0) w.int32s(82, m.eosTokenIds)
  if (m.padTokenId !== undefined && m.padTokenId !== 0) w.int32(88, m.padTokenId)
  if (m.bosTokenId !== undefined && m.bosTokenId !== 0) w.int32(96, m.bosTokenId)
  if (m.maxReqInputLen !== undefined && m.maxReqInputLen !== 0) w.int32(104, m.maxReqInputLen)
  if (m.defaultSamplingParamsJson !== undefined && m.defaultSamplingParamsJson !== '') w.string(114, m.defaultSamplingParamsJson)
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
    supportsVision: false,
    servedModelName: '',
    tokenizerPath: '',
    modelType: '',
    architectures: [],
    eosTokenIds: [],
    padTokenId: 0,
    bosTokenId: 0,
    maxReqInputLen: 0,
    defaultSamplingParamsJson: '',
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
      case 40:
        m.supportsVision = r.bool()
        break
      case 50:
        m.servedModelName = r.string()
        break
      case 58:
        m.tokenizerPath = r.string()
        break
      case 66:
        m.modelType = r.string()
        break
      case 74:
        r.add(m.architectures, r.string())
        break
      case 82:
        r.int32s(m.eosTokenIds)
        break
      case 80:
        r.add(m.eosTokenIds, r.int32())
        break
      case 88:
        m.padTokenId = r.int32()
        break
      case 96:
        m.bosTokenId = r.int32()
        break
      case 104:
        m.maxReqInputLen = r.int32()
        break
      case 114:
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
  activeRequests: number
  isPaused: boolean
  lastReceiveTimestamp: number
  uptimeSeconds: number
  serverType: string
  kvConnector: string
  kvRole: string
  kvEngineId: string
  dataParallelSize: number
  shmNamespaceId: string
  kvCacheDtype: string
  blockSize: number
  attentionBackend: string
  modelDtype: string
  pairingProtocol: string
  mmProcessor: string
  mmMediaRefSchemes: string
  mmProcessorSource: string
  mmDeviceDoNormalize: boolean
  maxNumSeqs: number
  mmItemLimits: string
  multimodalEncoderDtype: string
  engineReasoningParser: string
  constrainedDecodingStart: string
  mmEncoderBudget: number
}

export interface GetServerInfoResponseFields {
  readonly activeRequests?: number
  readonly isPaused?: boolean
  readonly lastReceiveTimestamp?: number
  readonly uptimeSeconds?: number
  readonly serverType?: string
  readonly kvConnector?: string
  readonly kvRole?: string
  readonly kvEngineId?: string
  readonly dataParallelSize?: number
  readonly shmNamespaceId?: string
  readonly kvCacheDtype?: string
  readonly blockSize?: number
  readonly attentionBackend?: string
  readonly modelDtype?: string
  readonly pairingProtocol?: string
  readonly mmProcessor?: string
  readonly mmMediaRefSchemes?: string
  readonly mmProcessorSource?: string
  readonly mmDeviceDoNormalize?: boolean
  readonly maxNumSeqs?: number
  readonly mmItemLimits?: string
  readonly multimodalEncoderDtype?: string
  readonly engineReasoningParser?: string
  readonly constrainedDecodingStart?: string
  readonly mmEncoderBudget?: number
}

export function writeGetServerInfoResponse(w: Writer, m: GetServerInfoResponseFields): void {
  if (m.activeRequests !== undefined && m.activeRequests !== 0) w.uint32(8, m.activeRequests)
  if (m.isPaused !== undefined && m.isPaused) w.bool(16, m.isPaused)
  if (m.lastReceiveTimestamp !== undefined && m.lastReceiveTimestamp !== 0) w.double(25, m.lastReceiveTimestamp)
  if (m.uptimeSeconds !== undefined && m.uptimeSeconds !== 0) w.double(33, m.uptimeSeconds)
  if (m.serverType !== undefined && m.serverType !== '') w.string(42, m.serverType)
  if (m.kvConnector !== undefined && m.kvConnector !== '') w.string(50, m.kvConnector)
  if (m.kvRole !== undefined && m.kvRole !== '') w.string(58, m.kvRole)
  if (m.kvEngineId !== undefined && m.kvEngineId !== '') w.string(66, m.kvEngineId)
  if (m.dataParallelSize !== undefined && m.dataParallelSize !== 0) w.int32(72, m.dataParallelSize)
  if (m.shmNamespaceId !== undefined && m.shmNamespaceId !== '') w.string(82, m.shmNamespaceId)
  if (m.kvCacheDtype !== undefined && m.kvCacheDtype !== '') w.string(90, m.kvCacheDtype)
  if (m.blockSize !== undefined && m.blockSize !== 0) w.int32(96, m.blockSize)
  if (m.attentionBackend !== undefined && m.attentionBackend !== '') w.string(106, m.attentionBackend)
  if (m.modelDtype !== undefined && m.modelDtype !== '') w.string(114, m.modelDtype)
  if (m.pairingProtocol !== undefined && m.pairingProtocol !== '') w.string(122, m.pairingProtocol)
  if (m.mmProcessor !== undefined && m.mmProcessor !== '') w.string(130, m.mmProcessor)
  if (m.mmMediaRefSchemes !== undefined && m.mmMediaRefSchemes !== '') w.string(138, m.mmMediaRefSchemes)
  if (m.mmProcessorSource !== undefined && m.mmProcessorSource !== '') w.string(146, m.mmProcessorSource)
  if (m.mmDeviceDoNormalize !== undefined && m.mmDeviceDoNormalize) w.bool(152, m.mmDeviceDoNormalize)
  if (m.maxNumSeqs !== undefined && m.maxNumSeqs !== 0) w.int32(160, m.maxNumSeqs)
  if (m.mmItemLimits !== undefined && m.mmItemLimits !== '') w.string(170, m.mmItemLimits)
  if (m.multimodalEncoderDtype !== undefined && m.multimodalEncoderDtype !== '') w.string(178, m.multimodalEncoderDtype)
  if (m.engineReasoningParser !== undefined && m.engineReasoningParser !== '') w.string(186, m.engineReasoningParser)
  if (m.constrainedDecodingStart !== undefined && m.constrainedDecodingStart !== '') w.string(194, m.constrainedDecodingStart)
  if (m.mmEncoderBudget !== undefined && m.mmEncoderBudget !== 0) w.int32(200, m.mmEncoderBudget)
}

export function encodeGetServerInfoResponse(m: GetServerInfoResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetServerInfoResponse(w, m)
  return w.finish()
}

export function readGetServerInfoResponse(r: Reader, end: number): GetServerInfoResponse {
  const m: GetServerInfoResponse = {
    activeRequests: 0,
    isPaused: false,
    lastReceiveTimestamp: 0,
    uptimeSeconds: 0,
    serverType: '',
    kvConnector: '',
    kvRole: '',
    kvEngineId: '',
    dataParallelSize: 0,
    shmNamespaceId: '',
    kvCacheDtype: '',
    blockSize: 0,
    attentionBackend: '',
    modelDtype: '',
    pairingProtocol: '',
    mmProcessor: '',
    mmMediaRefSchemes: '',
    mmProcessorSource: '',
    mmDeviceDoNormalize: false,
    maxNumSeqs: 0,
    mmItemLimits: '',
    multimodalEncoderDtype: '',
    engineReasoningParser: '',
    constrainedDecodingStart: '',
    mmEncoderBudget: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.activeRequests = r.uint32()
        break
      case 16:
        m.isPaused = r.bool()
        break
      case 25:
        m.lastReceiveTimestamp = r.double()
        break
      case 33:
        m.uptimeSeconds = r.double()
        break
      case 42:
        m.serverType = r.string()
        break
      case 50:
        m.kvConnector = r.string()
        break
      case 58:
        m.kvRole = r.string()
        break
      case 66:
        m.kvEngineId = r.string()
        break
      case 72:
        m.dataParallelSize = r.int32()
        break
      case 82:
        m.shmNamespaceId = r.string()
        break
      case 90:
        m.kvCacheDtype = r.string()
        break
      case 96:
        m.blockSize = r.int32()
        break
      case 106:
        m.attentionBackend = r.string()
        break
      case 114:
        m.modelDtype = r.string()
        break
      case 122:
        m.pairingProtocol = r.string()
        break
      case 130:
        m.mmProcessor = r.string()
        break
      case 138:
        m.mmMediaRefSchemes = r.string()
        break
      case 146:
        m.mmProcessorSource = r.string()
        break
      case 152:
        m.mmDeviceDoNormalize = r.bool()
        break
      case 160:
        m.maxNumSeqs = r.int32()
        break
      case 170:
        m.mmItemLimits = r.string()
        break
      case 178:
        m.multimodalEncoderDtype = r.string()
        break
      case 186:
        m.engineReasoningParser = r.string()
        break
      case 194:
        m.constrainedDecodingStart = r.string()
        break
      case 200:
        m.mmEncoderBudget = r.int32()
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
}

export interface GetLoadsResponseFields {
  readonly timestamp?: string
  readonly version?: string
  readonly dpRankCount?: number
  readonly loads?: readonly SchedulerLoadFields[]
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
  if (m.numWaitingUncachedTokens !== undefined && m.numWaitingUncachedTokens !== 0) w.int32(96, m.numWaitingUncachedTokens)
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
      case 96:
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

export interface MediaRefs {
  items: MediaRef[]
}

export interface MediaRefsFields {
  readonly items?: readonly MediaRefFields[]
}

export function writeMediaRefs(w: Writer, m: MediaRefsFields): void {
  if (m.items !== undefined && m.items.length > 0)
    for (const one of m.items) {
      const start = w.begin(10)
      writeMediaRef(w, one)
      w.end(start)
    }
}

export function encodeMediaRefs(m: MediaRefsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMediaRefs(w, m)
  return w.finish()
}

export function readMediaRefs(r: Reader, end: number): MediaRefs {
  const m: MediaRefs = {
    items: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.items, readMediaRef(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeMediaRefs(bytes: Buffer): MediaRefs {
  return readMediaRefs(new Reader(bytes), bytes.length)
}

export interface MediaRef {
  modality: number
  url: string
}

export interface MediaRefFields {
  readonly modality?: number
  readonly url?: string
}

export function writeMediaRef(w: Writer, m: MediaRefFields): void {
  if (m.modality !== undefined && m.modality !== 0) w.int32(8, m.modality)
  if (m.url !== undefined && m.url !== '') w.string(18, m.url)
}

export function encodeMediaRef(m: MediaRefFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMediaRef(w, m)
  return w.finish()
}

export function readMediaRef(r: Reader, end: number): MediaRef {
  const m: MediaRef = {
    modality: 0,
    url: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.modality = r.int32()
        break
      case 18:
        m.url = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeMediaRef(bytes: Buffer): MediaRef {
  return readMediaRef(new Reader(bytes), bytes.length)
}

export interface MediaIdentity {
  promptTokenIds: number[]
  mmInputs: MultimodalInputs | undefined
  extraMmInputs: MultimodalInputs[]
}

export interface MediaIdentityFields {
  readonly promptTokenIds?: ArrayLike<number>
  readonly mmInputs?: MultimodalInputsFields
  readonly extraMmInputs?: readonly MultimodalInputsFields[]
}

export function writeMediaIdentity(w: Writer, m: MediaIdentityFields): void {
  if (m.promptTokenIds !== undefined && m.promptTokenIds.length > 0) w.uint32s(10, m.promptTokenIds)
  if (m.mmInputs !== undefined) {
    const start = w.begin(18)
    writeMultimodalInputs(w, m.mmInputs)
    w.end(start)
  }
  if (m.extraMmInputs !== undefined && m.extraMmInputs.length > 0)
    for (const one of m.extraMmInputs) {
      const start = w.begin(26)
      writeMultimodalInputs(w, one)
      w.end(start)
    }
}

export function encodeMediaIdentity(m: MediaIdentityFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMediaIdentity(w, m)
  return w.finish()
}

export function readMediaIdentity(r: Reader, end: number): MediaIdentity {
  const m: MediaIdentity = {
    promptTokenIds: [],
    mmInputs: undefined,
    extraMmInputs: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.uint32s(m.promptTokenIds)
        break
      case 8:
        r.add(m.promptTokenIds, r.uint32())
        break
      case 18:
        m.mmInputs = readMultimodalInputs(r, r.end())
        break
      case 26:
        r.add(m.extraMmInputs, readMultimodalInputs(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeMediaIdentity(bytes: Buffer): MediaIdentity {
  return readMediaIdentity(new Reader(bytes), bytes.length)
}
