/**
 * The operations that Valkey runs as one step, in Lua. KEYS[1] is the prefix of the mesh, with a hash tag, so that a cluster keeps its keys together; times are of the server's clock.
 *
 * ```
 * revision        counter of changes
 * epochs          history of the data: ids of epochs with their last revisions, as in `a:50 b:99 c`; the last one goes on
 * incarnations    hash: name → count
 * nodes           hash: name → incarnation, last renewal (ms) and JSON, separated by spaces
 * records:<kind>  hash: id → revision and JSON, separated by a space
 * kinds           set of the kinds
 * log             stream of kind, id, revision and epoch of each change; without a kind: all records were replaced
 * channel:<name>  stream of messages
 * limit:<bucket>  hash: number of the window, and tokens granted in it
 * count:<counter> number
 * writer:<id>     last sequence number of a writer of counters
 * blob:<sha256>   bytes
 * ```
 */
import { createHash } from 'node:crypto'
import type { ChainableCommander } from 'ioredis'
import type { Connection } from './connections.ts'

/** Sends the commands together, in a cluster to the server of their keys. @throws Error of the first that failed */
export async function repliesOf(pipeline: ChainableCommander): Promise<readonly unknown[]> {
  const replies = (await pipeline.exec()) ?? []
  for (const [error] of replies) if (error !== null) throw error
  return replies.map(([, reply]) => reply)
}

/** A Lua script that the server caches. */
export class Script {
  readonly #lua: string
  readonly #digest: string

  constructor(lua: string) {
    this.#lua = lua
    this.#digest = createHash('sha1').update(lua).digest('hex')
  }

