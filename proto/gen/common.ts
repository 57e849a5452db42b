/** Made by proto/generate.ts from proto/common.proto: change that instead. @hot */
import { Reader, Writer } from '../wire.ts'

export const Modality = {
  MODALITY_UNSPECIFIED: 0,
  IMAGE: 1,
  AUDIO: 2,
  VIDEO: 3,
} as const

export const KvCacheTier = {
  KV_CACHE_TIER_UNSPECIFIED: 0,
  KV_CACHE_TIER_DEVICE: 1,
  KV_CACHE_TIER_HOST: 2,
  KV_CACHE_TIER_DISK: 3,
  KV_CACHE_TIER_EXTERNAL: 4,
} as const

export const KvCacheLocality = {
  KV_CACHE_LOCALITY_UNSPECIFIED: 0,
  KV_CACHE_LOCALITY_LOCAL: 1,
  KV_CACHE_LOCALITY_REMOTE: 2,
} as const

export interface KvCacheCleared {
  ownership: string | undefined
}

export interface KvCacheClearedFields {
  readonly ownership?: string
}

export function writeKvCacheCleared(w: Writer, m: KvCacheClearedFields): void {
  if (m.ownership !== undefined) w.string(10, m.ownership)
}

export function encodeKvCacheCleared(m: KvCacheClearedFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvCacheCleared(w, m)
  return w.finish()
}

