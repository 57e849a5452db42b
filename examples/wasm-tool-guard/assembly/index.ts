/** Which tools models may have run, on which paths, and which arguments never leave the gateway. */
import { config, Description, handleToolCall, Json, JsonEdits, metric, ToolAction, ToolCall } from 'weir-gateway/wasm-sdk/assembly'

const REMOVED = '[removed]'

export function describe(): i32 {
  return new Description()
    .needsHeaders([])
    .failsClosed()
    .setting('denied', 'list')
    .setting('root')
    .setting('path_arguments', 'list')
    .setting('hidden_arguments', 'list')
    .send()
}

export function on_tool_call(): i32 {
  return handleToolCall((request, call) => {
    const given = call.json()
    // What cannot be read cannot be judged.
    if (given === null) return refused(`The arguments of the tool ${call.name} cannot be read.`)
    const refusal = refusalOf(call, given)
    if (refusal !== null) return refused(refusal)
    const edits = new JsonEdits(given)
    const hidden = config.list('hidden_arguments')
    const members = given.members()
    while (members.next()) if (isAnyKey(hidden, members.key)) edits.setText(members.value, REMOVED)
    return edits.count == 0 ? ToolAction.pass() : ToolAction.withArguments(edits.toText())
  })
}

function refused(text: string): ToolAction {
  metric.increment('refused_total', 1)
  return ToolAction.reject(text)
}

function isAnyKey(names: string[], key: string): bool {
  return names.includes(key)
}

/** The rejection text for the model; null if the tool may run. */
function refusalOf(call: ToolCall, given: Json): string | null {
  const name = call.name
  const denied = config.list('denied')
  for (let i = 0; i < denied.length; i++) {
    if (fits(denied[i], name)) return `The tool ${name} may not be used here.`
  }
  const root = config.get('root')
  if (root === null) return null
  const paths = config.list('path_arguments')
  const members = given.members()
  while (members.next()) {
    if (isAnyKey(paths, members.key) && !isInside(root, members.value)) {
      return `Only files below ${root} may be used.`
    }
  }
  return null
}

/** A star at the end stands for whatever follows. */
function fits(pattern: string, name: string): bool {
  if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, pattern.length - 1))
  return pattern == name
}

/** What is no text is no path that can be judged. */
function isInside(root: string, value: Json): bool {
  if (!value.isString) return false
  const path = value.text()
  const parts = path.split('/')
  if (parts.includes('..')) return false
  return path == root || path.startsWith(root.endsWith('/') ? root : root + '/')
}
