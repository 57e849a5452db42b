/** The functions of a request as the namespace that Harmony models read. */
import type { ChatTool } from '#kernel'
import { schemaType } from './schema-type.ts'

/** The section of tools; empty without any. Of tools with one name the first counts. */
export function toolNamespace(tools: readonly ChatTool[]): string {
  const byName = new Map<string, ChatTool['function']>()
  for (const { function: tool } of tools) if (!byName.has(tool.name)) byName.set(tool.name, tool)
  if (byName.size === 0) return ''
  const types = [...byName.values()].map(declaration)
  return `# Tools\n\n## functions\n\nnamespace functions {\n\n${types.join('')}} // namespace functions`
}

function declaration({ name, description = '', parameters }: ChatTool['function']): string {
  const comment = description === '' ? [] : description.replace(/\r?\n$/, '').split(/\r?\n/)
  const above = comment.map((line) => `// ${line}\n`).join('')
  const given = parameters === undefined || parameters === null ? '' : `_: ${schemaType(parameters, '')}`
  return `${above}type ${name} = (${given}) => any;\n\n`
}
