#!/usr/bin/env node
/** The `weir` command. */
import { runCommand } from './cli/program.ts'

await runCommand(process.argv.slice(2))
