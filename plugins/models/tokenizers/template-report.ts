/** A chat template's report as the API and the command show it. */
import type { TemplateReport } from './message-form.ts'

export function toTemplateReport([name, { form, refused }]: readonly [string, TemplateReport]) {
  return {
    name,
    content: form.content,
    empty_content: form.emptyContent,
    tool_arguments: form.toolArguments,
    developer_role: form.developer,
    refused,
  }
}