export function readKvCacheCleared(r: Reader, end: number): KvCacheCleared {
  const m: KvCacheCleared = {
    ownership: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.ownership = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvCacheCleared(bytes: Buffer): KvCacheCleared {
  return readKvCacheCleared(new Reader(bytes), bytes.length)
}

export interface GetTokenizerChunk {
  data: Buffer
  sha256: string
}

export interface GetTokenizerChunkFields {
  readonly data?: Buffer
  readonly sha256?: string
}

export function writeGetTokenizerChunk(w: Writer, m: GetTokenizerChunkFields): void {
  if (m.data !== undefined && m.data.length > 0) w.bytes(10, m.data)
  if (m.sha256 !== undefined && m.sha256 !== '') w.string(18, m.sha256)
}

export function encodeGetTokenizerChunk(m: GetTokenizerChunkFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetTokenizerChunk(w, m)
  return w.finish()
}

export function readGetTokenizerChunk(r: Reader, end: number): GetTokenizerChunk {
  const m: GetTokenizerChunk = {
    data: Buffer.alloc(0),
    sha256: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.data = r.bytes()
        break
      case 18:
        m.sha256 = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetTokenizerChunk(bytes: Buffer): GetTokenizerChunk {
  return readGetTokenizerChunk(new Reader(bytes), bytes.length)
}

export interface SubscribeKvEventsRequest {
  startSequenceNumber: bigint
  loadRecordsBeforeFirstBatch: boolean
}

export interface SubscribeKvEventsRequestFields {
  readonly startSequenceNumber?: bigint
  readonly loadRecordsBeforeFirstBatch?: boolean
}

export function writeSubscribeKvEventsRequest(w: Writer, m: SubscribeKvEventsRequestFields): void {
  if (m.startSequenceNumber !== undefined && m.startSequenceNumber !== 0n) w.int64(8, m.startSequenceNumber)
  if (m.loadRecordsBeforeFirstBatch !== undefined && m.loadRecordsBeforeFirstBatch) w.bool(16, m.loadRecordsBeforeFirstBatch)
}

export function encodeSubscribeKvEventsRequest(m: SubscribeKvEventsRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSubscribeKvEventsRequest(w, m)
  return w.finish()
}

export function readSubscribeKvEventsRequest(r: Reader, end: number): SubscribeKvEventsRequest {
  const m: SubscribeKvEventsRequest = {
    startSequenceNumber: 0n,
    loadRecordsBeforeFirstBatch: false,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.startSequenceNumber = r.uint64()
        break
      case 16:
        m.loadRecordsBeforeFirstBatch = r.bool()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeSubscribeKvEventsRequest(bytes: Buffer): SubscribeKvEventsRequest {
  return readSubscribeKvEventsRequest(new Reader(bytes), bytes.length)
}

export interface KvEventBatch {
  sequenceNumber: bigint
  timestamp: number
  events: KvCacheEvent[]
  dpRank: number | undefined
  snapshot: KvSnapshotChunk | undefined
  load: EngineLoad | undefined
}

export interface KvEventBatchFields {
  readonly sequenceNumber?: bigint
  readonly timestamp?: number
  readonly events?: readonly KvCacheEventFields[]
  readonly dpRank?: number
  readonly snapshot?: KvSnapshotChunkFields
  readonly load?: EngineLoadFields
}

export function writeKvEventBatch(w: Writer, m: KvEventBatchFields): void {
  if (m.sequenceNumber !== undefined && m.sequenceNumber !== 0n) w.int64(8, m.sequenceNumber)
  if (m.timestamp !== undefined && m.timestamp !== 0) w.double(17, m.timestamp)
  if (m.events !== undefined && m.events.length > 0)
    for (const one of m.events) {
      const start = w.begin(26)
      writeKvCacheEvent(w, one)
      w.end(start)
    }
  if (m.dpRank !== undefined) w.int32(32, m.dpRank)
  if (m.snapshot !== undefined) {
    const start = w.begin(58)
    writeKvSnapshotChunk(w, m.snapshot)
    w.end(start)
  }
  if (m.load !== undefined) {
    const start = w.begin(66)
    writeEngineLoad(w, m.load)
    w.end(start)
  }
}

export function encodeKvEventBatch(m: KvEventBatchFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvEventBatch(w, m)
  return w.finish()
}

export function readKvEventBatch(r: Reader, end: number): KvEventBatch {
  const m: KvEventBatch = {
    sequenceNumber: 0n,
    timestamp: 0,
    events: [],
    dpRank: undefined,
    snapshot: undefined,
    load: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.sequenceNumber = r.uint64()
        break
      case 17:
        m.timestamp = r.double()
        break
      case 26:
        r.add(m.events, readKvCacheEvent(r, r.end()))
        break
      case 32:
        m.dpRank = r.int32()
        break
      case 58:
        m.snapshot = readKvSnapshotChunk(r, r.end())
        break
      case 66:
        m.load = readEngineLoad(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvEventBatch(bytes: Buffer): KvEventBatch {
  return readKvEventBatch(new Reader(bytes), bytes.length)
}

export interface KvCacheEvent {
  eventId: bigint
  stored: KvBlocksStored | undefined
  removed: KvBlocksRemoved | undefined
  cleared: KvCacheCleared | undefined
}

export interface KvCacheEventFields {
  readonly eventId?: bigint
  readonly stored?: KvBlocksStoredFields
  readonly removed?: KvBlocksRemovedFields
  readonly cleared?: KvCacheClearedFields
}

export function writeKvCacheEvent(w: Writer, m: KvCacheEventFields): void {
  if (m.eventId !== undefined && m.eventId !== 0n) w.int64(8, m.eventId)
  if (m.stored !== undefined) {
    const start = w.begin(18)
    writeKvBlocksStored(w, m.stored)
    w.end(start)
  }
  if (m.removed !== undefined) {
    const start = w.begin(26)
    writeKvBlocksRemoved(w, m.removed)
    w.end(start)
  }
  if (m.cleared !== undefined) {
    const start = w.begin(34)
    writeKvCacheCleared(w, m.cleared)
    w.end(start)
  }
}

export function encodeKvCacheEvent(m: KvCacheEventFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvCacheEvent(w, m)
  return w.finish()
}

export function readKvCacheEvent(r: Reader, end: number): KvCacheEvent {
  const m: KvCacheEvent = {
    eventId: 0n,
    stored: undefined,
    removed: undefined,
    cleared: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.eventId = r.uint64()
        break
      case 18:
        m.stored = readKvBlocksStored(r, r.end())
        break
      case 26:
        m.removed = readKvBlocksRemoved(r, r.end())
        break
      case 34:
        m.cleared = readKvCacheCleared(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvCacheEvent(bytes: Buffer): KvCacheEvent {
  return readKvCacheEvent(new Reader(bytes), bytes.length)
}

export interface KvBlocksStored {
  blocks: KvBlock[]
  parentBlockHash: bigint | undefined
  tier: number | undefined
  medium: string | undefined
  groupIdx: number | undefined
  kvCacheSpecKind: string | undefined
  kvCacheSpecSlidingWindow: number | undefined
  locality: number | undefined
  ownership: string | undefined
  sessionId: string | undefined
  loraName: string | undefined
  cacheSalt: string | undefined
}

export interface KvBlocksStoredFields {
  readonly blocks?: readonly KvBlockFields[]
  readonly parentBlockHash?: bigint
  readonly tier?: number
  readonly medium?: string
  readonly groupIdx?: number
  readonly kvCacheSpecKind?: string
  readonly kvCacheSpecSlidingWindow?: number
  readonly locality?: number
  readonly ownership?: string
  readonly sessionId?: string
  readonly loraName?: string
  readonly cacheSalt?: string
}

export function writeKvBlocksStored(w: Writer, m: KvBlocksStoredFields): void {
  if (m.blocks !== undefined && m.blocks.length > 0)
    for (const one of m.blocks) {
      const start = w.begin(10)
      writeKvBlock(w, one)
      w.end(start)
    }
  if (m.parentBlockHash !== undefined) w.int64(16, m.parentBlockHash)
  if (m.tier !== undefined) w.int32(24, m.tier)
  if (m.medium !== undefined) w.string(34, m.medium)
  if (m.groupIdx !== undefined) w.uint32(40, m.groupIdx)
  if (m.kvCacheSpecKind !== undefined) w.string(50, m.kvCacheSpecKind)
  if (m.kvCacheSpecSlidingWindow !== undefined) w.uint32(56, m.kvCacheSpecSlidingWindow)
  if (m.locality !== undefined) w.int32(64, m.locality)
  if (m.ownership !== undefined) w.string(74, m.ownership)
  if (m.sessionId !== undefined) w.string(82, m.sessionId)
  if (m.loraName !== undefined) w.string(90, m.loraName)
  if (m.cacheSalt !== undefined) w.string(98, m.cacheSalt)
}

export function encodeKvBlocksStored(m: KvBlocksStoredFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvBlocksStored(w, m)
  return w.finish()
}

export function readKvBlocksStored(r: Reader, end: number): KvBlocksStored {
  const m: KvBlocksStored = {
    blocks: [],
    parentBlockHash: undefined,
    tier: undefined,
    medium: undefined,
    groupIdx: undefined,
    kvCacheSpecKind: undefined,
    kvCacheSpecSlidingWindow: undefined,
    locality: undefined,
    ownership: undefined,
    sessionId: undefined,
    loraName: undefined,
    cacheSalt: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.blocks, readKvBlock(r, r.end()))
        break
      case 16:
        m.parentBlockHash = r.int64()
        break
      case 24:
        m.tier = r.int32()
        break
      case 34:
        m.medium = r.string()
        break
      case 40:
        m.groupIdx = r.uint32()
        break
      case 50:
        m.kvCacheSpecKind = r.string()
        break
      case 56:
        m.kvCacheSpecSlidingWindow = r.uint32()
        break
      case 64:
        m.locality = r.int32()
        break
      case 74:
        m.ownership = r.string()
        break
      case 82:
        m.sessionId = r.string()
        break
      case 90:
        m.loraName = r.string()
        break
      case 98:
        m.cacheSalt = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvBlocksStored(bytes: Buffer): KvBlocksStored {
  return readKvBlocksStored(new Reader(bytes), bytes.length)
}

export interface KvBlock {
  blockHash: bigint
  tokenIds: number[]
  blockSize: number
  loraId: bigint | undefined
  cacheLevel: number | undefined
  extraKeys: KvBlockExtraKey[]
}

export interface KvBlockFields {
  readonly blockHash?: bigint
  readonly tokenIds?: ArrayLike<number>
  readonly blockSize?: number
  readonly loraId?: bigint
  readonly cacheLevel?: number
  readonly extraKeys?: readonly KvBlockExtraKeyFields[]
}

export function writeKvBlock(w: Writer, m: KvBlockFields): void {
  if (m.blockHash !== undefined && m.blockHash !== 0n) w.int64(8, m.blockHash)
  if (m.tokenIds !== undefined && m.tokenIds.length > 0) w.uint32s(18, m.tokenIds)
  if (m.blockSize !== undefined && m.blockSize !== 0) w.int32(24, m.blockSize)
  if (m.loraId !== undefined) w.int64(32, m.loraId)
  if (m.cacheLevel !== undefined) w.int32(40, m.cacheLevel)
  if (m.extraKeys !== undefined && m.extraKeys.length > 0)
    for (const one of m.extraKeys) {
      const start = w.begin(50)
      writeKvBlockExtraKey(w, one)
      w.end(start)
    }
}

export function encodeKvBlock(m: KvBlockFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvBlock(w, m)
  return w.finish()
}

export function readKvBlock(r: Reader, end: number): KvBlock {
  const m: KvBlock = {
    blockHash: 0n,
    tokenIds: [],
    blockSize: 0,
    loraId: undefined,
    cacheLevel: undefined,
    extraKeys: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.blockHash = r.int64()
        break
      case 18:
        r.uint32s(m.tokenIds)
        break
      case 16:
        r.add(m.tokenIds, r.uint32())
        break
      case 24:
        m.blockSize = r.int32()
        break
      case 32:
        m.loraId = r.int64()
        break
      case 40:
        m.cacheLevel = r.int32()
        break
      case 50:
        r.add(m.extraKeys, readKvBlockExtraKey(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvBlock(bytes: Buffer): KvBlock {
  return readKvBlock(new Reader(bytes), bytes.length)
}

export interface KvBlocksRemoved {
  blockHashes: bigint[]
  cacheLevel: number | undefined
  tier: number | undefined
  medium: string | undefined
  groupIdx: number | undefined
  locality: number | undefined
  ownership: string | undefined
}

export interface KvBlocksRemovedFields {
  readonly blockHashes?: readonly bigint[]
  readonly cacheLevel?: number
  readonly tier?: number
  readonly medium?: string
  readonly groupIdx?: number
  readonly locality?: number
  readonly ownership?: string
}

export function writeKvBlocksRemoved(w: Writer, m: KvBlocksRemovedFields): void {
  if (m.blockHashes !== undefined && m.blockHashes.length > 0) w.int64s(10, m.blockHashes)
  if (m.cacheLevel !== undefined) w.int32(16, m.cacheLevel)
  if (m.tier !== undefined) w.int32(24, m.tier)
  if (m.medium !== undefined) w.string(34, m.medium)
  if (m.groupIdx !== undefined) w.uint32(40, m.groupIdx)
  if (m.locality !== undefined) w.int32(48, m.locality)
  if (m.ownership !== undefined) w.string(58, m.ownership)
}

export function encodeKvBlocksRemoved(m: KvBlocksRemovedFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvBlocksRemoved(w, m)
  return w.finish()
}

export function readKvBlocksRemoved(r: Reader, end: number): KvBlocksRemoved {
  const m: KvBlocksRemoved = {
    blockHashes: [],
    cacheLevel: undefined,
    tier: undefined,
    medium: undefined,
    groupIdx: undefined,
    locality: undefined,
    ownership: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.int64s(m.blockHashes)
        break
      case 8:
        r.add(m.blockHashes, r.int64())
        break
      case 16:
        m.cacheLevel = r.int32()
        break
      case 24:
        m.tier = r.int32()
        break
      case 34:
        m.medium = r.string()
        break
      case 40:
        m.groupIdx = r.uint32()
        break
      case 48:
        m.locality = r.int32()
        break
      case 58:
        m.ownership = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvBlocksRemoved(bytes: Buffer): KvBlocksRemoved {
  return readKvBlocksRemoved(new Reader(bytes), bytes.length)
}

export interface FlushCacheRequest {
  timeoutS: number
}

export interface FlushCacheRequestFields {
  readonly timeoutS?: number
}

export function writeFlushCacheRequest(w: Writer, m: FlushCacheRequestFields): void {
  if (m.timeoutS !== undefined && m.timeoutS !== 0) w.float(13, m.timeoutS)
}

export function encodeFlushCacheRequest(m: FlushCacheRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeFlushCacheRequest(w, m)
  return w.finish()
}

export function readFlushCacheRequest(r: Reader, end: number): FlushCacheRequest {
  const m: FlushCacheRequest = {
    timeoutS: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 13:
        m.timeoutS = r.float()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeFlushCacheRequest(bytes: Buffer): FlushCacheRequest {
  return readFlushCacheRequest(new Reader(bytes), bytes.length)
}

export interface FlushCacheResponse {
  success: boolean
  message: string
}

export interface FlushCacheResponseFields {
  readonly success?: boolean
  readonly message?: string
}

export function writeFlushCacheResponse(w: Writer, m: FlushCacheResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
}

export function encodeFlushCacheResponse(m: FlushCacheResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeFlushCacheResponse(w, m)
  return w.finish()
}

export function readFlushCacheResponse(r: Reader, end: number): FlushCacheResponse {
  const m: FlushCacheResponse = {
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

export function decodeFlushCacheResponse(bytes: Buffer): FlushCacheResponse {
  return readFlushCacheResponse(new Reader(bytes), bytes.length)
}

export interface StartProfileRequest {
  outputDir: string | undefined
  startStep: number | undefined
  numSteps: number | undefined
  activities: string[]
  withStack: boolean | undefined
  recordShapes: boolean | undefined
  profileByStage: boolean
}

export interface StartProfileRequestFields {
  readonly outputDir?: string
  readonly startStep?: number
  readonly numSteps?: number
  readonly activities?: readonly string[]
  readonly withStack?: boolean
  readonly recordShapes?: boolean
  readonly profileByStage?: boolean
}

export function writeStartProfileRequest(w: Writer, m: StartProfileRequestFields): void {
  if (m.outputDir !== undefined) w.string(10, m.outputDir)
  if (m.startStep !== undefined) w.int32(16, m.startStep)
  if (m.numSteps !== undefined) w.int32(24, m.numSteps)
  if (m.activities !== undefined && m.activities.length > 0)
    for (const one of m.activities) {
      w.string(34, one)
    }
  if (m.withStack !== undefined) w.bool(40, m.withStack)
  if (m.recordShapes !== undefined) w.bool(48, m.recordShapes)
  if (m.profileByStage !== undefined && m.profileByStage) w.bool(56, m.profileByStage)
}

export function encodeStartProfileRequest(m: StartProfileRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeStartProfileRequest(w, m)
  return w.finish()
}

export function readStartProfileRequest(r: Reader, end: number): StartProfileRequest {
  const m: StartProfileRequest = {
    outputDir: undefined,
    startStep: undefined,
    numSteps: undefined,
    activities: [],
    withStack: undefined,
    recordShapes: undefined,
    profileByStage: false,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.outputDir = r.string()
        break
      case 16:
        m.startStep = r.int32()
        break
      case 24:
        m.numSteps = r.int32()
        break
      case 34:
        r.add(m.activities, r.string())
        break
      case 40:
        m.withStack = r.bool()
        break
      case 48:
        m.recordShapes = r.bool()
        break
      case 56:
        m.profileByStage = r.bool()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeStartProfileRequest(bytes: Buffer): StartProfileRequest {
  return readStartProfileRequest(new Reader(bytes), bytes.length)
}

export interface ProfileResponse {
  success: boolean
  message: string
}

export interface ProfileResponseFields {
  readonly success?: boolean
  readonly message?: string
}

export function writeProfileResponse(w: Writer, m: ProfileResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
}

export function encodeProfileResponse(m: ProfileResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeProfileResponse(w, m)
  return w.finish()
}

export function readProfileResponse(r: Reader, end: number): ProfileResponse {
  const m: ProfileResponse = {
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

export function decodeProfileResponse(bytes: Buffer): ProfileResponse {
  return readProfileResponse(new Reader(bytes), bytes.length)
}

export interface ShmHandle {
  name: string
  offset: bigint
  nbytes: bigint
  ownerId: string
}

export interface ShmHandleFields {
  readonly name?: string
  readonly offset?: bigint
  readonly nbytes?: bigint
  readonly ownerId?: string
}

export function writeShmHandle(w: Writer, m: ShmHandleFields): void {
  if (m.name !== undefined && m.name !== '') w.string(10, m.name)
  if (m.offset !== undefined && m.offset !== 0n) w.int64(16, m.offset)
  if (m.nbytes !== undefined && m.nbytes !== 0n) w.int64(24, m.nbytes)
  if (m.ownerId !== undefined && m.ownerId !== '') w.string(34, m.ownerId)
}

export function encodeShmHandle(m: ShmHandleFields, size?: number): Buffer {
  const w = new Writer(size)
  writeShmHandle(w, m)
  return w.finish()
}

export function readShmHandle(r: Reader, end: number): ShmHandle {
  const m: ShmHandle = {
    name: '',
    offset: 0n,
    nbytes: 0n,
    ownerId: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.name = r.string()
        break
      case 16:
        m.offset = r.uint64()
        break
      case 24:
        m.nbytes = r.uint64()
        break
      case 34:
        m.ownerId = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeShmHandle(bytes: Buffer): ShmHandle {
  return readShmHandle(new Reader(bytes), bytes.length)
}

export interface RemoteTensorHandle {
  transport: string
  descriptor: Buffer
  nbytes: bigint
}

export interface RemoteTensorHandleFields {
  readonly transport?: string
  readonly descriptor?: Buffer
  readonly nbytes?: bigint
}

export function writeRemoteTensorHandle(w: Writer, m: RemoteTensorHandleFields): void {
  if (m.transport !== undefined && m.transport !== '') w.string(10, m.transport)
  if (m.descriptor !== undefined && m.descriptor.length > 0) w.bytes(18, m.descriptor)
  if (m.nbytes !== undefined && m.nbytes !== 0n) w.int64(24, m.nbytes)
}

export function encodeRemoteTensorHandle(m: RemoteTensorHandleFields, size?: number): Buffer {
  const w = new Writer(size)
  writeRemoteTensorHandle(w, m)
  return w.finish()
}

export function readRemoteTensorHandle(r: Reader, end: number): RemoteTensorHandle {
  const m: RemoteTensorHandle = {
    transport: '',
    descriptor: Buffer.alloc(0),
    nbytes: 0n,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.transport = r.string()
        break
      case 18:
        m.descriptor = r.bytes()
        break
      case 24:
        m.nbytes = r.uint64()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeRemoteTensorHandle(bytes: Buffer): RemoteTensorHandle {
  return readRemoteTensorHandle(new Reader(bytes), bytes.length)
}

export interface KvSnapshotChunk {
  index: number
  count: number
  blocks: bigint
  unknownBefore: bigint
}

export interface KvSnapshotChunkFields {
  readonly index?: number
  readonly count?: number
  readonly blocks?: bigint
  readonly unknownBefore?: bigint
}

export function writeKvSnapshotChunk(w: Writer, m: KvSnapshotChunkFields): void {
  if (m.index !== undefined && m.index !== 0) w.uint32(8, m.index)
  if (m.count !== undefined && m.count !== 0) w.uint32(16, m.count)
  if (m.blocks !== undefined && m.blocks !== 0n) w.int64(24, m.blocks)
  if (m.unknownBefore !== undefined && m.unknownBefore !== 0n) w.int64(32, m.unknownBefore)
}

export function encodeKvSnapshotChunk(m: KvSnapshotChunkFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvSnapshotChunk(w, m)
  return w.finish()
}

export function readKvSnapshotChunk(r: Reader, end: number): KvSnapshotChunk {
  const m: KvSnapshotChunk = {
    index: 0,
    count: 0,
    blocks: 0n,
    unknownBefore: 0n,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.index = r.uint32()
        break
      case 16:
        m.count = r.uint32()
        break
      case 24:
        m.blocks = r.uint64()
        break
      case 32:
        m.unknownBefore = r.uint64()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvSnapshotChunk(bytes: Buffer): KvSnapshotChunk {
  return readKvSnapshotChunk(new Reader(bytes), bytes.length)
}

export interface KvBlockExtraKey {
  text: string | undefined
  blob: Buffer | undefined
  number: bigint | undefined
  multimodal: KvMultimodalKey | undefined
}

export interface KvBlockExtraKeyFields {
  readonly text?: string
  readonly blob?: Buffer
  readonly number?: bigint
  readonly multimodal?: KvMultimodalKeyFields
}

export function writeKvBlockExtraKey(w: Writer, m: KvBlockExtraKeyFields): void {
  if (m.text !== undefined) w.string(10, m.text)
  if (m.blob !== undefined) w.bytes(18, m.blob)
  if (m.number !== undefined) w.int64(24, m.number)
  if (m.multimodal !== undefined) {
    const start = w.begin(34)
    writeKvMultimodalKey(w, m.multimodal)
    w.end(start)
  }
}

export function encodeKvBlockExtraKey(m: KvBlockExtraKeyFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvBlockExtraKey(w, m)
  return w.finish()
}

export function readKvBlockExtraKey(r: Reader, end: number): KvBlockExtraKey {
  const m: KvBlockExtraKey = {
    text: undefined,
    blob: undefined,
    number: undefined,
    multimodal: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.text = r.string()
        break
      case 18:
        m.blob = r.bytes()
        break
      case 24:
        m.number = r.int64()
        break
      case 34:
        m.multimodal = readKvMultimodalKey(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvBlockExtraKey(bytes: Buffer): KvBlockExtraKey {
  return readKvBlockExtraKey(new Reader(bytes), bytes.length)
}

export interface KvMultimodalKey {
  identifier: string
  offset: bigint
}

export interface KvMultimodalKeyFields {
  readonly identifier?: string
  readonly offset?: bigint
}

export function writeKvMultimodalKey(w: Writer, m: KvMultimodalKeyFields): void {
  if (m.identifier !== undefined && m.identifier !== '') w.string(10, m.identifier)
  if (m.offset !== undefined && m.offset !== 0n) w.int64(16, m.offset)
}

export function encodeKvMultimodalKey(m: KvMultimodalKeyFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvMultimodalKey(w, m)
  return w.finish()
}

export function readKvMultimodalKey(r: Reader, end: number): KvMultimodalKey {
  const m: KvMultimodalKey = {
    identifier: '',
    offset: 0n,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.identifier = r.string()
        break
      case 16:
        m.offset = r.int64()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvMultimodalKey(bytes: Buffer): KvMultimodalKey {
  return readKvMultimodalKey(new Reader(bytes), bytes.length)
}

export interface EngineLoad {
  runningRequests: number
  waitingRequests: number
  waitingUncachedTokens: number | undefined
  tokenUsage: number
  genThroughput: number
  maxRunningRequests: number
  ageMs: number
  sample: bigint
  loadOnly: boolean
  cacheHitRate: number | undefined
  numUsedTokens: number | undefined
  maxTotalNumTokens: number | undefined
  memory: EngineMemory | undefined
  queues: EngineQueues | undefined
  speculative: EngineSpeculative | undefined
  lora: EngineLora | undefined
  disaggregation: EngineDisaggregation | undefined
  activeTokenUsage: number | undefined
  engineSilenceMs: number | undefined
  engineReportsSteps: boolean | undefined
  prefillPendingTokens: number | undefined
}

export interface EngineLoadFields {
  readonly runningRequests?: number
  readonly waitingRequests?: number
  readonly waitingUncachedTokens?: number
  readonly tokenUsage?: number
  readonly genThroughput?: number
  readonly maxRunningRequests?: number
  readonly ageMs?: number
  readonly sample?: bigint
  readonly loadOnly?: boolean
  readonly cacheHitRate?: number
  readonly numUsedTokens?: number
  readonly maxTotalNumTokens?: number
  readonly memory?: EngineMemoryFields
  readonly queues?: EngineQueuesFields
  readonly speculative?: EngineSpeculativeFields
  readonly lora?: EngineLoraFields
  readonly disaggregation?: EngineDisaggregationFields
  readonly activeTokenUsage?: number
  readonly engineSilenceMs?: number
  readonly engineReportsSteps?: boolean
  readonly prefillPendingTokens?: number
}

export function writeEngineLoad(w: Writer, m: EngineLoadFields): void {
  if (m.runningRequests !== undefined && m.runningRequests !== 0) w.uint32(8, m.runningRequests)
  if (m.waitingRequests !== undefined && m.waitingRequests !== 0) w.uint32(16, m.waitingRequests)
  if (m.waitingUncachedTokens !== undefined) w.uint32(24, m.waitingUncachedTokens)
  if (m.tokenUsage !== undefined && m.tokenUsage !== 0) w.double(33, m.tokenUsage)
  if (m.genThroughput !== undefined && m.genThroughput !== 0) w.double(41, m.genThroughput)
  if (m.maxRunningRequests !== undefined && m.maxRunningRequests !== 0) w.uint32(48, m.maxRunningRequests)
  if (m.ageMs !== undefined && m.ageMs !== 0) w.uint32(56, m.ageMs)
  if (m.sample !== undefined && m.sample !== 0n) w.int64(64, m.sample)
  if (m.loadOnly !== undefined && m.loadOnly) w.bool(72, m.loadOnly)
  if (m.cacheHitRate !== undefined) w.double(81, m.cacheHitRate)
  if (m.numUsedTokens !== undefined) w.int32(88, m.numUsedTokens)
  if (m.maxTotalNumTokens !== undefined) w.int32(96, m.maxTotalNumTokens)
  if (m.memory !== undefined) {
    const start = w.begin(106)
    writeEngineMemory(w, m.memory)
    w.end(start)
  }
  if (m.queues !== undefined) {
    const start = w.begin(114)
    writeEngineQueues(w, m.queues)
    w.end(start)
  }
  if (m.speculative !== undefined) {
    const start = w.begin(122)
    writeEngineSpeculative(w, m.speculative)
    w.end(start)
  }
  if (m.lora !== undefined) {
    const start = w.begin(130)
    writeEngineLora(w, m.lora)
    w.end(start)
  }
  if (m.disaggregation !== undefined) {
    const start = w.begin(138)
    writeEngineDisaggregation(w, m.disaggregation)
    w.end(start)
  }
  if (m.activeTokenUsage !== undefined) w.double(145, m.activeTokenUsage)
  if (m.engineSilenceMs !== undefined) w.uint32(152, m.engineSilenceMs)
  if (m.engineReportsSteps !== undefined) w.bool(160, m.engineReportsSteps)
  if (m.prefillPendingTokens !== undefined) w.uint32(168, m.prefillPendingTokens)
}

export function encodeEngineLoad(m: EngineLoadFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEngineLoad(w, m)
  return w.finish()
}

export function readEngineLoad(r: Reader, end: number): EngineLoad {
  const m: EngineLoad = {
    runningRequests: 0,
    waitingRequests: 0,
    waitingUncachedTokens: undefined,
    tokenUsage: 0,
    genThroughput: 0,
    maxRunningRequests: 0,
    ageMs: 0,
    sample: 0n,
    loadOnly: false,
    cacheHitRate: undefined,
    numUsedTokens: undefined,
    maxTotalNumTokens: undefined,
    memory: undefined,
    queues: undefined,
    speculative: undefined,
    lora: undefined,
    disaggregation: undefined,
    activeTokenUsage: undefined,
    engineSilenceMs: undefined,
    engineReportsSteps: undefined,
    prefillPendingTokens: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.runningRequests = r.uint32()
        break
      case 16:
        m.waitingRequests = r.uint32()
        break
      case 24:
        m.waitingUncachedTokens = r.uint32()
        break
      case 33:
        m.tokenUsage = r.double()
        break
      case 41:
        m.genThroughput = r.double()
        break
      case 48:
        m.maxRunningRequests = r.uint32()
        break
      case 56:
        m.ageMs = r.uint32()
        break
      case 64:
        m.sample = r.uint64()
        break
      case 72:
        m.loadOnly = r.bool()
        break
      case 81:
        m.cacheHitRate = r.double()
        break
      case 88:
        m.numUsedTokens = r.int32()
        break
      case 96:
        m.maxTotalNumTokens = r.int32()
        break
      case 106:
        m.memory = readEngineMemory(r, r.end())
        break
      case 114:
        m.queues = readEngineQueues(r, r.end())
        break
      case 122:
        m.speculative = readEngineSpeculative(r, r.end())
        break
      case 130:
        m.lora = readEngineLora(r, r.end())
        break
      case 138:
        m.disaggregation = readEngineDisaggregation(r, r.end())
        break
      case 145:
        m.activeTokenUsage = r.double()
        break
      case 152:
        m.engineSilenceMs = r.uint32()
        break
      case 160:
        m.engineReportsSteps = r.bool()
        break
      case 168:
        m.prefillPendingTokens = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeEngineLoad(bytes: Buffer): EngineLoad {
  return readEngineLoad(new Reader(bytes), bytes.length)
}

export interface EngineMemory {
  weightGb: number
  kvCacheGb: number
  graphGb: number
  tokenCapacity: number
}

export interface EngineMemoryFields {
  readonly weightGb?: number
  readonly kvCacheGb?: number
  readonly graphGb?: number
  readonly tokenCapacity?: number
}

export function writeEngineMemory(w: Writer, m: EngineMemoryFields): void {
  if (m.weightGb !== undefined && m.weightGb !== 0) w.double(9, m.weightGb)
  if (m.kvCacheGb !== undefined && m.kvCacheGb !== 0) w.double(17, m.kvCacheGb)
  if (m.graphGb !== undefined && m.graphGb !== 0) w.double(25, m.graphGb)
  if (m.tokenCapacity !== undefined && m.tokenCapacity !== 0) w.int32(32, m.tokenCapacity)
}

export function encodeEngineMemory(m: EngineMemoryFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEngineMemory(w, m)
  return w.finish()
}

export function readEngineMemory(r: Reader, end: number): EngineMemory {
  const m: EngineMemory = {
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

export function decodeEngineMemory(bytes: Buffer): EngineMemory {
  return readEngineMemory(new Reader(bytes), bytes.length)
}

export interface EngineQueues {
  waiting: number
  grammar: number
  paused: number
  retracted: number
}

export interface EngineQueuesFields {
  readonly waiting?: number
  readonly grammar?: number
  readonly paused?: number
  readonly retracted?: number
}

export function writeEngineQueues(w: Writer, m: EngineQueuesFields): void {
  if (m.waiting !== undefined && m.waiting !== 0) w.int32(8, m.waiting)
  if (m.grammar !== undefined && m.grammar !== 0) w.int32(16, m.grammar)
  if (m.paused !== undefined && m.paused !== 0) w.int32(24, m.paused)
  if (m.retracted !== undefined && m.retracted !== 0) w.int32(32, m.retracted)
}

export function encodeEngineQueues(m: EngineQueuesFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEngineQueues(w, m)
  return w.finish()
}

export function readEngineQueues(r: Reader, end: number): EngineQueues {
  const m: EngineQueues = {
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

export function decodeEngineQueues(bytes: Buffer): EngineQueues {
  return readEngineQueues(new Reader(bytes), bytes.length)
}

export interface EngineSpeculative {
  acceptLength: number
  acceptRate: number
}

export interface EngineSpeculativeFields {
  readonly acceptLength?: number
  readonly acceptRate?: number
}

export function writeEngineSpeculative(w: Writer, m: EngineSpeculativeFields): void {
  if (m.acceptLength !== undefined && m.acceptLength !== 0) w.double(9, m.acceptLength)
  if (m.acceptRate !== undefined && m.acceptRate !== 0) w.double(17, m.acceptRate)
}

export function encodeEngineSpeculative(m: EngineSpeculativeFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEngineSpeculative(w, m)
  return w.finish()
}

export function readEngineSpeculative(r: Reader, end: number): EngineSpeculative {
  const m: EngineSpeculative = {
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

export function decodeEngineSpeculative(bytes: Buffer): EngineSpeculative {
  return readEngineSpeculative(new Reader(bytes), bytes.length)
}

export interface EngineLora {
  slotsUsed: number
  slotsTotal: number
  utilization: number
}

export interface EngineLoraFields {
  readonly slotsUsed?: number
  readonly slotsTotal?: number
  readonly utilization?: number
}

export function writeEngineLora(w: Writer, m: EngineLoraFields): void {
  if (m.slotsUsed !== undefined && m.slotsUsed !== 0) w.int32(8, m.slotsUsed)
  if (m.slotsTotal !== undefined && m.slotsTotal !== 0) w.int32(16, m.slotsTotal)
  if (m.utilization !== undefined && m.utilization !== 0) w.double(25, m.utilization)
}

export function encodeEngineLora(m: EngineLoraFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEngineLora(w, m)
  return w.finish()
}

export function readEngineLora(r: Reader, end: number): EngineLora {
  const m: EngineLora = {
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

export function decodeEngineLora(bytes: Buffer): EngineLora {
  return readEngineLora(new Reader(bytes), bytes.length)
}

export interface EngineDisaggregation {
  mode: string
  prefillPreallocQueueReqs: number
  prefillInflightQueueReqs: number
  decodePreallocQueueReqs: number
  decodeTransferQueueReqs: number
  decodeRetractedQueueReqs: number
  kvTransferSpeedGbS: number
  kvTransferLatencyMs: number
}

export interface EngineDisaggregationFields {
  readonly mode?: string
  readonly prefillPreallocQueueReqs?: number
  readonly prefillInflightQueueReqs?: number
  readonly decodePreallocQueueReqs?: number
  readonly decodeTransferQueueReqs?: number
  readonly decodeRetractedQueueReqs?: number
  readonly kvTransferSpeedGbS?: number
  readonly kvTransferLatencyMs?: number
}

export function writeEngineDisaggregation(w: Writer, m: EngineDisaggregationFields): void {
  if (m.mode !== undefined && m.mode !== '') w.string(10, m.mode)
  if (m.prefillPreallocQueueReqs !== undefined && m.prefillPreallocQueueReqs !== 0) w.int32(16, m.prefillPreallocQueueReqs)
  if (m.prefillInflightQueueReqs !== undefined && m.prefillInflightQueueReqs !== 0) w.int32(24, m.prefillInflightQueueReqs)
  if (m.decodePreallocQueueReqs !== undefined && m.decodePreallocQueueReqs !== 0) w.int32(32, m.decodePreallocQueueReqs)
  if (m.decodeTransferQueueReqs !== undefined && m.decodeTransferQueueReqs !== 0) w.int32(40, m.decodeTransferQueueReqs)
  if (m.decodeRetractedQueueReqs !== undefined && m.decodeRetractedQueueReqs !== 0) w.int32(48, m.decodeRetractedQueueReqs)
  if (m.kvTransferSpeedGbS !== undefined && m.kvTransferSpeedGbS !== 0) w.double(57, m.kvTransferSpeedGbS)
  if (m.kvTransferLatencyMs !== undefined && m.kvTransferLatencyMs !== 0) w.double(65, m.kvTransferLatencyMs)
}

export function encodeEngineDisaggregation(m: EngineDisaggregationFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEngineDisaggregation(w, m)
  return w.finish()
}

export function readEngineDisaggregation(r: Reader, end: number): EngineDisaggregation {
  const m: EngineDisaggregation = {
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

export function decodeEngineDisaggregation(bytes: Buffer): EngineDisaggregation {
  return readEngineDisaggregation(new Reader(bytes), bytes.length)
}
