/** `weir tokenizers`: checks the files of a tokenizer without a running gateway. */
import type { Command } from 'commander'
import { CliError, printable, printResult } from '../../../cli/output.ts'
import { loadTokenizer } from '../load-tokenizer.ts'
import { DEFAULT_LIMITS } from '../render-budget.ts'
import { toTemplateReport } from '../template-report.ts'

const EXAMPLES = `
Examples:
  weir tokenizers check /models/qwen3                              what its chat templates expect and refuse
  weir tokenizers check /models/qwen3 --chat-template my.jinja     with another template`

/** Bytes of a vocabulary. */
const MAX_FILE_BYTES = 1_073_741_824

interface Options {
  readonly chatTemplate?: string
  readonly json?: boolean
}

export function defineTokenizers(command: Command): void {
  command.addHelpText('after', EXAMPLES)
  command
    .command('check <folder>')
    .description(
      'Load a tokenizer and show which messages its chat templates expect, and which conversations they refuse.',
    )
    .option('--chat-template <file>', 'a .jinja or .json file in place of its own template')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(checkTokenizer)
}

/** @throws CliError if the tokenizer cannot be loaded */
export async function checkTokenizer(source: string, { chatTemplate, json }: Options): Promise<void> {
  const place = { source, ...(chatTemplate !== undefined && { chatTemplatePath: chatTemplate }) }
  const settings = { maxFileBytes: MAX_FILE_BYTES, rendering: DEFAULT_LIMITS, usesSegments: false }
  const { facts } = await loadTokenizer(place, settings).catch((error: Error) => {
    throw new CliError(error.message)
  })
  const report = {
    source,
    vocab_size: facts.vocabSize,
    eos_ids: facts.eosIds,
    chat_templates: facts.reports.map(toTemplateReport),
  }
  printResult(json, report, () => render(report))
}

function render(report: {
  readonly vocab_size: number
  readonly chat_templates: readonly ReturnType<typeof toTemplateReport>[]
}): string {
  const lines = [`vocabulary   ${report.vocab_size} tokens`]
  if (report.chat_templates.length === 0) lines.push('templates    none')
  for (const template of report.chat_templates) {
    lines.push(
      `template     ${printable(template.name)}`,
      `  content    as ${template.content === 'parts' ? 'a list of parts' : 'one string'}; ${template.empty_content} for tool calls alone`,
      `  arguments  as ${template.tool_arguments === 'value' ? 'values' : 'JSON text'}`,
      `  developer  messages have the role ${template.developer_role}`,
    )
    for (const { conversation, reason } of template.refused)
      lines.push(`  refuses    ${conversation}: ${printable(reason)}`)
  }
  return lines.join('\n')
}
