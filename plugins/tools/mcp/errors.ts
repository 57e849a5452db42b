/** Errors of the mcp plugin. */
import { defineErrors } from '#kernel'

/** Limits of labels in messages. */
const MAX_SHOWN_CHARS = 64
const MAX_SHOWN_LABELS = 10

function shown(label: string): string {
  return `'${label.length > MAX_SHOWN_CHARS ? `${label.slice(0, MAX_SHOWN_CHARS)}…` : label}'`
}

function shownAll(labels: readonly string[]): string {
  if (labels.length === 0) return 'none'
  const more = labels.length - MAX_SHOWN_LABELS
  return labels.slice(0, MAX_SHOWN_LABELS).map(shown).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

export const mcpErrors = defineErrors('mcp', {
  invalid_mcp_settings: {
    kind: 'internal',
    source: 'gateway',
    text: (field: string, problem: string) => `plugins.mcp: field '${field}' ${problem}`,
  },
  unknown_mcp_server: {
    kind: 'bad_request',
    source: 'client',
    /** `declared`: null where the label is that of a declaration, not of an approved call. */
    text: (label: string, declared: readonly string[] | null, configured: readonly string[]) =>
      declared === null
        ? `no tool server is named ${shown(label)}, and no server_url was given (configured: ${shownAll(configured)})`
        : `a call to the tool server ${shown(label)} was approved, but 'tools' does not declare that server (declared: ${shownAll(declared)}; configured: ${shownAll(configured)})`,
  },
  invalid_server_url: {
    kind: 'bad_request',
    source: 'client',
    text: (label: string, reason: string) => `server_url of ${shown(label)} is not allowed: ${reason}`,
  },
  invalid_server_label: {
    kind: 'bad_request',
    source: 'client',
    text: (label: string) =>
      `server_label must begin with a letter and consist of at most 64 letters, digits, - and _ (got ${shown(label)})`,
  },
  mcp_tool_duplicate_server_label: {
    kind: 'bad_request',
    source: 'client',
    text: (label: string) => `server_label ${shown(label)} is used twice`,
  },
  invalid_mcp_header: {
    kind: 'bad_request',
    source: 'client',
    text: (label: string, problem: string) => `headers of ${shown(label)} are not allowed: ${problem}`,
  },
  too_many_mcp_servers: {
    kind: 'bad_request',
    source: 'client',
    text: (most: number) => `at most ${most} tool servers can be used in one request`,
  },
  invalid_elicitation_answer: {
    kind: 'bad_request',
    source: 'client',
    text: (id: string, problem: string) =>
      `the answer to the question '${id}' (reason of its mcp_approval_response) ${problem}`,
  },
  tool_not_available: {
    kind: 'bad_request',
    source: 'client',
    text: (type: string) => `the built-in tool ${type} is not configured`,
  },
  tool_choice_tool_not_found: {
    kind: 'bad_request',
    source: 'client',
    text: (what: string) => `tool_choice names ${what}, which the request does not have`,
  },
  connect_mcp_server_failed: {
    kind: 'failed_dependency',
    source: 'worker',
    text: (label: string, reason: string) => `the tools of server '${label}' could not be listed: ${reason}`,
  },
  internal_tools_failed: {
    kind: 'failed_dependency',
    source: 'gateway',
    text: () => 'tools that this request needs are currently unavailable',
  },
  tool_iterations_exceeded: {
    kind: 'internal',
    source: 'worker',
    text: (iterations: number) =>
      `the model still called tools after ${iterations} turns (plugins.mcp.limits.maxIterations)`,
  },
  tool_loop_failed: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the tool loop failed with an unexpected error',
  },
})