  /** @param more adds commands that run on the same connection behind the script. @returns replies of all */
  async run(
    connection: Connection,
    prefix: string,
    args: readonly (string | number)[],
    more: (pipeline: ChainableCommander) => unknown = () => undefined,
  ): Promise<readonly unknown[]> {
    const cached = connection.pipeline().evalsha(this.#digest, 1, prefix, ...args)
    more(cached)
    try {
      return await repliesOf(cached)
    } catch (error) {
      // A server that was restarted has an empty cache.
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      const whole = connection.pipeline().eval(this.#lua, 1, prefix, ...args)
      more(whole)
      return repliesOf(whole)
    }
  }
}

const NOW = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`

/** Reads `incarnation`, `seen` and `about` of a row of `nodes`. */
const READ_NODE = `
local function node(row)
  local a, b, c = string.match(row, '^(%d+) (%d+) (.*)$')
  return tonumber(a), tonumber(b), c
end
`

/** Epochs that are kept; a gateway that has been away for longer finds its own missing. */
const MAX_EPOCHS = 64
/** Far more than they take. */
const MAX_EPOCHS_BYTES = 32_768
/** Of a gateway. */
const MAX_NAME_BYTES = 128

const STATE = `
local function state()
  return { tonumber(redis.call('GET', P .. 'revision') or '0'), redis.call('GETRANGE', P .. 'epochs', 0, ${MAX_EPOCHS_BYTES - 1}) }
end
`

/** As a last revision: after all that was written in the epoch. */
const ANY_REVISION = Number.MAX_SAFE_INTEGER

/**
 * Id of the running epoch. Begins a new one if this primary is not the one that wrote last: a restarted or promoted server has
 * another replication id.
 */
const EPOCH = `
local function epoch(fresh)
  local all = redis.call('GET', P .. 'epochs') or ''
  local server = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  local last = string.match(all, '%S+$')
  if last and string.sub(last, 1, #server) == server then return last end
  local id = server .. '.' .. fresh
  if last then all = all .. ':' .. (redis.call('GET', P .. 'revision') or '0') .. ' ' end
  while select(2, string.gsub(all, ' ', '')) >= ${MAX_EPOCHS} do all = string.match(all, '^%S+ (.*)$') end
  redis.call('SET', P .. 'epochs', all .. id)
  return id
end
`

/** ARGV: name, about, goneMs, new epoch. Returns incarnation (0: held by another), revision, epochs. */
export const TAKE_NAME = new Script(`
local P, name, about, gone, fresh = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
${NOW}${READ_NODE}${STATE}${EPOCH}
local row = redis.call('HGET', P .. 'nodes', name)
if row then
  local _, seen = node(row)
  if seen and now - seen < gone then return { 0, 0, '' } end
end
if not redis.call('GET', P .. 'epochs') then epoch(fresh) end
local incarnation = redis.call('HINCRBY', P .. 'incarnations', name, 1)
redis.call('HSET', P .. 'nodes', name, incarnation .. ' ' .. string.format('%d', now) .. ' ' .. about)
local s = state()
return { incarnation, s[1], s[2] }
`)

/**
 * ARGV: name, incarnation, about, goneMs, forgetMs, most nodes, most bytes of an about. Returns is held, revision, epochs, then
 * name, incarnation, age, about of each node; an about with more bytes is empty. Rows of another form are removed.
 */
export const RENEW = new Script(`
local P, name, mine, about, gone, forget = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local most, bytes = tonumber(ARGV[6]), tonumber(ARGV[7])
${NOW}${READ_NODE}${STATE}
local held = 0
local row = redis.call('HGET', P .. 'nodes', name)
if row then
  local incarnation, seen = node(row)
  if incarnation == mine and now - seen < gone then
    held = 1
    redis.call('HSET', P .. 'nodes', name, mine .. ' ' .. string.format('%d', now) .. ' ' .. about)
  end
end
local s = state()
local out = { held, s[1], s[2] }
local rows = redis.call('HGETALL', P .. 'nodes')
for i = 1, #rows, 2 do
  local incarnation, seen, text = node(rows[i + 1])
  if not seen or now - seen > forget or #rows[i] > ${MAX_NAME_BYTES} then
    redis.call('HDEL', P .. 'nodes', rows[i])
  elseif most > 0 then
    most = most - 1
    table.insert(out, rows[i])
    table.insert(out, incarnation)
    table.insert(out, math.max(0, now - seen))
    table.insert(out, #text > bytes and '' or text)
  end
end
return out
`)

/** ARGV: name, incarnation. */
export const LEAVE = new Script(`
local P, name, mine = KEYS[1], ARGV[1], tonumber(ARGV[2])
${READ_NODE}
local row = redis.call('HGET', P .. 'nodes', name)
if row and node(row) == mine then redis.call('HDEL', P .. 'nodes', name) end
return 1
`)

/**
 * ARGV: most records, most bytes, then channels. Returns revision, epochs, last id of the log and of each channel, then kind
 * and the flat hash of each kind; 0 alone if there is more.
 */
export const READ_ALL = new Script(`
local P, records, bytes = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
${STATE}
local s = state()
local function last(stream)
  local entries = redis.call('XREVRANGE', P .. stream, '+', '-', 'COUNT', 1)
  return entries[1] and entries[1][1] or '0-0'
end
local out = { s[1], s[2], last('log') }
for i = 3, #ARGV do table.insert(out, last('channel:' .. ARGV[i])) end
for _, kind in ipairs(redis.call('SMEMBERS', P .. 'kinds')) do
  records = records - redis.call('HLEN', P .. 'records:' .. kind)
  if records < 0 then return { 0 } end
  local rows = redis.call('HGETALL', P .. 'records:' .. kind)
  for _, text in ipairs(rows) do bytes = bytes - #text end
  if bytes < 0 then return { 0 } end
  table.insert(out, kind)
  table.insert(out, rows)
end
return out
`)

/** ARGV: most bytes, then kind and id of each record. Returns the row of each, nil for a removed one; 0 alone if there is more. */
export const READ_SOME = new Script(`
local P, bytes, out = KEYS[1], tonumber(ARGV[1]), {}
for i = 2, #ARGV, 2 do
  local row = redis.call('HGET', P .. 'records:' .. ARGV[i], ARGV[i + 1])
  bytes = bytes - (row and #row or 0)
  if bytes < 0 then return { 0 } end
  table.insert(out, row)
end
return out
`)

/**
 * ARGV: kind, id, expected revision, '1' to write or '0' to remove, JSON, length of the log, new epoch, most bytes of a row.
 * Returns revision and epoch, or 0 and the present row.
 */
export const WRITE = new Script(`
local P, kind, id, expected, puts, value, keep = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
${EPOCH}
local key = P .. 'records:' .. kind
local row = redis.call('HGET', key, id)
local present = row and tonumber(string.match(row, '^(%d+)')) or 0
local most = tonumber(ARGV[8])
if present ~= expected and row and #row > most then
  return redis.error_reply('ERR the record has more than ' .. most .. ' bytes')
end
if present ~= expected then return { 0, row or '' } end
local now = epoch(ARGV[7])
local revision = redis.call('INCR', P .. 'revision')
if puts == '1' then
  redis.call('HSET', key, id, revision .. ' ' .. value)
  redis.call('SADD', P .. 'kinds', kind)
else
  redis.call('HDEL', key, id)
end
redis.call('XADD', P .. 'log', 'MAXLEN', '~', keep, '*', 'kind', kind, 'id', id, 'revision', revision, 'epoch', now)
return { revision, now }
`)

/** ARGV: epochs of the gateway separated by spaces, revision, length of the log, new epoch, then kind, id and row of each record. */
export const RESTORE = new Script(`
local P, theirs, revision, keep, fresh = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
${EPOCH}
for _, kind in ipairs(redis.call('SMEMBERS', P .. 'kinds')) do redis.call('DEL', P .. 'records:' .. kind) end
redis.call('DEL', P .. 'kinds')
for i = 5, #ARGV, 3 do
  redis.call('HSET', P .. 'records:' .. ARGV[i], ARGV[i + 1], ARGV[i + 2])
  redis.call('SADD', P .. 'kinds', ARGV[i])
end
local present = tonumber(redis.call('GET', P .. 'revision') or '0')
local next = string.format('%d', math.max(present, revision) + 1)
redis.call('SET', P .. 'revision', next)
local all, seen = '', {}
for known in string.gmatch((redis.call('GET', P .. 'epochs') or '') .. ' ' .. theirs, '%S+') do
  local id = string.match(known, '^[^:]+')
  if not seen[id] then all = all .. id .. ':${ANY_REVISION} ' end
  seen[id] = true
end
redis.call('SET', P .. 'epochs', all .. 'restored')
local now = epoch(fresh)
redis.call('XADD', P .. 'log', 'MAXLEN', '~', keep, '*', 'kind', '', 'id', '', 'revision', next, 'epoch', now)
return 1
`)

/**
 * ARGV: bucket, limit, windowMs, needed and wanted tokens, and window of each request. Returns granted, left, window and its
 * rest (ms) of each. The fewer tokens are left, the fewer are granted for stocks, so that none is left over where no request
 * comes. The same rules as `plugins/mesh/mesh/local-engine.ts`.
 */
export const GRANT = new Script(`
local P = KEYS[1]
local t = redis.call('TIME')
local now = t[1] * 1000 + t[2] / 1000
local out = {}
for i = 1, #ARGV, 6 do
  local key, limit, size = P .. 'limit:' .. ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local need, want, window = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
  local number = math.floor(now / size)
  local row = redis.call('HMGET', key, 'window', 'used')
  local used = tonumber(row[1] or '-1') == number and tonumber(row[2]) or 0
  local left = math.max(0, limit - used)
  local granted = 0
  if want > 0 then
    local spare = math.floor((want - need) * left / limit)
    granted = math.min(left, need + spare)
  elseif window == number then
    granted = math.max(want, -used)
  end
  if granted ~= 0 then
    used = used + granted
    redis.call('HSET', key, 'window', string.format('%d', number), 'used', string.format('%d', used))
    redis.call('PEXPIRE', key, size + 1000)
  end
  table.insert(out, granted)
  table.insert(out, math.max(0, limit - used))
  table.insert(out, number)
  table.insert(out, math.floor((number + 1) * size - now))
end
return out
`)

/** ARGV: writer, sequence, lifetime of the writer (ms), then counter, number and lifetime (ms) of each change. Returns totals. */
export const COUNT = new Script(`
local P, writer, sequence = KEYS[1], KEYS[1] .. 'writer:' .. ARGV[1], tonumber(ARGV[2])
local new = sequence > tonumber(redis.call('GET', writer) or '0')
if new then redis.call('SET', writer, ARGV[2], 'PX', ARGV[3]) end
local out = {}
for i = 4, #ARGV, 3 do
  local key, add = P .. 'count:' .. ARGV[i], ARGV[i + 1]
  if new and add ~= '0' then
    redis.call('INCRBY', key, add)
    redis.call('PEXPIRE', key, ARGV[i + 2])
  end
  table.insert(out, redis.call('GET', key) or '0')
end
return out
`)
