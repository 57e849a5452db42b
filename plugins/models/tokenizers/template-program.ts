/** Parses chat templates, and prepares their syntax trees for the interpreter. */
import { parse, tokenize } from '@huggingface/jinja'

export type Program = ReturnType<typeof parse>
/** A node of the syntax tree; its members depend on its type. */
export interface Node {
  readonly type: string
  [member: string]: unknown
}

/** Deeper nesting would exhaust the stack somewhere. */
const MAX_DEPTH = 200

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'
}

/** Parses a template as Jinja2 does for chats. @throws SyntaxError for an invalid template */
export function parseTemplate(template: string): Program {
  return parse(tokenize(template, { lstrip_blocks: true, trim_blocks: true }))
}

/** Parses a template to run it. @throws SyntaxError for an invalid or too deeply nested template */
export function compileTemplate(template: string): Program {
  const program = parseTemplate(template)
  markLoops(program, new Set(), 0)
  return program
}

/** Marker in the members of a loop: `loop` is used as a whole. */
export const WHOLE_LOOP = '*'

/**
 * Records at each loop which members of `loop` its body uses; only these are created.
 * @param used collects the members that this node uses
 */
function markLoops(node: unknown, used: Set<string>, depth: number): void {
  if (depth > MAX_DEPTH) throw new SyntaxError('the template is nested too deeply')
  if (Array.isArray(node)) for (const item of node) markLoops(item, used, depth)
  else if (node instanceof Map) for (const entry of node) markLoops(entry, used, depth)
  if (!isNode(node)) return
  const member = loopMember(node)
  if (member !== null) {
    used.add(member)
    return
  }
  const own = node.type === 'For' ? new Set<string>() : used
  for (const part of Object.values(node)) markLoops(part, own, depth + 1)
  if (own === used) return
  node.loopMembers = own
  for (const name of own) used.add(name)
}

/** The member of `loop` that a node itself uses; null for none. */
function loopMember(node: Node): string | null {
  if (node.type === 'Identifier') return node.value === 'loop' ? WHOLE_LOOP : null
  if (node.type !== 'MemberExpression' || !isNode(node.object) || !isNode(node.property)) return null
  if (node.object.type !== 'Identifier' || node.object.value !== 'loop') return null
  const isNamed = node.property.type === 'StringLiteral' || node.computed !== true
  return isNamed && typeof node.property.value === 'string' ? node.property.value : WHOLE_LOOP
}
